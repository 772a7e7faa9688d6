"""A gang that runs in one topology domain fits if one of them has room for all of its pods."""

import pytest

from tests.placement.gang.gangs import (
    GANG,
    HOST,
    IN_A_RACK,
    TWO_RACKS,
    WORKER,
    asked,
    counted,
    gpus,
    on,
    running,
    spread,
)
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.backends.references import Within
from webhook.placement.framework.result import Placement

TAKEN = make_pod("other").gpu(3)
RACK = Within("rack")
PREFERRED = Within("rack", is_required=False)


def together(placement: Placement) -> list[tuple[str, int, int | None]]:
    assert placement.gang is not None
    assert placement.gang.together is not None
    return [(each.value, each.fits, each.fits_empty) for each in placement.gang.together.domains]


def test_gang_fits_in_the_domain_with_room_for_all() -> None:
    placement = asked(WORKER, 5, TWO_RACKS, within=RACK)

    assert counted(placement) == ("Feasible", 5, 0)
    assert placement.node in ("a", "b")
    assert together(placement) == [("1", 5, 8), ("2", 4, 4)]
    assert placement.gang is not None
    assert placement.gang.text == (
        "5 of 5 pods of gang train fit now; 1 of 2 domains of rack has room for all 5 pods: 1"
    )


def test_of_the_domains_with_room_the_smallest_is_predicted() -> None:
    assert asked(WORKER, 4, TWO_RACKS, within=RACK).node == "c"


def test_pods_that_follow_running_ones_have_no_choice_of_a_domain() -> None:
    """One rack has a pod of the gang and too little room for the others."""
    racks = on(gpus("a", 4, IN_A_RACK, rack="1"), gpus("b", 8, rack="2"))

    placement = asked(IN_A_RACK, 6, racks, within=RACK)

    assert placement.gang is not None
    assert placement.gang.together is not None
    assert placement.gang.together.first == ()


def test_gang_waits_for_the_domain_that_could_hold_it() -> None:
    placement = asked(WORKER, 6, TWO_RACKS, within=RACK)

    assert counted(placement) == ("Waiting", 5, 0)
    assert placement.total == 4
    assert placement.message == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. No domain of rack has room for the 6 pods of gang "
        "train now: 1 has the most, for 5; 2 domains of rack, 1 node has no label rack; "
        "largest free block: 9 nvidia.com/gpu on 1 node."
    )
    assert placement.suggestions == ("a gang of 5 pods would fit in 1 now",)


def test_gang_that_no_domain_could_hold_is_infeasible() -> None:
    placement = asked(WORKER, 9, TWO_RACKS, within=RACK)

    assert counted(placement) == ("Infeasible", 5, 0)
    assert "No domain of rack could hold 9 pods: 1 would hold 8 if it were empty" in placement.message
    # The node without the label could be in the rack.
    assert placement.deny_exemption == "nodes can get the label rack later"
    assert asked(IN_A_RACK, 9, TWO_RACKS, within=RACK).deny_exemption == "nodes can get the label rack later"
    assert not asked(WORKER, 18, TWO_RACKS, within=RACK).deny_exemption


def test_gang_without_a_labelled_node_is_infeasible_and_never_denied() -> None:
    for pod in (WORKER, IN_A_RACK):
        for size in (1, 2):
            placement = asked(pod, size, on(gpus("a", 4)), within=RACK)

            assert placement.verdict == ("Infeasible" if pod is IN_A_RACK or size > 1 else "Feasible")
            is_exempt = placement.deny_exemption == "nodes can get the label rack later"
            assert is_exempt == (placement.verdict == "Infeasible")


@pytest.mark.parametrize("pod", [WORKER, WORKER.spec(topologySpreadConstraints=[spread("rack")])])
def test_node_without_the_label_of_a_narrower_level_is_in_no_domain(pod: PodBuilder) -> None:
    cluster = on(gpus("b", 8, rack="1"), gpus("a", 4, rack="1", row="x"))
    within = Within("rack", below=("row",), is_native=True)

    fits, waits = asked(pod, 4, cluster, within=within), asked(pod, 5, cluster, within=within)

    assert (counted(fits), fits.node, together(fits)) == (("Feasible", 4, 0), "a", [("1", 4, 4)])
    assert counted(waits) == ("Infeasible", 4, 0)
    assert waits.deny_exemption == "nodes can get the label rack later"


