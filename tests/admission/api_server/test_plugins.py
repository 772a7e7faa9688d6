"""What the API server adds to a pod before the webhooks, and what it refuses, in its words."""

import pytest

from tests.admission.api_server.completing import KATA, of, view
from tests.support.objects.api_server import Object, limit_range
from tests.support.objects.builders import make_pod
from webhook.admission.api_server.plugins import check_admitted, completed
from webhook.admission.api_server.priority import priority_fault
from webhook.cluster.left_out import LeftOut
from webhook.documents.field import InvalidInput


def test_malformed_pods_are_errors() -> None:
    with pytest.raises(InvalidInput, match="must be an object"):
        of(view(KATA), containers=[1], runtimeClassName="kata")


@pytest.mark.parametrize(
    ("metadata", "name"),
    [({"name": "a", "generateName": "b-"}, "a"), ({"generateName": "b-"}, "b-"), ({}, "Unknown")],
)
def test_a_refusal_names_the_pod_as_the_api_server_does(metadata: dict[str, str], name: str) -> None:
    pod = {"metadata": metadata, "spec": {"containers": [], "runtimeClassName": "gone"}}
    with pytest.raises(InvalidInput) as caught:
        completed(pod, view(KATA))

    assert str(caught.value) == f'pods "{name}" is forbidden: pod rejected: RuntimeClass "gone" not found'


def test_a_runtime_class_that_is_too_large_to_keep_is_not_missing() -> None:
    snapshot = view(KATA)
    snapshot.left_out = LeftOut({("RuntimeClass", ""): frozenset(("large",))})

    assert of(snapshot, runtimeClassName="large").unknown.startswith("the RuntimeClass large is not known")
    with pytest.raises(InvalidInput, match="not found"):
        of(snapshot, runtimeClassName="gone")


def test_additions_are_those_of_limit_ranges_then_of_the_class_and_unknown_ones_are_named() -> None:
    ranges = [limit_range({"type": "Container", "default": {"cpu": "1"}})]
    found = of(view(KATA, *ranges), runtimeClassName="kata")

    assert found.sources == ("LimitRange limits", "RuntimeClass kata")
    assert found.pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert found.pod["spec"]["overhead"] == {"cpu": "500m"}


@pytest.mark.parametrize(
    ("spec", "is_refused"),
    [
        ({}, False),
        ({"overhead": {"cpu": "1"}}, True),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "500m"}}, False),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "1"}}, True),
        ({"runtimeClassName": "kata"}, True),
        ({"runtimeClassName": "unknown", "overhead": {"cpu": "1"}}, False),
    ],
)
def test_overhead_is_checked_again_if_the_class_is_known(spec: Object, *, is_refused: bool) -> None:
    pod = make_pod("p").namespace("default").spec(**spec).obj()
    snapshot = view(KATA)
    if is_refused:
        with pytest.raises(InvalidInput, match="Overhead"):
            check_admitted(pod, snapshot)
    else:
        check_admitted(pod, snapshot)


@pytest.mark.parametrize(
    ("policy", "of_class", "is_refused"),
    [
        (None, "Never", False), ("", "Never", False), ("Never", "Never", False),
        ("PreemptLowerPriority", "Never", True),
        ("Never", None, True), ("PreemptLowerPriority", None, False), (None, None, False),
    ],
)  # fmt: skip
def test_a_preemption_policy_must_be_that_of_the_class(
    policy: str | None, of_class: str | None, *, is_refused: bool
) -> None:
    metadata = {"name": "high"}
    found = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 5}
    spec = {"priorityClassName": "high", "priority": 5} | ({} if policy is None else {"preemptionPolicy": policy})
    snapshot = view(found | ({"preemptionPolicy": of_class} if of_class else {}))

    assert bool(priority_fault({"spec": spec}, snapshot)) is is_refused
