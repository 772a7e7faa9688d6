"""The user of a workload object hears of what the API server adds to its pods, and of pods that it refuses."""

import pytest

from tests.objects.completed import advised
from tests.support.objects.api_server import Object, limit_range, runtime_class

KATA = runtime_class("kata", scheduling={"nodeSelector": {"a": "b"}})
FILLED = {"class": "Guaranteed", "limitsFromRequests": True}
SANDBOX = runtime_class("sandbox", overhead={"podFixed": {"cpu": "100"}})


@pytest.mark.parametrize(
    ("spec", "added", "reason"),
    [
        ({"runtimeClassName": "kata"}, KATA, "1 node(s) didn't match Pod's node affinity/selector"),
        ({"runtimeClassName": "sandbox"}, SANDBOX, "1 Insufficient cpu"),
        ({}, limit_range({"type": "Container", "default": {"cpu": "100"}}, namespace="team-a"), "1 Insufficient cpu"),
    ],
)
def test_pods_are_placed_with_what_the_api_server_adds(spec: Object, added: Object, reason: str) -> None:
    (first, *_), verdict, operations = advised(spec, added)

    assert (verdict, first) == ("Infeasible", f"placement check: Infeasible: 0/1 nodes are unavailable: {reason}.")
    # The patch does not depend on the cluster.
    assert operations == advised(spec)[2]


def test_class_that_is_not_known_is_no_warning() -> None:
    assert advised({"runtimeClassName": "kata"})[:2] == ([], "Unknown")


@pytest.mark.parametrize(
    ("spec", "cluster", "words"),
    [
        ({"runtimeClassName": "gone"}, KATA, 'pod rejected: RuntimeClass "gone" not found'),
        (
            {},
            limit_range({"type": "Container", "max": {"nvidia.com/gpu": "1"}}, namespace="team-a"),
            "maximum nvidia.com/gpu usage per Container is 1, but limit is 4",
        ),
    ],
)
def test_pods_that_the_api_server_refuses_are_a_warning(spec: Object, cluster: Object, words: str) -> None:
    (warning,), verdict, _ = advised(spec, cluster)

    assert verdict == "Unknown"
    assert warning.startswith('spec.template: the API server refuses such a pod: pods "')
    assert warning.endswith(f"is forbidden: {words}")


@pytest.mark.parametrize(("qos", "verdict"), [({}, "Unknown"), (FILLED, "Feasible")])
def test_pods_are_held_to_limits_with_what_the_policy_sets(qos: Object, verdict: str) -> None:
    """A LimitRange of pods asks for a limit, which has no default."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    most = limit_range({"type": "Pod", "max": {"cpu": "2"}}, namespace="team-a")
    training = {"nodeUsage": {"allow": ["training"]}, "qos": qos}

    assert advised({"containers": [container]}, most, workloadTypes={"training": training})[1] == verdict