def test_nodes_without_the_label_of_a_narrower_level_are_named() -> None:
    cluster = on(gpus("b", 8, rack="1"), gpus("a", 4, TAKEN, rack="1", row="x"))

    placement = asked(WORKER, 4, cluster, within=Within("rack", below=("row",)))

    assert "1 domain of rack, 1 node has no labels rack, row" in placement.message


def test_cordoned_nodes_of_a_domain_can_hold_the_gang_again() -> None:
    cordoned = node("b", labels={"rack": "1"}, unschedulable=True, capacity={"nvidia.com/gpu": "4"})

    placement = asked(WORKER, 6, on(gpus("a", 4, rack="1"), cordoned), within=RACK)

    assert placement.verdict == "Infeasible"
    assert placement.deny_exemption


def test_running_members_lock_the_domain() -> None:
    cluster = on(gpus("a", 4, *running(3), rack="1"), gpus("c", 4, rack="2"))

    placement = asked(WORKER, 5, cluster, within=RACK)

    assert counted(placement) == ("Infeasible", 4, 3)
    assert counted(asked(WORKER, 4, cluster, within=RACK)) == ("Feasible", 4, 3)


def test_members_in_two_domains_keep_the_others_waiting() -> None:
    cluster = on(gpus("a", 4, *running(1), rack="1"), gpus("c", 4, *running(1), rack="2"))

    placement = asked(WORKER, 3, cluster, within=RACK)

    assert counted(placement) == ("Waiting", 2, 2)
    assert "Gang train runs in 1, 2: all of its pods must run in one domain of rack" in placement.message


def test_empty_value_is_a_domain_and_a_missing_label_is_none() -> None:
    assert together(asked(WORKER, 2, on(gpus("a", 4, rack=""), gpus("b", 8)), within=RACK)) == [("", 4, 4)]


def test_cards_that_are_left_over_on_nodes_are_not_room_for_pods() -> None:
    nodes = (gpus(name, 8, make_pod("other").gpu(5), rack="1") for name in "abcd")

    assert together(asked(make_pod("worker").annotate(GANG, "train").gpu(4), 2, on(*nodes), within=RACK)) == [
        ("1", 0, 8)
    ]


def test_racks_of_two_zones_with_one_name_are_two_domains() -> None:
    cluster = on(gpus("a", 4, rack="1", zone="a"), gpus("b", 4, rack="1", zone="b"), gpus("c", 9, rack="1"))
    path = Within("rack", parents=("zone",))

    placement = asked(WORKER, 5, cluster, within=path)

    assert together(placement) == [("a/1", 4, 4), ("b/1", 4, 4)]
    assert counted(placement) == ("Infeasible", 4, 0)
    assert counted(asked(WORKER, 4, cluster, within=path)) == ("Feasible", 4, 0)


def test_room_is_not_known_where_the_path_of_a_domain_is_not() -> None:
    doubtful = RACK._replace(doubt="no single Topology is known")

    fits, waits = (asked(WORKER, size, TWO_RACKS, within=doubtful) for size in (5, 6))

    assert (fits.verdict, fits.node) == ("Unknown", None)
    assert fits.message.endswith("No single Topology is known.")
    assert waits.verdict == "Waiting"


def test_annotation_whose_domains_are_counted_is_not_unknown() -> None:
    pod = WORKER.annotate("kueue.x-k8s.io/podset-required-topology", "rack")

    assert asked(pod, 5, TWO_RACKS).verdict == "Unknown"
    assert counted(asked(pod, 5, TWO_RACKS, within=RACK)) == ("Feasible", 5, 0)


