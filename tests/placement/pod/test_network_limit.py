"""Gangs of Volcano that run within one HyperNode, by their PodGroup, the annotations of pods, or their Job."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, USAGE, admit_pod, make_request, policy_with
from tests.support.objects.batch_objects import hyper_node, named, volcano_configuration, volcano_group, volcano_queue
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised, placement_of
from webhook.objects.admission import admit_request
from webhook.placement.framework.result import Placement

Object = dict[str, Any]
POLICY = policy_with(
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "volcano"}},
    schedulers={"volcano": {"backend": "volcano", "tiers": {"rack": 1}}},
    workloadObjects={"mutateTemplates": True},
)
WITH_PLUGIN = volcano_configuration("tiers:\n- plugins:\n  - name: network-topology-aware\n")
CHART = volcano_configuration('actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n')
RACKS = (hyper_node("r1", 1, *named("a", "b")), hyper_node("r2", 1, *named("c")))
NO_HYPER_NODES = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNodeList", "items": []}
HARD: Object = {"mode": "hard", "highestTierAllowed": 1}
WORKER = make_pod("g-0").annotate(TYPE, "training").gpu(1)
OF_GROUP = WORKER.annotate(f"{DOMAIN}/gang", "g")
# Volcano makes one PodGroup for the pods of an owner.
REQUIRED = f"{DOMAIN}/within-mode", "required"
OF_OWNER = WORKER.owner("ReplicaSet", "g").annotate(f"{DOMAIN}/within", "rack").annotate(*REQUIRED)


def view(*others: Object, cards: tuple[int, ...] = (2, 1, 2, 8)) -> ClusterView:
    """Return a view with nodes with so many cards, `a` and `b` in r1, `c` in r2, and `d` in none, and `others`."""
    nodes = [
        make_node_object(name, labels={USAGE: "training"}, capacity={"nvidia.com/gpu": number})
        for name, number in zip("abcd", cards, strict=True)
    ]
    return ClusterView(made_anew([*nodes, volcano_queue(), *others]), scheduler_for(POLICY))


def placed(pod: PodBuilder, size: int, *others: Object, **cluster: Any) -> Placement:
    of_gang = pod.annotate(f"{DOMAIN}/gang-size", str(size))
    placement = placement_of(admit_pod(of_gang.obj(), POLICY, view(*others, **cluster)))
    assert placement is not None
    return placement


def group(size: int, **topology: Any) -> Object:
    made = volcano_group("g", members=size)
    return {**made, "spec": {**made["spec"], "networkTopology": topology}}


@pytest.mark.parametrize(
    ("size", "verdict", "text"),
    [
        (3, "Feasible", "1 of 2 HyperNodes up to tier 1 has room for all 3 pods: r1"),
        (4, "Infeasible", "no HyperNode up to tier 1 could hold 4 pods: r1 would hold 3 if it were empty"),
    ],
)
def test_gang_of_a_group_runs_in_one_hyper_node(size: int, verdict: str, text: str) -> None:
    placement = placed(OF_GROUP, size, WITH_PLUGIN, *RACKS, group(size, **HARD))

    assert placement.gang is not None
    assert placement.verdict == verdict
    assert text in placement.gang.text


def test_gang_waits_for_a_hyper_node_with_room() -> None:
    other = make_pod("other").gpu(1).node_name("a").obj()
    placement = placed(OF_GROUP, 3, WITH_PLUGIN, *RACKS, group(3, **HARD), other)

    assert placement.gang is not None
    assert placement.verdict == "Waiting"
    assert placement.gang.text.startswith(
        "no HyperNode up to tier 1 has room for the 3 pods of gang g now: r1 has the most, for 2; "
        "2 HyperNodes up to tier 1, 1 node has no HyperNode up to tier 1"
    )


@pytest.mark.parametrize("nodes", ["a", "d"])
def test_gang_that_runs_stays_in_its_hyper_node(nodes: str) -> None:
    running = OF_GROUP.node_name(nodes).annotate("scheduling.k8s.io/group-name", "g").obj()
    running["metadata"]["name"] = "g-1"
    placement = placed(OF_GROUP, 4, WITH_PLUGIN, *RACKS, group(4, **HARD), running, cards=(2, 1, 8, 8))

    in_none = "gang g has a pod on a node without a HyperNode up to tier 1"
    in_r1 = "gang g runs in r1, which has room for 2 of the 3 missing pods; r2 has room for all"
    assert placement.gang is not None
    assert placement.verdict == "Waiting"
    assert placement.gang.text.startswith(in_r1 if nodes == "a" else in_none)


@pytest.mark.parametrize(("size", "verdict"), [(3, "Feasible"), (4, "Waiting")])
def test_gang_that_has_started_in_part_goes_on_in_its_hyper_node(size: int, verdict: str) -> None:
    running = OF_GROUP.node_name("a").annotate("scheduling.k8s.io/group-name", "g").obj()
    running["metadata"]["name"] = "g-1"
    placement = placed(OF_GROUP, size, WITH_PLUGIN, *RACKS, group(2, **HARD), running, cards=(2, 1, 8, 8))

    assert placement.gang is not None
    assert (placement.verdict, placement.gang.fit) == (verdict, 3)


@pytest.mark.parametrize(
    ("others", "topology"),
    [
        pytest.param((WITH_PLUGIN, *RACKS), {"mode": "soft"}, id="soft"),
        pytest.param((CHART, *RACKS), HARD, id="without the plugin"),
        pytest.param((WITH_PLUGIN, *RACKS), {"mode": "hard"}, id="without a tier"),
        pytest.param((WITH_PLUGIN, *RACKS), {"highestTierName": "row"}, id="of no tier's name"),
        pytest.param((WITH_PLUGIN, *RACKS), {"highestTierAllowed": 2}, id="above all tiers"),
        pytest.param((WITH_PLUGIN, NO_HYPER_NODES), HARD, id="without HyperNodes"),
    ],
)
def test_gang_that_may_run_anywhere_fits(others: tuple[Object, ...], topology: Object) -> None:
    placement = placed(OF_GROUP, 5, *others, group(5, **topology))

    assert placement.verdict == "Feasible"
    assert placement.unmodelled == ()


@pytest.mark.parametrize(
    ("others", "spec", "reason"),
    [
        pytest.param(
            RACKS, {}, "it is not known whether Volcano's configuration has the plugin", id="no configuration"
        ),
        pytest.param((WITH_PLUGIN,), {}, "the HyperNodes are not known", id="no HyperNodes"),
        pytest.param(
            (WITH_PLUGIN, *RACKS, hyper_node("x", 1, *named("a"))), {}, "x have nodes in common", id="in common"
        ),
        pytest.param(
            (WITH_PLUGIN, *RACKS),
            {"subGroupPolicy": [{"networkTopology": {"mode": "soft"}}]},
            "its subgroups can have domains of their own (subGroupPolicy)",
            id="subgroups",
        ),
    ],
)
def test_gang_of_a_group_is_unknown(others: tuple[Object, ...], spec: Object, reason: str) -> None:
    made = group(2, **HARD)
    placement = placed(OF_GROUP, 2, *others, {**made, "spec": {**made["spec"], **spec}})

    assert placement.verdict == "Unknown"
    assert reason in placement.message


def test_hard_gang_without_a_hyper_node_of_its_tier_is_not_denied() -> None:
    placement = placed(OF_GROUP, 2, WITH_PLUGIN, hyper_node("x", 3, *named("a")), group(2, **HARD))

    assert placement.verdict == "Infeasible"
    assert "Gang g runs in one HyperNode up to tier 1, and no node has a HyperNode up to tier 1" in placement.message
    assert placement.deny_exemption == "HyperNodes can change"


def test_preference_says_over_how_many_hyper_nodes_the_gang_would_be_spread() -> None:
    placement = placed(OF_GROUP, 4, WITH_PLUGIN, *RACKS, group(4, mode="soft", highestTierAllowed=1))

    assert placement.gang is not None
    assert placement.verdict == "Feasible"
    assert placement.gang.text.endswith(
        "would be spread over 2 HyperNodes up to tier 1: the largest has room for 3 of 4"
    )


@pytest.mark.parametrize(
    ("size", "others", "verdict"),
    [
        (2, (WITH_PLUGIN, *RACKS), "Feasible"),
        (3, (WITH_PLUGIN, *RACKS), "Unknown"),
        (4, (WITH_PLUGIN, *RACKS), "Infeasible"),
        (5, (CHART, *RACKS), "Feasible"),
        (5, RACKS, "Unknown"),
    ],
)
def test_pods_of_an_owner_run_in_one_hyper_node(size: int, others: tuple[Object, ...], verdict: str) -> None:
    """Volcano starts them one by one. The domain of the first can have no room for all of three."""
    placement = placed(OF_OWNER, size, *others)

    assert placement.verdict == verdict
    if size == 3:
        assert placement.message == "the first pod of gang g chooses one of r1, r2 by chance; r1 has room for all"


def warnings_of(pod: PodBuilder, *others: Object) -> list[str]:
    verdict = admit_pod(pod.annotate(f"{DOMAIN}/gang-size", "2").obj(), POLICY, view(*others))
    return [each for each in verdict.warnings if each.startswith("Volcano ignores")]


@pytest.mark.parametrize(
    ("others", "topology", "reason"),
    [
        ((CHART,), HARD, "its configuration has no plugin network-topology-aware"),
        ((CHART,), {"mode": "soft"}, "its configuration has no plugin network-topology-aware"),
        ((WITH_PLUGIN, NO_HYPER_NODES), HARD, "no HyperNode has tier 1 or a higher one"),
        ((WITH_PLUGIN, *RACKS), {"mode": "hard"}, "mode hard needs highestTierAllowed or highestTierName"),
        ((WITH_PLUGIN, *RACKS), {"highestTierName": "row"}, "no HyperNode has the tierName row"),
        ((WITH_PLUGIN, *RACKS), HARD, ""),
        ((WITH_PLUGIN, *RACKS), {"mode": "soft"}, ""),
        (RACKS, HARD, ""),
    ],
)
def test_request_that_has_no_effect_is_warned_about(others: tuple[Object, ...], topology: Object, reason: str) -> None:
    found = warnings_of(OF_GROUP, *others, group(2, **topology))

    assert found == ([f"Volcano ignores the network topology of PodGroup g: {reason}"] if reason else [])


def test_annotations_that_have_no_effect_are_warned_about() -> None:
    assert warnings_of(OF_OWNER, CHART) == [
        "Volcano ignores the network topology of the pods: its configuration has no plugin network-topology-aware"
    ]


def advised(replicas: int, least: int, *others: Object, within: str = "", **spec: Any) -> Advised:
    """Return the advice on a Volcano Job with `replicas` pods; it starts with `least` of them."""
    worker = make_pod("").gpu(1).annotate(TYPE, "training")
    template = (worker.annotate(f"{DOMAIN}/within", within).annotate(*REQUIRED) if within else worker).template()
    tasks = [{"name": "w", "replicas": replicas, "template": template}]
    content = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "bert", "namespace": "default"},
        "spec": {"schedulerName": "volcano", "minAvailable": least, "queue": "default", "tasks": tasks, **spec},
    }
    fields: Object = {"kind": "Job", "group": "batch.volcano.sh", "resource": ""}
    verdict = admit_request(make_request(content, namespace="default", **fields), POLICY, view(*others))
    assert isinstance(verdict, Advised)
    return verdict


@pytest.mark.parametrize(
    ("replicas", "least", "verdict"),
    [
        (3, 3, "Feasible"),
        (4, 4, "Infeasible"),
        (3, 2, "Feasible"),
        (4, 2, "Unknown"),
        (4, 1, "Unknown"),
        (5, 4, "Infeasible"),
    ],
)
@pytest.mark.parametrize("spec", [{"networkTopology": HARD}, {"within": "rack"}])
def test_volcano_job_runs_in_one_hyper_node(replicas: int, least: int, verdict: str, spec: Object) -> None:
    """With a smaller least number, Volcano can look for room for all pods. In r1, there is room for three."""
    found = advised(replicas, least, WITH_PLUGIN, *RACKS, **spec).placement

    assert found is not None
    assert found.verdict == verdict


def test_volcano_job_runs_anywhere_without_the_plugin() -> None:
    found = advised(5, 5, CHART, *RACKS, networkTopology=HARD)

    assert found.placement is not None
    assert found.placement.verdict == "Feasible"
    assert found.warnings == (
        "Volcano ignores the network topology of the pods: its configuration has no plugin network-topology-aware",
    )
