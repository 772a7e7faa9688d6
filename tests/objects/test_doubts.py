"""The advice on an object where the API server may run plugins that no object shows."""

from dataclasses import replace

import pytest

from tests.objects.completed import advised
from tests.support.admission import PRODUCT, TYPE, USAGE, make_request, policy_with
from tests.support.objects.api_server import Object, namespace
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import SAMPLES
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised
from webhook.objects.admission import admit_request
from webhook.placement.waiting.assumed_pods import AssumedPods


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


SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
JOB_SET = next(each for each in SAMPLES if each.kind == "JobSet")
RACKS = [
    make_node_object(name, labels={USAGE: "training", **labels}, capacity={"nvidia.com/gpu": 4})
    for name, labels in (("n1", {"rack": "r1"}), ("n2", {"rack": "r2"}))
]


def job_set(*selectors: Object) -> Object:
    """Return a JobSet with a role of one pod of four cards for each node selector."""
    roles = []
    for number, selector in enumerate(selectors):
        pod = make_pod("").gpu(4).annotate(TYPE, "training").spec(nodeSelector=selector)
        (role,) = JOB_SET.object(pod.template(), 1)["spec"]["replicatedJobs"]
        roles.append(role | {"name": f"role-{number}"})
    return JOB_SET.object(make_pod("").template(), 1) | {"spec": {"replicatedJobs": roles}}


def advice_on(content: Object, *objects: Object, assumed: bool = False) -> tuple[str, list[str]]:
    """Return the verdict and the warnings about the placement on `RACKS`."""
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}})
    cluster = ClusterView(made_anew([*RACKS, *objects]), scheduler_for(policy))
    if assumed:
        cluster = replace(cluster, assumed=AssumedPods(cluster.snapshot))
    request = make_request(content, kind="JobSet", group="jobset.x-k8s.io", resource="", namespace="team-a", name="web")
    found = admit_request(request, policy, cluster)
    assert isinstance(found, Advised)
    assert found.placement is not None
    return found.placement.verdict, [each for each in found.warnings if each.startswith("placement check")]


IF_IT_RUNS = f"if the API server runs PodNodeSelector (annotation {SELECTOR} of the namespace team-a)"


@pytest.mark.parametrize("assumed", [False, True])
@pytest.mark.parametrize(
    ("selectors", "wanted", "doubt"),
    [
        pytest.param([{}, {}], "rack=r1", "Waiting", id="both roles"),
        pytest.param([{"rack": "r1"}, {}], "rack=r1", "Waiting", id="the second role alone"),
        pytest.param([{}, {"rack": "r2"}], "rack=r1", "Invalid", id="the second role is refused"),
        pytest.param([{"rack": "r2"}, {}], "rack=r1", "Invalid", id="the first role is refused"),
        pytest.param([{"rack": "r1"}, {"rack": "r2"}], f"{USAGE}=training", "", id="room for both"),
    ],
)
def test_each_role_can_depend_on_a_plugin_that_may_run(
    selectors: list[Object], wanted: str, doubt: str, *, assumed: bool
) -> None:
    verdict, warnings = advice_on(job_set(*selectors), namespace("team-a", **{SELECTOR: wanted}), assumed=assumed)

    assert verdict == ("Unknown" if doubt else "Feasible")
    assert [each.partition(IF_IT_RUNS)[0] for each in warnings] == (
        [f"placement check: Unknown: Feasible as written, {doubt} "] if doubt else []
    )


def test_pods_that_a_plugin_changes_have_the_defaults_of_the_namespace_as_well() -> None:
    with_product = namespace("team-a", **{SELECTOR: f"{USAGE}=training", PRODUCT: "NVIDIA-H20"})

    verdict, _ = advice_on(job_set({}), with_product)

    assert verdict == "Infeasible"
