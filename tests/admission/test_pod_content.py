"""The part of a pod that the rules read."""

from typing import Any

import pytest

from tests.serving.decisions.decided import POLICY
from tests.support.admission import PRODUCT, TYPE, make_request
from tests.support.objects.builders import make_pod
from webhook.admission.injection import Injection, apply_rules
from webhook.admission.pod_content import PodContent

TRAINING = make_pod("a").annotate(TYPE, "training")


@pytest.mark.parametrize("extra", [{}, {"tolerations": [{"operator": "Exists"}], "schedulerName": "mine"}])
def test_the_rules_read_nothing_of_containers_and_volumes(extra: dict[str, Any]) -> None:
    pod = TRAINING.annotate(PRODUCT, "NVIDIA-H20").spec(**extra).obj()
    content = PodContent(make_request(pod), {})
    without = PodContent(make_request({**pod, "spec": {**pod["spec"], "containers": None}}), {})

    assert isinstance(apply_rules(content, ("nvidia.com/gpu",), POLICY), Injection)
    assert apply_rules(content, ("nvidia.com/gpu",), POLICY) == apply_rules(without, ("nvidia.com/gpu",), POLICY)
