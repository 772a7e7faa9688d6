"""The user of a workload object hears of what the API server adds to its pods, and of pods that it refuses."""

import pytest

from tests.objects.test_workload import DEPLOYMENT, admitted, gpu_node, template, view
from tests.support.objects.api_server import Object, limit_range, runtime_class
from webhook.admission.pipeline import ClusterView
from webhook.admission.verdict import Advised

KATA = runtime_class("kata", scheduling={"nodeSelector": {"a": "b"}})
SANDBOX = runtime_class("sandbox", overhead={"podFixed": {"cpu": "100"}})


def told(spec: Object, *objects: Object) -> tuple[list[str], str, list[Object]]:
    """Return the warnings, the verdict and the patch of a Deployment whose pods have `spec`, too."""
    of = template()
    of["spec"] |= spec
    found = admitted(DEPLOYMENT.object(of, replicas=1), seen(*objects))
    assert isinstance(found, Advised)
    assert found.placement is not None
    return [*found.warnings], found.placement.verdict, [*found.operations]


def seen(*objects: Object) -> ClusterView:
    return view(gpu_node("n1"), [*objects])


@pytest.mark.parametrize(
    ("spec", "added", "reason"),
    [
        ({"runtimeClassName": "kata"}, KATA, "1 node(s) didn't match Pod's node affinity/selector"),
        ({"runtimeClassName": "sandbox"}, SANDBOX, "1 Insufficient cpu"),
        ({}, limit_range({"type": "Container", "default": {"cpu": "100"}}, namespace="team-a"), "1 Insufficient cpu"),
    ],
)
def test_pods_are_placed_with_what_the_api_server_adds(spec: Object, added: Object, reason: str) -> None:
    (first, *_), verdict, operations = told(spec, added)

    assert (verdict, first) == ("Infeasible", f"placement check: Infeasible: 0/1 nodes are unavailable: {reason}.")
    # The patch does not depend on the cluster.
    assert operations == told(spec)[2]


def test_class_that_is_not_known_is_no_warning() -> None:
    assert told({"runtimeClassName": "kata"})[:2] == ([], "Unknown")


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
    (warning,), verdict, _ = told(spec, cluster)

    assert verdict == "Unknown"
    assert warning.startswith('spec.template: the API server refuses such a pod: pods "')
    assert warning.endswith(f"is forbidden: {words}")
