"""What the API server adds to a pod before the webhooks, and what it refuses, in its words."""

from typing import Any

import pytest

from tests.support.objects.api_server import Object, limit_range, runtime_class
from tests.support.objects.builders import make_pod
from tests.support.views import made_anew
from webhook.admission.api_server.plugins import Completed, check_admitted, completed
from webhook.cluster.left_out import LeftOut
from webhook.cluster.planned_objects import with_planned_objects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput

KATA = runtime_class(
    "kata",
    overhead={"podFixed": {"cpu": "0.5"}},
    scheduling={"nodeSelector": {"rack": "r1"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
)


def view(*objects: Object) -> Snapshot:
    return made_anew(objects)


def of(snapshot: Snapshot, **spec: Any) -> Completed:
    return completed(make_pod("p").namespace("default").spec(**spec).obj(), snapshot)


def refusal(snapshot: Snapshot, **spec: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        check_admitted(of(snapshot, **spec).pod, snapshot)
    (error,) = caught.value.errors
    return str(error).removeprefix('pods "p" is forbidden: ')


def containers(*resources: Object) -> list[Object]:
    return [{"name": f"c{index}", "image": "i", "resources": each} for index, each in enumerate(resources)]


def test_the_class_adds_overhead_nodes_and_tolerations() -> None:
    own = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    }

    found = of(view(KATA), runtimeClassName="kata", **own)

    spec = found.pod["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "500m"}, {"disk": "ssd", "rack": "r1"})
    assert spec["tolerations"] == [*own["tolerations"], {"key": "kata", "operator": "Exists"}]
    assert found.sources == ("RuntimeClass kata",)
    assert completed(found.pod, view(KATA)) == found


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"runtimeClassName": "gone"}, 'pod rejected: RuntimeClass "gone" not found'),
        (
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"rack": "r2"}},
            "conflict: runtimeClass.scheduling.nodeSelector[rack] = r1; pod.spec.nodeSelector[rack] = r2",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
def test_pods_that_contradict_their_class_are_refused(spec: Object, words: str) -> None:
    assert refusal(view(KATA), **spec) == words


def test_class_is_unknown_while_the_classes_are() -> None:
    found = of(view(), runtimeClassName="kata")

    assert (
        found.unknown
        == "the RuntimeClass kata is not known: add runtimeclasses to the cluster file, or grant list and watch of them"
    )
    check_admitted(found.pod, view())


def test_missing_requests_are_the_limits_first_and_then_the_defaults() -> None:
    limits = limit_range(
        {"type": "Container", "max": {"cpu": "4"}, "defaultRequest": {"memory": "1024Mi"}, "min": {"memory": "1Mi"}}
    )

    found = of(view(limits), containers=containers({"limits": {"cpu": "2", "nvidia.com/gpu": 1}}, {}))

    first, second = (each["resources"] for each in found.pod["spec"]["containers"])
    assert first == {
        "limits": {"cpu": "2", "nvidia.com/gpu": 1},
        "requests": {"cpu": "2", "nvidia.com/gpu": 1, "memory": "1Gi"},
    }
    assert second == {"limits": {"cpu": "4"}, "requests": {"cpu": "4", "memory": "1Gi"}}
    assert found.sources == ("LimitRange limits",)


def test_defaults_are_noted_as_the_api_server_does() -> None:
    defaults = {"type": "Container", "default": {"cpu": "4", "memory": "1Gi"}}
    init = [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}]

    found = of(view(limit_range(defaults)), containers=containers({"limits": {"cpu": "2"}}), initContainers=init)

    assert found.pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container c0; memory limit for container c0; "
        "memory request for init container i; cpu, memory limit for init container i"
    )


def test_limit_range_without_defaults_adds_nothing() -> None:
    found = of(view(limit_range({"type": "Pod", "max": {"cpu": "4"}})), containers=containers({"limits": {"cpu": "2"}}))

    assert found.sources == ()
    assert "annotations" not in found.pod["metadata"]


