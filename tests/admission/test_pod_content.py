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


def test_what_a_verdict_depends_on_is_the_template_with_the_defaults_of_the_namespace() -> None:
    first, second = make_pod("a").namespace("lab").obj(), make_pod("b").namespace("lab").obj()
    other = make_pod("a").label("x", "y").obj()
    defaults: dict[str, str] = {"k": "v"}

    def data(pod: dict[str, Any], annotations: dict[str, str], *, without: bool) -> bytes | None:
        content = PodContent(make_request(pod), annotations)
        return content.data_without_containers if without else content.data

    for without in (False, True):
        assert data(first, {}, without=without) == data(second, {}, without=without) is not None
        assert data(first, {}, without=without) != data(other, {}, without=without)
        assert data(first, {}, without=without) != data(first, defaults, without=without)
        assert data(first, defaults, without=without) != data(first, {"k": "w"}, without=without)
        assert data({"metadata": 1, "spec": {}}, defaults, without=without) is None
    more = make_pod("a").namespace("lab").requests(cpu=2).obj()
    assert data(first, {}, without=True) == data(more, {}, without=True)
    assert data(first, {}, without=False) != data(more, {}, without=False)


def test_other_annotations_make_another_pod_and_leave_the_first_as_it_is() -> None:
    content = PodContent(make_request(make_pod("a").annotate("a", "b").obj(), namespace="lab"), {"k": "v"})
    other = content.with_annotations({"c": "d"})

    assert (content.pod["metadata"]["annotations"], other.pod["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})
    assert (other.namespace, other.defaults, other.request.identity) == ("lab", {"k": "v"}, content.request.identity)
    assert other.data != content.data
