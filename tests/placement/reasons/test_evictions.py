"""What kube-scheduler's preemption does, in words."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from tests.support.preemption import ROOM, TWO_CARDS, budget, preempting, running
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.reasons.evictions import eviction_lines, eviction_text, eviction_warning, time_text

_NOW = 1_767_236_400.0  # 2026-01-01T03:00:00Z


def test_a_victim_is_described_by_priority_cards_and_time() -> None:
    info = node("a", running("train-3", 7, 8, "2026-01-01T00:00:00Z"), capacity=ROOM)
    (line, alone) = eviction_lines(preempting(make_pod().gpu(8), info), Snapshot.of([info]), _NOW)
    assert line == "kube-scheduler would evict 1 pod on a: default/train-3 (priority 7, 8 cards, runs for 3 h)"
    assert alone == "no controller creates train-3 again"


def test_equal_descriptions_are_not_repeated() -> None:
    pods = (running(f"p-{at}", 7, 4, "2026-01-01T00:00:00Z") for at in range(2))
    info = node("a", *pods, capacity=ROOM)
    (line, *_) = eviction_lines(preempting(make_pod().gpu(8), info), Snapshot.of([info]), _NOW)
    assert line.endswith("2 pods on a: default/p-0 (priority 7, 4 cards, runs for 3 h), default/p-1")


def test_the_rest_of_a_gang_idles() -> None:
    def member(at: int) -> PodBuilder:
        return running(f"bert-{at}", 1, 2, "2026-01-01T00:00:00Z").annotate("maip.mxsf.io/gang", "bert")

    nodes = [node(name, member(at), capacity=TWO_CARDS) for at, name in enumerate("abcd")]
    nodes.append(node("e", running("solo", 0, 2, "2026-01-01T00:00:00Z"), capacity=TWO_CARDS))
    of_solo = eviction_lines(preempting(make_pod().gpu(2), *nodes), Snapshot.of(nodes), _NOW)
    assert not any("gang" in line for line in of_solo)
    of_gang = eviction_lines(preempting(make_pod().gpu(2), nodes[0]), Snapshot.of(nodes), _NOW)
    assert "bert-0 is 1 of 4 pods of gang bert: 6 more cards would idle" in of_gang
    not_certain = eviction_lines(preempting(make_pod().gpu(2), *nodes[:2]), Snapshot.of(nodes), _NOW)
    assert not any("gang" in line for line in not_certain)


def test_what_creates_a_victim_again_is_named() -> None:
    owned = running("web-0", 1, 2, "2026-01-01T00:00:00Z").owner("Job", "web").label("app", "web")
    full, free = node("a", owned, capacity=TWO_CARDS), node("b", capacity=TWO_CARDS)
    found = preempting(make_pod().gpu(2), full, budgets=(budget(0),))
    lines = eviction_lines(found, Snapshot.of([full]), _NOW)
    assert lines[1:] == ["violates PodDisruptionBudget default/web", "Job web creates it again: it would wait"]
    assert eviction_lines(found, Snapshot.of([full, free]), _NOW)[2] == "Job web creates it again"


def test_ties_are_stated_as_ties() -> None:
    info = node("a", *(running(f"p{at}", 1, 2) for at in range(4)), capacity=ROOM)
    text = "kube-scheduler would evict 2 of these 4 pods on a: default/p0, default/p1, default/p2, default/p3"
    assert sorted(eviction_text(preempting(make_pod().gpu(4), info))) == sorted(text)
    nodes = [node(name, running(f"p-{name}", 1, 2), capacity=TWO_CARDS) for name in "ab"]
    assert eviction_text(preempting(make_pod().gpu(2), *nodes)) == (
        "kube-scheduler would evict pods on one of a, b; 1 victim each, of: default/p-a, default/p-b"
    )


def test_a_warning_names_only_pods_of_the_own_namespace() -> None:
    info = node(
        "a", running("ours", 1, 1).namespace("team"), running("theirs", 2, 1).namespace("b"), capacity=TWO_CARDS
    )
    found = preempting(make_pod().gpu(2), info)
    placement = replace(Placement.unknown(""), verdict="Waiting", preemption=found)
    own = eviction_warning(placement, "team")
    assert own == "kube-scheduler would evict 2 pods of lower priority on a; of this namespace, ours is among them"
    assert eviction_warning(placement, "other") == "kube-scheduler would evict 2 pods of lower priority on a"
    equal = [node(name, running(name, 1, 2).namespace(f"team-{name}"), capacity=TWO_CARDS) for name in "ab"]
    one_of_both = replace(placement, preemption=preempting(make_pod().gpu(2), *equal))
    assert eviction_warning(one_of_both, "team-a").endswith("; of this namespace, a may be among them")


@pytest.mark.parametrize(("verdict", "is_warned"), [("Waiting", True), ("Feasible", False), ("Infeasible", False)])
def test_only_a_pod_that_waits_is_warned_of_evictions(verdict: Any, *, is_warned: bool) -> None:
    found = preempting(make_pod().gpu(2), node("a", running("p", 1, 2), capacity=TWO_CARDS))

    warning = eviction_warning(replace(Placement.unknown(""), verdict=verdict, preemption=found), "default")

    unknown = replace(Placement.unknown(""), verdict=verdict, preemption=PredictedPreemption(is_exact=False, why="x"))

    assert bool(warning) is is_warned
    assert eviction_warning(unknown, "default") == ("evictions are not known: x" if is_warned else "")


@pytest.mark.parametrize(("pods", "waits"), [("10", False), ("1", True)])
def test_victim_waits_on_a_node_with_cards_but_no_place_for_pods(pods: str, *, waits: bool) -> None:
    owned = running("web-0", 1, 2).owner("Job", "web")
    full = node("a", owned, capacity=TWO_CARDS)
    other = node("b", running("small"), capacity=TWO_CARDS | {"pods": pods})
    found = preempting(
        make_pod().gpu(2).node_selector("pool", "x"), node("a", owned, labels={"pool": "x"}, capacity=TWO_CARDS)
    )

    lines = eviction_lines(found, Snapshot.of([full, other]), _NOW)

    assert f"Job web creates it again{': it would wait' if waits else ''}" in lines


@pytest.mark.parametrize(("free", "wait"), [(0, True), (1, False), (3, False)])
def test_victims_of_one_controller_wait_if_none_of_them_has_room(free: int, *, wait: bool) -> None:
    pods = [running("web-0", 1, 1).owner("Job", "web"), running("web-1", 1, 3).owner("Job", "web")]
    info = node("a", *pods, capacity=ROOM | {"nvidia.com/gpu": "4"})
    other = node("b", capacity=ROOM | {"nvidia.com/gpu": str(free)})
    found = preempting(make_pod().gpu(4), info)

    lines = eviction_lines(found, Snapshot.of([info, other]), _NOW)

    assert f"Job web creates them again{': they would wait' if wait else ''}" in lines


@pytest.mark.parametrize(
    ("gang", "is_warned"), [(None, True), (GangFit("bert", 4, 1, 0), False)], ids=["alone", "with other pods"]
)
def test_evictions_for_one_pod_of_a_gang_are_no_warning(gang: GangFit | None, is_warned: bool) -> None:
    """The others wait for room, too, so the pod does not start after them."""
    info = node("a", running("low", 1, 2), capacity=TWO_CARDS)
    found = preempting(make_pod().gpu(2), info)
    placement = replace(Placement.unknown(""), verdict="Waiting", preemption=found, gang=gang)

    assert bool(eviction_warning(placement, "default")) is is_warned


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (86_399, "23 h"),
        (86_400, "1 d"),
        (200_000, "2 d"),
    ],
)
def test_time_is_in_its_largest_unit(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