def test_preference_never_changes_the_verdict() -> None:
    placement = asked(WORKER, 9, TWO_RACKS, within=PREFERRED)

    assert counted(placement) == counted(asked(WORKER, 9, TWO_RACKS)) == ("Feasible", 9, 0)
    assert placement.gang is not None
    assert placement.gang.text.endswith("would be spread over 2 domains of rack: the largest has room for 5 of 9")


def test_first_pod_of_a_gang_with_pod_affinity_can_choose_a_domain_that_is_too_small() -> None:
    cluster = on(gpus("a", 6, rack="1"), gpus("b", 4, rack="2"))
    there = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["2"]}]}

    placement = asked(IN_A_RACK.prefer_node(100, there), 6, cluster, within=RACK)

    assert placement.node is None
    assert placement.verdict == "Waiting"
    assert "The first pod of gang train chooses 2, which has room for 4 of the 6 pods; 1 has room for all" in (
        placement.message
    )


def test_first_pod_that_chooses_by_chance_leaves_the_verdict_open() -> None:
    cluster = on(gpus("a", 6, rack="1"), gpus("b", 4, rack="2"))

    placement = asked(IN_A_RACK, 6, cluster, within=RACK)

    assert (placement.verdict, placement.node) == ("Unknown", None)
    assert placement.message == "the first pod of gang train chooses one of 1, 2 by chance; 1 has room for all"
    assert counted(asked(IN_A_RACK, 4, cluster, within=RACK)) == ("Feasible", 4, 0)


def test_large_gang_with_pod_affinity_is_counted_by_domains() -> None:
    cluster = on(*(gpus(f"{rack}-{number}", 16, rack=rack) for rack in "ab" for number in range(9)))

    assert counted(asked(IN_A_RACK, 128, cluster, within=RACK)) == ("Feasible", 128, 0)
    assert asked(IN_A_RACK, 300, cluster, within=RACK).verdict == "Infeasible"


def test_room_is_not_counted_beside_a_constraint_that_spreads_the_pods() -> None:
    apart = WORKER.spec(topologySpreadConstraints=[spread(HOST)])

    assert asked(apart, 3, TWO_RACKS, within=RACK).verdict == "Unknown"
    placement = asked(apart, 3, TWO_RACKS, within=PREFERRED)
    assert placement.gang is not None
    assert (placement.verdict, placement.gang.together) == ("Feasible", None)


@pytest.mark.parametrize(("skew", "size", "verdict"), [(1, 2, "Feasible"), (1, 3, "Waiting"), (2, 4, "Feasible")])
def test_kube_scheduler_counts_all_nodes_for_the_skew_of_a_gang_in_one_domain(
    skew: int, size: int, verdict: str
) -> None:
    apart = WORKER.spec(topologySpreadConstraints=[spread(HOST) | {"maxSkew": skew}])
    cluster = on(*(gpus(f"{rack}{number}", 4, rack=rack) for rack in "ab" for number in range(2)))
    native = RACK._replace(is_native=True)

    assert asked(apart, size, cluster, within=native).verdict == verdict


IN_USE = {"matchExpressions": [{"key": "use", "operator": "In", "values": ["training"]}]}


@pytest.mark.parametrize(
    ("pod", "policies", "size", "verdict"),
    [
        pytest.param(WORKER.require_node(IN_USE), {}, 3, "Feasible", id="affinity"),
        pytest.param(WORKER.node_selector("use", "training"), {}, 3, "Feasible", id="selector"),
        pytest.param(WORKER.node_selector("use", "training"), {}, 4, "Infeasible", id="not more than the skew"),
        pytest.param(
            WORKER.node_selector("use", "training"),
            {"nodeAffinityPolicy": "Ignore"},
            3,
            "Waiting",
            id="all nodes count",
        ),
        pytest.param(WORKER, {}, 3, "Waiting", id="the tainted node counts"),
        pytest.param(WORKER, {"nodeTaintsPolicy": "Honor"}, 3, "Feasible", id="the tainted node does not count"),
    ],
)
def test_nodes_that_count_for_the_skew_of_a_gang_are_those_of_its_own_selection(
    pod: PodBuilder, policies: dict[str, str], size: int, verdict: str
) -> None:
    """Rack a has two nodes for the gang, which take 4 pods and 1 pod; rack b has a node that the gang cannot use."""
    cluster = on(
        node("a0", labels={HOST: "a0", "rack": "a", "use": "training"}, capacity={"nvidia.com/gpu": "4"}),
        node("a1", labels={HOST: "a1", "rack": "a", "use": "training"}, capacity={"nvidia.com/gpu": "1"}),
        node("b0", labels={HOST: "b0", "rack": "b"}, taints=["use=other:NoSchedule"], capacity={"nvidia.com/gpu": "4"}),
    )
    apart = pod.spec(topologySpreadConstraints=[spread(HOST) | policies])

    assert asked(apart, size, cluster, within=RACK._replace(is_native=True)).verdict == verdict


