"""The evaluation of the policy reads no more of a pod than it needs."""

from typing import Any

import pytest

from tests.serving.decisions.decided import POLICY
from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.builders import make_pod
from tests.support.work import calls_of
from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied, inject
from webhook.admission.mutated_pod import Mutated
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


@pytest.mark.parametrize("field", ["metadata", "spec"])
@pytest.mark.parametrize("value", [None, 5, "x", []])
def test_a_pod_without_metadata_or_spec_is_rejected(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        evaluate(PodContent(make_request(TRAINING.obj() | {field: value}), {}), POLICY)
    assert [each.path for each in caught.value.errors] == [field]


_DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}


@pytest.mark.parametrize("required", [None, "deny", "warn", "training"])
@pytest.mark.parametrize("is_of_daemon_set", [False, True])
@pytest.mark.parametrize("own", [{}, {TYPE: "training"}, {f"{TYPE}x": "training"}])
@pytest.mark.parametrize("defaults", [{}, {TYPE: "inference"}])
@pytest.mark.parametrize("cards", [0, 1])
def test_a_pod_whose_resources_are_not_read_has_the_result_of_one_whose_resources_are(
    required: str | None, own: dict[str, str], defaults: dict[str, str], cards: int, *, is_of_daemon_set: bool
) -> None:
    policy = policy_with(**({"requireType": required} if required else {}))
    pod = (make_pod("a").gpu(cards) if cards else make_pod("a")).obj()
    pod["metadata"]["annotations"] = own
    pod["metadata"]["ownerReferences"] = [_DAEMON_SET] if is_of_daemon_set else [{"kind": "Job", "name": "j"}]
    content = PodContent(make_request(pod), defaults)
    found, wanted = evaluate(content, policy), inject(content, policy)

    assert (found.injection if isinstance(found, Mutated) else found) == wanted
