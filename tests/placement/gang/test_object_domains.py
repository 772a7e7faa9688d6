"""The pods of an object that run together wait until one domain has room for all of them."""

from dataclasses import replace
from itertools import repeat
from typing import Any

import pytest

from tests.placement.gang.gangs import HOST, IN_A_RACK, TWO_RACKS, WORKER, gpus, on, running, spread
from tests.support.objects.batch_objects import workload
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.backends.references import GangRequest, Within
from webhook.cluster.batch.kueue import KueueObjects, Workload
from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.names import KUEUE_TOPOLOGY
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.gang import template_domains
from webhook.placement.gang.object_domains import PlacedRole, anywhere, as_together, with_domains, without_count
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.policy.spec.document import PolicySpec

RACK = Within("rack")
CARD = "nvidia.com/gpu"
GROUP = PodGroup("default", "train", 0)


def answered(
    size: int, *pods: PodBuilder, within: Within | None = RACK, base: Snapshot = TWO_RACKS.base, **fields: Any
) -> tuple[GangFit, Placement]:
    """Return the fit of an object with `size` pods of each of `pods`, and the verdict on it."""
    return answered_templates([(pod, size) for pod in pods], within=within, base=base, **fields)


def answered_templates(
    templates: list[tuple[PodBuilder, int]],
    *,
    within: Within | None = RACK,
    base: Snapshot = TWO_RACKS.base,
    size: int = 0,
    **fields: Any,
) -> tuple[GangFit, Placement]:
    """Return the fit of an object with templates of so many pods, placed one after the other, and the verdict on it.

    It is of a gang of `size` pods, or of its pods.
    """
    roles: list[PlacedRole] = []
    after = base
    for pod, number in templates:
        found = place_replicas(Scheduler(), after, repeat(pod.obj()), number, read=anywhere)
        roles.append(((Scheduler(), PodSignature.of(pod.obj())), found))
        after = found.snapshot
    size = size or sum(number for _, number in templates)
    gang = GangRequest("train", size, "volcano", starts_whole=True, within=within, **fields)
    placed = min(size, sum(found.placed for _, found in roles))
    fit = with_domains(GangFit("train", size, placed, 0), gang, roles, PolicySpec(), base, never)
    return fit, as_together(roles[0][1].first, gang, fit)


def test_object_fits_if_one_domain_has_room_for_all_of_its_pods() -> None:
    fit, placement = answered(5, WORKER)

    assert (placement.verdict, fit.fit, fit.most) == ("Feasible", 5, None)
    assert placement.gang == fit


@pytest.mark.parametrize(("size", "most", "text"), [(6, None, "has room for the 6 pods"), (9, 8, "could hold 9 pods")])
def test_object_waits_if_no_domain_has_room_for_all_of_its_pods(size: int, most: int | None, text: str) -> None:
    fit, placement = answered(size, WORKER)

    assert (placement.verdict, placement.node, fit.fit, fit.most) == ("Waiting", None, 5, most)
    assert f"No domain of rack {text}" in placement.message


@pytest.mark.parametrize(("size", "most"), [(6, None), (9, 8)])
def test_other_objects_can_create_pods_of_a_gang_in_a_rack_whose_node_is_kept_free_for_a_while(
    size: int, most: int | None
) -> None:
    held = node("b", labels={"rack": "1"}, taints=["node.kubernetes.io/not-ready:NoSchedule"], capacity={CARD: "4"})

    fit, _ = answered_templates([(WORKER, 2)], size=size, base=on(gpus("a", 4, rack="1"), held).base)

    assert fit.most == most


@pytest.mark.parametrize(("size", "verdict"), [(6, "Feasible"), (5, "Unknown")])
def test_pods_that_their_parts_do_not_divide_are_not_counted(size: int, verdict: str) -> None:
    fit, placement = answered(size, WORKER, within=RACK._replace(part=2))

    assert placement.verdict == verdict
    assert bool(fit.doubt) is (verdict == "Unknown")