@pytest.mark.parametrize(("size", "verdict"), [(2, "Feasible"), (3, "Waiting")])
def test_pods_that_follow_the_first_one_are_counted_with_their_spread(size: int, verdict: str) -> None:
    apart = IN_A_RACK.spec(topologySpreadConstraints=[spread(HOST)])
    cluster = on(*(gpus(f"{rack}{number}", 4, rack=rack) for rack in "ab" for number in range(2)))

    placement = asked(apart, size, cluster, within=RACK)

    assert placement.verdict == verdict
    assert placement.gang is not None
    assert placement.gang.together is not None


def test_pod_of_a_gang_that_has_its_size_asks_for_itself_alone() -> None:
    cluster = on(gpus("a", 4, *running(3), rack="1"), gpus("b", 4, rack="2"))

    placement = asked(WORKER, 3, cluster, within=RACK)

    assert (*counted(placement), placement.suggestions) == ("Feasible", 3, 3, ())


def test_members_that_pod_affinity_does_not_see_lock_nothing() -> None:
    outside = on(gpus("a", 4, *running(1)), gpus("b", 2, rack="1"))
    apart = on(gpus("a", 4, *running(1), rack="1"), gpus("b", 4, *running(1), rack="2"))

    assert "Gang train has a pod on a node without" not in asked(IN_A_RACK, 4, outside, within=RACK).message
    placement = asked(IN_A_RACK, 4, apart, within=RACK)
    assert placement.gang is not None
    assert (placement.verdict, placement.gang.text) == (
        "Feasible",
        "4 of 4 pods of gang train fit now; they run in 1, 2",
    )


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
        ]
    }
}


@pytest.mark.parametrize(("pod", "fits"), [(WORKER.affinity(APART), 2), (WORKER.host_port(80), 2), (WORKER, 5)])
def test_pods_that_exclude_each_other_from_a_node_are_counted_once(pod: PodBuilder, fits: int) -> None:
    assert together(asked(pod, 2, TWO_RACKS, within=RACK))[0][1] == fits


@pytest.mark.parametrize(
    ("first", "second", "size", "least", "verdict"),
    [
        pytest.param(4, 1, 4, 2, "Feasible", id="the other rack cannot start the gang"),
        pytest.param(4, 2, 4, 2, "Unknown", id="it can start exactly the least number"),
        pytest.param(4, 3, 4, 2, "Unknown", id="and more"),
        pytest.param(4, 2, 4, 3, "Feasible", id="it is one short of the least number"),
        pytest.param(4, 4, 4, 2, "Feasible", id="both have room for all"),
        pytest.param(4, 4, 5, 2, "Waiting", id="none has room for all"),
    ],
)
def test_scheduler_that_looks_for_the_least_number_may_choose_a_rack_without_room_for_all(
    first: int, second: int, size: int, least: int, verdict: str
) -> None:
    """Both racks would have room for all if they were empty."""
    racks = [
        gpus(name, 8, *([make_pod("other").gpu(8 - room)] if room < 8 else []), rack=name)
        for name, room in (("1", first), ("2", second))
    ]

    placement = asked(WORKER, size, on(*racks), least=least, within=RACK._replace(is_of_least=True))

    assert placement.verdict == verdict
    assert asked(WORKER, 4, on(*racks), least=least, within=RACK).verdict == "Feasible"
