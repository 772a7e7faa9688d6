"""The recorder of a run against sums over its history, written plainly."""

from itertools import accumulate
from math import ceil
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_planner.simulation.backlog import TracePod
from placement_planner.simulation.outcome import Cards, Evictions, Mix, Recorder, Waits, _percentile
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot

EMPTY = Snapshot.of([node("a", capacity={"nvidia.com/gpu": 8})])
CARDS = Cards(EMPTY, lambda name: name == "nvidia.com/gpu", ())


def pod_of(**fields: Any) -> TracePod:
    facts = {"cards": 1, "priority": 0, "least": 1, "gang": None, "workload_type": "", **fields}
    return TracePod(cast("Any", SimpleNamespace(**facts)), 2.0, None)


STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=12)


@given(STEPS, st.integers(0, 3), st.integers(1, 12))
def test_allocated_cards_are_a_mean_and_a_maximum_over_time(
    steps: list[tuple[int, int]], start: int, length: int
) -> None:
    recorder, now, history = Recorder(CARDS, start, start + length), start, [0]
    recorder.begin(EMPTY)
    for seconds, cards in steps:
        recorder.advance(now + seconds, EMPTY, 0)
        # Each second has the cards that are allocated at its end.
        history[-1:] = [*[history[-1]] * seconds, history[-1] + cards]
        now += seconds
        recorder.change(cards)
    recorder.advance(now + length, EMPTY, 3)
    recorder.finish(EMPTY, 4)
    history += [history[-1]] * length

    assert recorder.allocated == pytest.approx(100 * sum(history[:length]) / length / 8, abs=0.001)
    assert recorder.most_allocated == pytest.approx(100 * max(accumulate((cards for _, cards in steps), initial=0)) / 8)
    times = [each.seconds for each in recorder.series]
    assert times == [round(start + number * length / 200, 3) for number in range(200)] + [start + length]
    expected = [100 * history[int(each.seconds - start)] / 8 for each in recorder.series[:-1]]
    assert [each.allocated for each in recorder.series[:-1]] == pytest.approx(expected)
    assert recorder.series[-1].waiting == 4


def test_a_run_without_a_span_has_the_state_at_its_end() -> None:
    recorder = Recorder(CARDS, 5, 5)
    recorder.begin(EMPTY)
    recorder.change(2)
    recorder.advance(5, EMPTY, 0)
    recorder.finish(EMPTY, 0)

    assert (recorder.allocated, recorder.most_allocated, len(recorder.series)) == (25, 25, 1)


def test_the_most_cards_can_be_allocated_between_two_arrivals() -> None:
    recorder = Recorder(CARDS, 0, 10)
    recorder.begin(EMPTY)
    for now, cards in ((1, 6), (2, 2), (3, -5), (4, 1)):
        recorder.advance(now, EMPTY, 0)
        recorder.change(cards)
    recorder.finish(EMPTY, 0)

    assert recorder.most_allocated == 100


def test_an_evicted_pod_waits_from_its_creation_to_its_first_start_and_then_from_its_eviction() -> None:
    recorder, pod = Recorder(CARDS, 0, 100), pod_of(cards=2)
    recorder.begin(EMPTY)
    recorder.place(pod, 5)
    assert recorder.waited[pod] == 3
    recorder.evict(7, pod, 20, 15, 2)
    assert pod not in recorder.waited
    recorder.place(pod, 30)
    assert recorder.waited[pod] == 3 + 10
    recorder.evict(7, pod, 40, 10, 2)
    recorder.place(pod, 41)
    assert recorder.waited[pod] == 3 + 10 + 1
    recorder.evict(-1, None, 50, 9, 2)

    hours = round(25 / 3600, 6), round(50 / 3600, 6)
    assert recorder.evicted == (
        Evictions(-1, 1, 1, round(9 / 3600, 6), round(18 / 3600, 6)),
        Evictions(7, 2, 0, *hours),
    )


def test_waits_are_by_cards_gang_type_and_priority_in_order() -> None:
    recorder = Recorder(CARDS, 0, 100)
    pods = [
        pod_of(cards=8, priority=5, workload_type="b"),
        pod_of(cards=1, priority=0, workload_type="a", gang="g", least=4),
        pod_of(cards=1, priority=5, workload_type="b"),
    ]
    for number, pod in enumerate(pods[:2]):
        recorder.place(pod, 2 + number)
    both = [
        Waits("all", "", 3, 1, 0, 1), Waits("cards", "1", 2, 1, 1, 1), Waits("cards", "8", 1, 0, 0, 0),
        Waits("gang", "1", 2, 1, 0, 0), Waits("gang", "4", 1, 0, 1, 1), Waits("type", "a", 1, 0, 1, 1),
        Waits("type", "b", 2, 1, 0, 0),
    ]  # fmt: skip

    assert [*recorder.waits(pods)] == both
    of_priorities = [Waits("priority", "0", 1, 0, 1, 1), Waits("priority", "5", 2, 1, 0, 0)]
    assert [*recorder.waits(pods, by_priority=True)] == [*both, *of_priorities]
    assert {each.by for each in recorder.waits([pods[0]])} == {"all", "cards", "type"}
    assert recorder.waits(pods[2:])[0] == Waits("all", "", 1, 1, None, None)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 99, 100, 101])
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(count: int) -> None:
    values = [float(number) for number in range(count)]
    for share in (0.5, 0.99):
        wanted = next((each for each in values if sum(other <= each for other in values) >= share * count), None)
        assert _percentile(values, share) == wanted
        assert wanted is None or wanted == ceil(share * count) - 1


@pytest.mark.parametrize(
    ("free", "unusable"),
    [
        ((4, 8, 8), 0.0),
        # The larger pod, a quarter of the pods, lacks CPU, memory or cards.
        ((3, 8, 8), 2.0),
        ((4, 7, 8), 2.0),
        ((4, 8, 3), 0.75),
        ((0, 8, 8), 8.0),
        ((4, 8, 0), 0.0),
    ],
)
def test_a_pod_of_the_mix_can_use_all_cards_of_a_node_that_can_take_it(
    free: tuple[int, int, int], unusable: float
) -> None:
    mix = Mix([((1, 1, 1), 3), ((4, 8, 4), 1)])

    assert mix.fragmentation(np.array([free], dtype=np.float64)).tolist() == [unusable]


def test_cards_of_all_resources_count_and_only_those_that_are_asked_for_are_fragmented() -> None:
    other = node("b", make_pod("x").requests(**{"amd.com/gpu": 1}), capacity={"amd.com/gpu": 4, "nvidia.com/gpu": 2})
    snapshot = Snapshot.of([*EMPTY.nodes, other])
    cards = Cards(snapshot, lambda name: name.endswith("/gpu"), [[("nvidia.com/gpu", 4)], [("cpu", 1)]])

    assert (cards.total, cards.requested(snapshot), cards.of({"amd.com/gpu": 2, "cpu": 9})) == (14, 1, 2)
    # Two cards of the second node are too few, and no pod asks for its other ones.
    assert cards.fragmented(snapshot) == 2