def test_preference_of_an_object_changes_nothing_but_the_text() -> None:
    fit, placement = answered(9, WORKER, within=RACK._replace(is_required=False))

    assert (placement.verdict, fit.fit) == ("Feasible", 9)
    assert "would be spread over 2 domains of rack" in fit.text


def test_pods_that_follow_each_other_keep_the_verdict_of_their_affinity() -> None:
    fit, placement = answered(4, IN_A_RACK)

    assert (placement.verdict, fit.fit) == ("Feasible", 4)
    assert fit.together is not None


@pytest.mark.parametrize(
    ("cpu", "verdict", "text"),
    [
        ("2", "Waiting", "chooses small, which has room for 2 of the 4 pods; large has room for all"),
        ("0", "Unknown", "chooses one of large, small by chance; large has room for all"),
    ],
)
def test_racks_that_the_first_pod_can_choose_are_named(cpu: str, verdict: str, text: str) -> None:
    half = make_pod("other").gpu(5).requests(cpu=cpu)
    nodes = gpus("a", 3, make_pod("other").gpu(1), rack="small"), gpus("b", 9, half, rack="large")

    fit, placement = answered(4, IN_A_RACK, base=on(*nodes).base)

    assert (placement.verdict, fit.is_complete) == (verdict, verdict == "Waiting")
    assert f"the first pod of gang train {text}" in fit.unknown_text


def test_room_for_several_templates_in_one_domain_is_not_known() -> None:
    fit, placement = answered(2, WORKER, WORKER.label("role", "other"))

    assert fit.together is None
    assert (placement.verdict, placement.node) == ("Unknown", None)
    known = "Whether one domain of rack has room for all pods is not known"
    assert placement.message.endswith(f"{known}: its templates differ.")


@pytest.mark.parametrize(
    ("workers", "within", "most", "text"),
    [
        (5, RACK, None, "its templates differ"),
        (9, RACK, 9, "No domain of rack could hold 9 pods: 1 would hold 8 if it were empty"),
        (8, RACK, None, "its templates differ"),
        (8, RACK._replace(is_native=True), 8, "No domain of rack could hold 9 pods: 1 would hold 8 if it were empty"),
    ],
)
def test_templates_that_no_domain_could_hold_never_fit(
    workers: int, within: Within, most: int | None, text: str
) -> None:
    base = on(gpus("a", 4, rack="1"), gpus("b", 4, rack="1"), gpus("c", 6, rack="2")).base
    templates = [(WORKER, workers), (WORKER.label("role", "other"), 1)]

    fit, placement = answered_templates(templates, within=within, base=base)

    assert (placement.verdict, fit.most) == ("Unknown" if most is None else "Waiting", most)
    assert text in placement.message


def test_templates_that_nodes_without_the_label_could_hold_are_unknown() -> None:
    templates = [(WORKER, 9), (WORKER.label("role", "other"), 1)]

    fit, placement = answered_templates(templates)

    assert (placement.verdict, fit.never) == ("Unknown", "")


def test_reason_why_the_room_in_one_domain_is_not_known_is_given() -> None:
    apart = WORKER.spec(topologySpreadConstraints=[spread(HOST)])
    assigned = Workload.of(workload("other", WORKER.obj(), ["rack"], (["1"], 1)))
    base = replace(TWO_RACKS.base, kueue=KueueObjects(workloads={("default", "other"): assigned}))

    found = [answered(2, apart), answered(2, WORKER.annotate(KUEUE_TOPOLOGY, "rack"), base=base)]

    assert [(placement.verdict, fit.doubt) for fit, placement in found] == [
        ("Unknown", "its pods have topology spread constraints with DoNotSchedule"),
        ("Unknown", "pods of Workload other of Kueue have no node yet"),
    ]


