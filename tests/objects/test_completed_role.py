"""The user of a workload object hears of what the API server adds to its pods, and of pods that it refuses."""

import pytest

from tests.support.admission import TYPE, USAGE, make_request, policy_with
from tests.support.objects.api_server import Object, limit_range, namespace, runtime_class
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import APP, SAMPLES
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised
from webhook.objects.admission import admit_request

DEPLOYMENT = next(each for each in SAMPLES if each.kind == "Deployment")
NODE = make_node_object(
    "n1", labels={USAGE: "training"}, taints=[f"{USAGE}=training:NoSchedule"], capacity={"nvidia.com/gpu": 8}
)

KATA = runtime_class("kata", scheduling={"nodeSelector": {"a": "b"}})
SANDBOX = runtime_class("sandbox", overhead={"podFixed": {"cpu": "100"}})


def advised(spec: Object, *objects: Object) -> tuple[list[str], str, list[Object]]:
    """Return the warnings, the verdict and the patch of a Deployment whose pods have `spec`, too."""
    template = make_pod("").gpu(4).label("app", APP["app"]).annotate(TYPE, "training").spec(**spec).template()
    request = make_request(
        DEPLOYMENT.object(template, replicas=1), kind="Deployment", group="apps", resource="", namespace="team-a"
    )
    cluster = ClusterView(made_anew([NODE, *objects]), scheduler_for(policy_with()))
    found = admit_request(request, policy_with(), cluster)
    assert isinstance(found, Advised)
    assert found.placement is not None
    return [*found.warnings], found.placement.verdict, [*found.operations]


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


def test_plugin_that_the_api_server_may_run_is_named_if_it_decides() -> None:
    key = "scheduler.alpha.kubernetes.io/node-selector"
    words = f"Feasible as written, Infeasible if the API server runs PodNodeSelector (annotation {key} of the namespace"

    warnings, verdict, operations = advised({}, namespace("team-a", **{key: "rack=r1"}))

    assert (verdict, warnings) == ("Unknown", [f"placement check: Unknown: {words} team-a)"])
    assert operations == advised({})[2]
    assert advised({}, namespace("team-a", **{key: f"{USAGE}=training"}))[:2] == ([], "Feasible")


@pytest.mark.parametrize(
    "annotation",
    [
        "[" * 100_000,
        '{"a":' * 40_000,
        '[{"key": "a", "effect": "NoExecute", "tolerationSeconds": "x"}]',
        '[{"tolerationSeconds": {}}, {"operator": []}]',
    ],
)
def test_malformed_tolerations_of_a_namespace_are_a_refusal_that_is_in_doubt(annotation: str) -> None:
    own = {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]}
    key = "scheduler.alpha.kubernetes.io/defaultTolerations"

    warnings, verdict, _ = advised(own, namespace("team-a", **{key: annotation}))

    assert verdict in ("Unknown", "Feasible")
    assert all("PodTolerationRestriction" in each for each in warnings)
