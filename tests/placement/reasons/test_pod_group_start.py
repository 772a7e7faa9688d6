"""PodGroups of kube-scheduler that do not start their pods, or not as a gang, beside nodes with room."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, USAGE, admit_pod, policy_with
from tests.support.objects.batch_objects import KAI_TOPOLOGY, kai_group, pod_group, topology, volcano_group
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import pod_info
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Verdict, placement_of
from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.result import GangFit, Placement, Remedy
from webhook.placement.reasons.pod_group_start import as_grouped, never_starts
from webhook.placement.scheduler import PodSignature, Scheduler

NATIVE = policy_with(
    schedulers={"default-scheduler": {"backend": "native"}},
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": None}},
    placementCheck={"mode": "deny"},
)
WORKER = make_pod("g-0").annotate(TYPE, "training").gpu(2)
OF_TWO = WORKER.annotate(f"{DOMAIN}/gang", "g").annotate(f"{DOMAIN}/gang-size", "2")
OF_GROUP = WORKER.annotate(f"{DOMAIN}/gang", "g")
WITHOUT_SIZE = WORKER.spec(schedulingGroup={"podGroupName": "g"})
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10000}


def verdict_on(pod: PodBuilder, *, cards: int = 4, version: str = "v1beta1", members: int = 2, **group: Any) -> Verdict:
    """Return the verdict on `pod` on a node with so many cards, whose PodGroup "g" needs so many `members`."""
    made = pod_group("g", group="scheduling.k8s.io", members=members, **group)
    made["apiVersion"] = f"scheduling.k8s.io/{version}"
    node = make_node_object("n", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": cards})
    return admit_pod(pod.obj(), NATIVE, ClusterView(made_anew([node, HIGH, made]), Scheduler()))


def placed(pod: PodBuilder, **group: Any) -> Placement:
    placement = placement_of(verdict_on(pod, **group))
    assert placement is not None
    return placement


def test_case_without_a_group_that_interferes_is_feasible() -> None:
    assert placed(OF_TWO, priority=0).verdict == "Feasible"
    assert placed(OF_TWO.spec(priorityClassName="high"), priority=10000).verdict == "Feasible"
    assert placed(OF_TWO).verdict == "Feasible"


def test_pod_of_an_unknown_priority_may_have_that_of_its_group() -> None:
    assert placed(OF_TWO.spec(priorityClassName="unknown"), priority=10000).verdict == "Feasible"


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3", "v1alpha2"])
@pytest.mark.parametrize("pod", [OF_TWO, WITHOUT_SIZE, OF_TWO.annotate(f"{DOMAIN}/gang-size", "1")])
@pytest.mark.parametrize("members", [0, 1])
def test_pod_of_another_priority_than_its_group_never_starts(pod: PodBuilder, version: str, members: int) -> None:
    for group, own, numbers in (
        ({"priority": 10000}, pod, "got 0 and 10000"),
        ({"priorityClassName": "high"}, pod, "got 0 and 10000"),
        ({"priority": 0}, pod.spec(priorityClassName="high"), "got 10000 and 0"),
    ):
        placement = placed(own, version=version, members=members, **group)
        assert placement.verdict == "Infeasible"
        assert f"the same priority as the pod group's priority, {numbers}: PodGroup g never starts" in placement.message
        assert placement.node is None
        assert placement.binding.verdict == "Infeasible"
        assert placement.deny_exemption == "its PodGroup can change"


def test_priority_that_is_not_known_excludes_nothing() -> None:
    assert placed(OF_TWO.spec(priorityClassName="missing"), priority=0).verdict == "Feasible"
    assert placed(OF_TWO, priorityClassName="missing").verdict == "Feasible"
    assert placed(OF_TWO, priority=10000, parentCompositePodGroupName="all").verdict == "Feasible"
    assert placed(OF_TWO, priority="high").verdict == "Feasible"


def test_group_with_the_policy_basic_starts_in_part_and_is_not_denied() -> None:
    verdict = verdict_on(OF_TWO.annotate(f"{DOMAIN}/gang-size", "3"), members=0, priority=0)

    (in_part,) = [each for each in verdict.warnings if "would start" in each]
    assert in_part == (
        "2 of the 3 pods of gang g would start and hold what they request while the others wait, and two such gangs "
        "can deadlock: scheduler default-scheduler starts pods one by one"
    )
    placement = placement_of(verdict)
    assert placement is not None
    assert placement.binding.verdict == "Feasible"
    assert placement.deny_exemption == "PodGroup g has the policy basic, which starts its pods one by one"


@pytest.mark.parametrize(
    ("members", "exemption"), [(0, "PodGroup g has the policy basic, which starts its pods one by one"), (1, "")]
)
def test_no_pod_of_a_group_that_never_starts_holds_a_node_while_others_lack_room(members: int, exemption: str) -> None:
    """With the priority of the group, the pods would start one by one. A gang that no cluster can hold is refused."""
    verdict = verdict_on(OF_TWO.spec(priorityClassName="high"), cards=2, members=members, priority=0)

    placement = placement_of(verdict)
    assert placement is not None
    assert (placement.verdict, placement.binding.verdict) == ("Infeasible", "Infeasible")
    assert placement.deny_exemption == exemption
    assert [each for each in verdict.warnings if "PodGroup g never starts" in each]
    assert not [each for each in verdict.warnings if "would start" in each]


def test_pod_alone_that_fits_nowhere_is_denied_with_any_policy() -> None:
    for members in (0, 2):
        assert placed(WITHOUT_SIZE.gpu(8), members=members, priority=0).deny_exemption == ""


def test_group_of_kube_scheduler_runs_in_one_domain() -> None:
    topology = {"topology": [{"key": "rack"}]}
    without_label = placed(OF_TWO, priority=0, schedulingConstraints=topology)
    without_room = placed(OF_TWO.gpu(8), priority=0, schedulingConstraints=topology)
    by_host = {"topology": [{"key": "kubernetes.io/hostname"}]}
    too_small = placed(OF_TWO.gpu(3), priority=0, schedulingConstraints=by_host)

    assert (without_label.verdict, without_label.unmodelled) == ("Infeasible", ())
    assert without_label.message == (
        "1/1 nodes are available. Gang g runs in one domain of rack, and no node has the label rack; "
        "largest free block: 4 nvidia.com/gpu on 1 node."
    )
    assert without_label.deny_exemption == "nodes can get the label rack later"
    assert too_small.verdict == "Infeasible"
    assert too_small.deny_exemption == "its PodGroup can change"
    assert without_room.verdict == "Infeasible"
    other_priority = placed(OF_TWO.gpu(3), priority=10000, schedulingConstraints=by_host)
    assert (other_priority.verdict, other_priority.deny_exemption) == ("Infeasible", "its PodGroup can change")


@pytest.mark.parametrize(
    ("scheduler", "spec", "plugin"),
    [
        ("volcano", {"networkTopology": {"highestTierAllowed": 1}}, "network-topology-aware"),
        ("volcano", {"networkTopology": {"mode": "hard"}}, "network-topology-aware"),
        ("volcano", {"networkTopology": {"mode": "soft"}}, ""),
        ("kai-scheduler", {"topologyConstraint": {"preferredTopologyLevel": "rack"}}, ""),
        ("kai-scheduler", {"topologyConstraint": {"topology": "t", "preferredTopologyLevel": "rack"}}, "topology"),
        ("kai-scheduler", {"topologyConstraint": {"topology": "t"}}, "topology"),
    ],
)
def test_group_of_a_batch_scheduler_with_a_required_topology_is_not_known_to_fit(
    scheduler: str, spec: dict[str, Any], plugin: str
) -> None:
    placement = placed_by(scheduler, spec)

    found = (placement.verdict, "which is not modelled" in placement.message, plugin in placement.unmodelled)
    assert found == (("Unknown", True, True) if plugin else ("Feasible", False, False))


def test_group_of_kai_fits_in_a_domain_of_a_topology_that_is_known() -> None:
    spec = {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}}

    known = placed_by("kai-scheduler", spec, topology("t", KAI_TOPOLOGY, "rack"))
    unknown = placed_by("kai-scheduler", spec)

    assert known.verdict == "Feasible"
    assert unknown.verdict == "Unknown"
    assert unknown.message.endswith("No single Topology is known that has the level rack.")


@pytest.mark.parametrize(
    ("levels", "constraint", "text"),
    [
        (["rack"], {"preferredTopologyLevel": "rack"}, ""),
        (
            ["zone", "rack"],
            {"preferredTopologyLevel": "rack"},
            "KAI gives it no nodes without the labels of Topology t",
        ),
        ([], {"preferredTopologyLevel": "rack"}, "no single Topology is known that has the level rack"),
        (["zone"], {"preferredTopologyLevel": "rack"}, "no single Topology is known that has the level rack"),
        (["rack"], {}, "with neither a required nor a preferred level, KAI starts no pods"),
    ],
)
def test_preference_of_kai_can_leave_out_nodes(levels: list[str], constraint: dict[str, str], text: str) -> None:
    spec = {"topologyConstraint": {"topology": "t", **constraint}}

    placement = placed_by("kai-scheduler", spec, topology("t", KAI_TOPOLOGY, *levels))

    assert placement.verdict == ("Unknown" if text else "Feasible")
    assert text in placement.message


APART = [
    {"name": each, "minMember": 1, "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}}
    for each in ("default", "b")
]


def test_domains_of_several_subgroups_of_kai_are_not_known() -> None:
    racks, of_zone = topology("t", KAI_TOPOLOGY, "zone", "rack"), {"topology": "t", "requiredTopologyLevel": "zone"}

    placement = placed_by("kai-scheduler", {"subGroups": APART}, racks)
    in_zone = placed_by("kai-scheduler", {"subGroups": APART, "topologyConstraint": of_zone}, racks)

    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("topology",))
    why = "which is not modelled: its subgroups can have domains of their own (subGroups)."
    assert placement.message.endswith(f"PodGroup g has a topologyConstraint, {why}")
    # No node has a zone.
    assert in_zone.verdict == "Infeasible"


def test_node_that_cannot_hold_a_pod_may_lack_the_labels_of_its_topology() -> None:
    spec = {"topologyConstraint": {"topology": "t", "preferredTopologyLevel": "rack"}}
    control_plane = make_node_object("control-plane", labels={USAGE: "training"})

    assert placed_by("kai-scheduler", spec, topology("t", KAI_TOPOLOGY, "rack"), control_plane).verdict == "Feasible"


@pytest.mark.parametrize(("parts", "verdict"), [(["default"], "Infeasible"), (["default", "launcher"], "Unknown")])
def test_pods_of_several_subgroups_can_differ(parts: list[str], verdict: str) -> None:
    spec, pod = {"subGroups": [{"name": each, "minMember": 6 // len(parts)} for each in parts]}, OF_GROUP
    large = make_node_object("n2", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": 8})
    other = make_pod("other").gpu(8).node_name("n2").obj()

    placement, now = placed_by("kai-scheduler", spec, pod=pod), placed_by("kai-scheduler", spec, large, other, pod=pod)

    assert (placement.verdict, now.verdict) == (verdict, "Unknown" if len(parts) > 1 else "Waiting")
    for each in (placement, now):
        assert ("The pods of other subgroups of PodGroup g can differ." in each.message) == (len(parts) > 1)


@pytest.mark.parametrize("scheduler", ["volcano", "kai-scheduler", "default-scheduler"])
def test_shortage_for_a_number_that_only_the_group_states_refuses_no_pod(scheduler: str) -> None:
    """One of its three pods can be a launcher without cards."""
    of_three = OF_GROUP.annotate(f"{DOMAIN}/gang-size", "3")

    unstated, stated = (
        placed(pod, members=3) if scheduler == "default-scheduler" else placed_by(scheduler, {"minMember": 3}, pod=pod)
        for pod in (OF_GROUP, of_three)
    )

    assert (unstated.verdict, stated.verdict) == ("Infeasible", "Infeasible")
    assert unstated.deny_exemption == "the other pods of its PodGroup can request less"
    assert stated.deny_exemption == ""


def test_pod_in_no_subgroup_is_not_refused_for_the_number_of_pods() -> None:
    spec = {"subGroups": [{"name": each, "minMember": 3} for each in "ab"]}

    placement = placed_by("kai-scheduler", spec, pod=OF_GROUP)

    assert (placement.verdict, placement.deny_exemption) == ("Infeasible", "its PodGroup can change")


@pytest.mark.parametrize("subgroups", [[], [{"name": "default", "minMember": 2}]])
def test_empty_label_of_a_subgroup_names_the_default(subgroups: list[dict[str, Any]]) -> None:
    labelled = OF_TWO.label("kai.scheduler/subgroup-name", "")

    assert placed_by("kai-scheduler", {"subGroups": subgroups}, pod=labelled).verdict == "Feasible"


def test_pod_without_a_subgroup_of_its_group_never_starts() -> None:
    placement = placed_by("kai-scheduler", {"subGroups": [{"name": "a", "minMember": 2}]})

    assert (placement.verdict, placement.deny_exemption) == ("Infeasible", "its PodGroup can change")
    label = "kai.scheduler/subgroup-name=default"
    assert placement.message.endswith(f"PodGroup g has no subgroup for a pod with the label {label}: it never starts.")


def placed_by(
    scheduler: str, spec: dict[str, Any], *others: dict[str, Any], pod: PodBuilder | None = None
) -> Placement:
    """Return the placement of a pod in the group g with `spec` of `scheduler`, beside `others`."""
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": scheduler}})
    node = make_node_object("n", labels={USAGE: "training", "rack": "1"}, capacity={"nvidia.com/gpu": 4})
    made = volcano_group("g") if scheduler == "volcano" else kai_group("g")
    view = made_anew([node, {**made, "spec": {**made["spec"], **spec}}, *others])
    placement = placement_of(admit_pod((pod or OF_TWO).obj(), policy, ClusterView(view, scheduler_for(policy))))

    assert placement is not None
    return placement


@pytest.mark.parametrize(
    ("before", "after"), [("", "PodGroup g has the policy basic"), ("cordoned nodes", "cordoned nodes")]
)
def test_first_reason_not_to_refuse_a_pod_stands(before: str, after: str) -> None:
    (group,) = (made_anew([pod_group("g", group="scheduling.k8s.io", members=0)]).pod_groups.native or {}).values()
    fit = GangFit("g", 3, 2, 0)
    infeasible = replace(Placement.unknown(""), verdict="Infeasible", deny_exemption=before, gang=fit)
    pod = PodSignature.of(WORKER.obj()).info

    found = as_grouped(infeasible, group, pod, 3, Snapshot.of(()))

    assert group.is_basic
    assert found.deny_exemption.startswith(after)


@pytest.mark.parametrize("verdict", ["Feasible", "Waiting", "Unknown", "Infeasible"])
def test_nothing_is_left_of_the_place_of_a_pod_that_never_starts(verdict: Any) -> None:
    """No change of the pod or of a node helps. What is not known, or never fits anyway, stays as it is."""
    group = PodGroup("default", "g", 3)
    remedy = Remedy("ask for less", "n", None, lambda info, nodes: (info, nodes))
    gang = GangFit("g", 2, 2, 0, next_message="0/1 nodes are available.")
    own = Placement(
        verdict, "n", 1, 1, "1/1 nodes are available.", {"n": {"total": 1}}, (), ("ask for less",), (remedy,)
    )
    own = replace(own, gang=replace(gang, own=own))

    found = as_grouped(own, group, pod_info(WORKER), 2, Snapshot.of([]))

    if verdict in ("Unknown", "Infeasible"):
        assert found == own
        return
    never = "PodGroup g needs 3 pods, and the gang has 2: it never starts"
    assert (found.verdict, found.node, found.scores, found.suggestions, found.remedies) == (
        "Infeasible",
        None,
        {},
        (),
        (),
    )
    assert found.message == f"1/1 nodes are available. {never}."
    assert found.deny_exemption == "its PodGroup can change"
    assert found.gang is not None
    assert (found.gang.own, found.gang.next_message) == (None, never)


def test_pod_in_no_subgroup_holds_nothing_where_its_topology_is_not_known_either() -> None:
    constraint = {"topology": "t", "requiredTopologyLevel": "rack"}
    spec = {"minMember": 1, "topologyConstraint": constraint, "subGroups": [{"name": "a", "minMember": 1}]}

    placement = placed_by("kai-scheduler", spec)

    assert (placement.verdict, placement.binding.verdict) == ("Unknown", "Unknown")


@pytest.mark.parametrize(("size", "starts"), [(0, True), (2, False), (3, True), (4, True)])
def test_group_starts_with_exactly_the_pods_that_it_needs(size: int, starts: bool) -> None:
    """The size 0 is not known."""
    assert (never_starts(PodGroup("default", "g", 3), pod_info(WORKER), size, Snapshot.of([])) == "") is starts