@pytest.mark.parametrize(
    ("size", "verdict", "most"),
    [
        pytest.param(2, "Unknown", None, id="there is room"),
        pytest.param(6, "Waiting", None, id="there is no room now"),
        pytest.param(9, "Waiting", 8, id="no rack could hold them"),
    ],
)
@pytest.mark.parametrize("doubt", ["", "no single Topology is known that has the level rack"])
def test_a_doubt_about_the_room_leaves_only_pods_unknown_that_fit(
    size: int, verdict: str, most: int | None, doubt: str
) -> None:
    assigned = Workload.of(workload("other", WORKER.obj(), ["rack"], (["1"], 0 if doubt else 1)))
    base = replace(TWO_RACKS.base, kueue=KueueObjects(workloads={("default", "other"): assigned}))

    fit, placement = answered(
        size, WORKER.annotate(KUEUE_TOPOLOGY, "rack"), base=base, within=RACK._replace(doubt=doubt)
    )

    assert (placement.verdict, fit.most) == (verdict, most)
    assert bool(fit.doubt) is (verdict == "Unknown")


@pytest.mark.slow
def test_more_pods_than_are_counted_one_after_the_other_are_unknown() -> None:
    nodes = on(*[gpus(f"n{number}", 1, rack="a") for number in range(102)]).base
    apart = WORKER.spec(topologySpreadConstraints=[spread(HOST)])

    fit, placement = answered(102, apart, base=nodes, within=RACK._replace(is_native=True))

    assert (placement.verdict, fit.doubt) == ("Unknown", "at most 100 pods are counted")


def test_template_without_pods_is_no_second_template() -> None:
    fit, placement = answered_templates([(WORKER, 5), (WORKER.label("role", "other"), 0)])

    assert (placement.verdict, fit.together is None) == ("Feasible", False)


@pytest.mark.parametrize(
    ("group", "size", "verdict", "text"),
    [
        # Other objects have created three pods of the gang in rack 2, which has a free card.
        pytest.param(GROUP, 4, "Feasible", "1 of 2 domains of rack has room for the missing pod: 2", id="it has room"),
        pytest.param(
            GROUP, 5, "Waiting", "runs in 2, which has room for 1 of the 2 missing pods; 1 has room", id="it has not"
        ),
        pytest.param(None, 5, "Feasible", "room for all 5 pods: 1", id="the object has a group of its own"),
    ],
)
def test_running_pods_of_the_group_that_others_created_decide_on_the_domain(
    group: PodGroup | None, size: int, verdict: str, text: str
) -> None:
    base = on(gpus("a", 5, rack="1"), gpus("c", 4, *running(3), rack="2")).base

    fit, placement = answered_templates([(WORKER, size - 3)], size=size, group=group, base=base)

    assert (placement.verdict, fit.fit) == (verdict, size if verdict == "Feasible" else 4)
    assert text in fit.text


@pytest.mark.parametrize(("pods", "verdict"), [(2, "Feasible"), (3, "Waiting")])
def test_pods_that_follow_those_of_other_objects_need_room_beside_them(pods: int, verdict: str) -> None:
    base = on(gpus("a", 9, rack="1"), gpus("c", 4, IN_A_RACK, IN_A_RACK, rack="2")).base

    fit, placement = answered_templates([(IN_A_RACK, pods)], size=pods + 2, base=base)

    assert (placement.verdict, bool(fit.together and fit.together.first)) == (verdict, False)


@pytest.mark.parametrize(("cards", "verdict"), [(4, "Feasible"), (3, "Waiting")])
def test_pods_that_other_objects_will_create_need_room_in_the_same_domain(cards: int, verdict: str) -> None:
    """One of the four pods runs, and the object has two."""
    base = on(gpus("a", 9, rack="1"), gpus("c", cards, IN_A_RACK, rack="2")).base

    fit, placement = answered_templates([(IN_A_RACK, 2)], size=4, base=base)

    assert (placement.verdict, fit.fit) == (verdict, cards)


