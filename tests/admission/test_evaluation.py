"""The evaluation of the policy reads no more of a pod than it needs."""

from typing import Any

import pytest

from tests.serving.decisions.decided import POLICY
from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.builders import make_pod
from tests.support.work import calls_of
from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pod_content import PodContent
from webhook.documents.field import InvalidInput

Object = dict[str, Any]
TRAINING = make_pod("a").annotate(TYPE, "training")


def requesting(pod: Object, amounts: int) -> PodContent:
    """Return the content of `pod` with 100 containers that request this many resources each."""
    requests = {f"example.com/{number}": "1" for number in range(amounts)}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    content = PodContent(make_request(pod | {"spec": pod["spec"] | {"containers": [container] * 100}}), {})
    assert content.pod["spec"]["containers"]
    return content


def test_the_resources_of_a_pod_are_read_where_the_policy_requires_a_type_of_pods_with_cards() -> None:
    content, strict = PodContent(make_request(make_pod("a").gpu(1).obj()), {}), policy_with(requireType="deny")

    assert isinstance(evaluate(content, POLICY), Bypassed)
    assert isinstance(evaluate(content, strict), Denied)


@pytest.mark.parametrize("reason", ["no workload type", "pod of a DaemonSet", "spec.nodeName is set"])
def test_the_resources_of_a_bypassed_pod_are_not_read(reason: str) -> None:
    pod = make_pod("a").obj() if reason == "no workload type" else TRAINING.obj()
    if reason == "pod of a DaemonSet":
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent", "controller": True}]
    elif reason == "spec.nodeName is set":
        pod["spec"]["nodeName"] = "a"
    few, many = (requesting(pod, amounts) for amounts in (0, 100))

    assert evaluate(many, POLICY) == evaluate(few, POLICY) == Bypassed(reason)
    assert calls_of(lambda: evaluate(many, POLICY)) == calls_of(lambda: evaluate(few, POLICY))


@pytest.mark.parametrize("field", ["annotations", "ownerReferences"])
def test_the_resources_of_a_pod_with_malformed_metadata_are_not_read(field: str) -> None:
    pod = TRAINING.obj()
    pod["metadata"][field] = "x"
    few, many = (requesting(pod, amounts) for amounts in (0, 100))

    def reject(content: PodContent) -> None:
        with pytest.raises(InvalidInput) as caught:
            evaluate(content, POLICY)
        assert [each.path for each in caught.value.errors] == [f"metadata.{field}"]

    reject(many)
    reject(few)
    assert calls_of(lambda: reject(many)) == calls_of(lambda: reject(few))