def test_limit_ranges_of_other_namespaces_change_nothing() -> None:
    limits = limit_range({"type": "Container", "default": {"cpu": "4"}}, namespace="other")

    assert of(view(limits)) == Completed(make_pod("p").namespace("default").obj())


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}},
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            {"type": "Container", "min": {"memory": "1Gi"}},
            "minimum memory usage per Container is 1Gi, but request is 512Mi",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        ({"type": "Pod", "max": {"memory": "1Gi"}}, "maximum memory usage per Pod is 1Gi.  No limit is specified"),
        ({"type": "Pod", "min": {"cpu": "2"}}, "minimum cpu usage per Pod is 2, but request is 500m"),
        (
            {"type": "Pod", "min": {"example.com/x": "2"}},
            "minimum example.com/x usage per Pod is 2.  No request is specified",
        ),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, ""),
    ],
)
def test_amounts_beyond_a_limit_range_are_refused(item: Object, words: str) -> None:
    asked = {"containers": containers({"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "1500m"}})}
    snapshot = view(limit_range(item))
    if words:
        assert refusal(snapshot, **asked) == words
    else:
        check_admitted(of(snapshot, **asked).pod, snapshot)


def test_limits_of_a_pod_count_sidecars_and_the_peak_of_init_containers() -> None:
    init = containers({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "3Gi"}})
    init[0]["restartPolicy"] = "Always"
    asked = {"containers": containers({"limits": {"memory": "1Gi"}}), "initContainers": init}

    words = "maximum memory usage per Pod is 2Gi, but limit is 4Gi"
    assert refusal(view(limit_range({"type": "Pod", "max": {"memory": "2Gi"}})), **asked) == words


def test_limit_range_that_cannot_be_read_makes_the_pods_of_its_namespace_unknown() -> None:
    snapshot = view()
    snapshot.left_out = LeftOut({("LimitRange", "default"): frozenset(("large",))})

    assert of(snapshot).unknown == "a LimitRange of the namespace default cannot be read"


def _priority_class(name: str, value: int, **fields: Any) -> Object:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


GIVEN, FROM = (
    "must not be provided in pod spec; priority admission controller computed",
    "from the given PriorityClass name",
)
_SYSTEM = _priority_class("system-node-critical", 2_000_001_000)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "gone"}, "no PriorityClass with name gone was found"),
        (
            {"priorityClassName": "high", "priority": 5},
            f"the integer value of priority (5) {GIVEN} 10 {FROM}",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            f"the string value of PreemptionPolicy (PreemptLowerPriority) {GIVEN} Never {FROM}",
        ),
    ],
)
def test_pods_that_contradict_their_priority_class_are_refused(spec: Object, words: str) -> None:
    high = _priority_class("high", 10, preemptionPolicy="Never")

    assert refusal(view(_SYSTEM, high), **spec) == words
    # Every cluster has the classes of the system, also if they are not in the view.
    assert refusal(view(high), **spec) == words


@pytest.mark.parametrize(
    "spec", [{"priorityClassName": "gone"}, {"priority": 5}, {"preemptionPolicy": "Never"}, {"priorityClassName": ""}]
)
def test_no_pod_is_refused_for_a_priority_class_that_is_not_known(spec: Object) -> None:
    """The class, or the default class, may be one of those that were not listed or not read."""
    partial = view(_SYSTEM)
    partial.left_out = LeftOut({("PriorityClass", ""): frozenset(("large",))})
    planned = with_planned_objects(view(), [Document("f", _priority_class("mine", 5))])

    for snapshot in (view(), partial, planned):
        assert of(snapshot, **spec).unknown == ""


def test_class_of_the_system_need_not_be_in_the_view() -> None:
    high = _priority_class("high", 10)

    assert of(view(high), priorityClassName="system-cluster-critical").unknown == ""
    assert refusal(view(high), priority=5).startswith(f"the integer value of priority (5) {GIVEN} 0 {FROM}")


def test_malformed_pods_are_errors() -> None:
    with pytest.raises(InvalidInput, match="must be an object"):
        of(view(KATA), containers=[1], runtimeClassName="kata")