LAUNCHER = IN_A_RACK.gpu(2).label("role", "launcher")


@pytest.mark.parametrize(
    ("launchers", "workers", "verdict", "room"),
    [
        # Rack 1 has 4 + 1 free cards, rack 2 has 4.
        pytest.param(1, 2, "Feasible", [3, 3], id="both racks have room"),
        pytest.param(1, 4, "Waiting", [4, 3], id="no rack has room"),
        pytest.param(2, 2, "Waiting", [3, 2], id="no rack has room for both launchers"),
        pytest.param(2, 5, "Waiting", [3, 2], id="no rack could hold them"),
    ],
)
def test_templates_that_follow_each_other_share_the_room_of_a_domain(
    launchers: int, workers: int, verdict: str, room: list[int]
) -> None:
    fit, placement = answered_templates([(LAUNCHER, launchers), (IN_A_RACK, workers)])

    assert fit.together is not None
    assert [each.fits for each in fit.together.domains] == room
    # Rack 1 has 8 cards if it is empty.
    assert fit.most == (6 if 2 * launchers + workers > 8 else None)
    assert placement.verdict == verdict


def test_room_that_depends_on_which_template_is_first_is_not_known() -> None:
    """Two pods of one card can be on one node, and leave room for one launcher only."""
    base = Snapshot.of([gpus("a", 3, rack="1"), gpus("b", 3, rack="1")])

    fit, placement = answered_templates([(LAUNCHER, 2), (IN_A_RACK, 2)], base=base)

    assert fit.together is not None
    assert [each.fits for each in fit.together.domains] == [4]
    assert placement.verdict == "Unknown"
    assert placement.message.endswith("is not known: it depends on the order in which its pods are created.")


def test_verdict_of_other_objects_is_kept() -> None:
    fit, placement = answered(5, WORKER, within=None)
    waiting = replace(placement, verdict="Waiting")

    assert fit.together is None
    assert placement.verdict == "Feasible"
    assert as_together(waiting, GangRequest("", 5, "", starts_whole=True, within=RACK), fit).verdict == "Waiting"


@pytest.mark.parametrize(("size", "node_name", "scored"), [(4, "c", {"c"}), (5, "a", {"a", "b"})])
def test_node_and_scores_are_those_in_the_domain_that_is_chosen(size: int, node_name: str, scored: set[str]) -> None:
    fit, placement = answered(size, WORKER)

    assert (placement.verdict, placement.node) == ("Feasible", node_name)
    assert fit.own is not None
    assert placement.scores == fit.own.scores
    assert not placement.scores or placement.scores.keys() == scored


def test_other_parts_that_are_not_modelled_stay_in_the_list() -> None:
    kept = [PodSignature.of(WORKER.annotate(KUEUE_TOPOLOGY, "rack").obj())]
    base = TWO_RACKS.base
    placement = replace(Scheduler().answer(PodSignature.of(WORKER.obj()), base), unmodelled=("an extender",))

    found = without_count(placement, kept, base)

    assert (found.verdict, found.node) == ("Unknown", None)
    assert found.unmodelled == ("an extender", KUEUE_TOPOLOGY)
    assert without_count(placement, [PodSignature.of(WORKER.obj())], base) == placement
    waiting = replace(placement, verdict="Waiting")
    assert without_count(waiting, kept, base) == waiting


@pytest.mark.parametrize(("most", "is_counted"), [(2, False), (3, True), (4, True)])
def test_templates_are_counted_up_to_the_most_pods(
    monkeypatch: pytest.MonkeyPatch, most: int, is_counted: bool
) -> None:
    monkeypatch.setattr(template_domains, "MOST_STEPS", most)

    fit, placement = answered_templates([(IN_A_RACK, 2), (IN_A_RACK.gpu(2), 1)])

    assert (fit.together is not None) is is_counted
    assert placement.verdict == ("Feasible" if is_counted else "Unknown")
