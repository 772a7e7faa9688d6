"""The value of free cards for a mix of typical pods."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.placement.packing.fragmentation import Fragmentation, Free
from webhook.placement.packing.typical_pods import MOST_KINDS, TypicalPod

# The pods with cards of upstream's test: thousandths of a core, cards, percent of all pods. 9.54 % have no card.
_UPSTREAM_MIX = (
    *((15700, 1, 28.69), (11900, 1, 18.93), (11400, 1, 12.27), (18710, 1, 4.85), (8200, 1, 3.79), (16400, 1, 3.31)),
    *((9810, 1, 1.97), (15200, 1, 1.87), (11200, 1, 1.81), (14200, 1, 1.76), (14900, 1, 1.39), (60200, 4, 1.23)),
    *((64200, 8, 1.07), (32200, 4, 1.01), (17400, 2, 0.91), (30200, 2, 0.69), (16000, 1, 0.64), (15000, 1, 0.59)),
    *((64000, 8, 0.53), (11910, 1, 0.53), (120200, 8, 0.48), (11300, 1, 0.37), (30000, 2, 0.32), (9800, 1, 0.32)),
    *((8000, 1, 0.32), (2000, 1, 0.54), (1000, 1, 0.27)),
)
_WITHOUT_CARDS = 7.36 + 1.65 + 0.53


def free(*nodes: tuple[int, int, int]) -> Free:
    return Free(*(np.array(column, dtype=np.int64) for column in zip(*nodes, strict=True)))


@pytest.mark.parametrize(
    ("node", "fragmented_milli"),
    [
        pytest.param((64000, 0, 8), 887.2, id="empty"),
        pytest.param((32000, 0, 4), 554.4, id="half used"),
        pytest.param((0, 0, 4), 4000, id="no CPU left"),
    ],
)
def test_one_node_is_fragmented_as_upstream_says(node: tuple[int, int, int], fragmented_milli: float) -> None:
    """Upstream counts thousandths of a GPU, and counts all of them as fragmented for a pod without cards.

    Source: github.com/hkust-adsl/kubernetes-scheduler-simulator/pkg/utils/frag_test.go
    """
    mix = {TypicalPod(cpu, 0, cards): percent for cpu, cards, percent in _UPSTREAM_MIX}
    total = sum(mix.values())
    unusable = fragmented_milli / (1000 * node[2]) * (total + _WITHOUT_CARDS) - _WITHOUT_CARDS

    assert Fragmentation(mix, free(node)).values[0] == pytest.approx(1 - unusable / total, abs=1e-4)


def test_cards_on_one_node_are_worth_what_the_pods_that_fit_there_are_of_the_mix() -> None:
    mix = {TypicalPod(1, 1, 1): 3, TypicalPod(1, 1, 8): 1}
    # The eight cards of the second node are all that a pod of eight can use; a pod of one can use all twelve.
    assert list(Fragmentation(mix, free((9, 9, 4), (9, 9, 8))).values) == pytest.approx(
        [0.75 * 4 / 12, 0.75 * 8 / 12 + 0.25]
    )


@pytest.mark.parametrize(
    "node", [(-1, 9, 8), (9, -1, 8), (0, 9, 8), (9, 0, 8), (9, 9, 0), (9, 9, -1)], ids=lambda node: f"{node}"
)
def test_cards_without_cpu_memory_or_cards_are_worth_nothing(node: tuple[int, int, int]) -> None:
    assert Fragmentation({TypicalPod(1, 1, 1): 1}, free((9, 9, 8))).value(free(node)) == pytest.approx([0])


def test_of_many_kinds_those_with_the_most_cards_count() -> None:
    rare = {TypicalPod(cpu, 1, 1): 1.0 for cpu in range(1, MOST_KINDS + 1)}
    mix = rare | {TypicalPod(1000, 1, 8): 1.0}

    values = Fragmentation(mix, free((1000, 1, 8), (MOST_KINDS, 1, 8))).values

    assert values.sum() == pytest.approx(1)
    assert values[0] == pytest.approx((1 + (MOST_KINDS - 1) / 2) / MOST_KINDS)


_amounts = st.tuples(st.integers(-2, 9), st.integers(-2, 9), st.integers(-1, 9))
_kinds = st.builds(TypicalPod, st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
_mixes = st.dictionaries(_kinds, st.integers(1, 9), min_size=1, max_size=9)


def plain_value(mix: Mapping[TypicalPod, int], nodes: list[tuple[int, int, int]], node: tuple[int, int, int]) -> float:
    """Return the expected share of usable cards on `node` if its amounts were changed to these, pod by pod."""

    def usable(kind: TypicalPod, amounts: tuple[int, int, int]) -> int:
        return amounts[2] if all(has >= wants for has, wants in zip(amounts, kind, strict=True)) else 0

    value = 0.0
    for kind, weight in mix.items():
        total = max(sum(usable(kind, each) for each in nodes), kind.cards)
        value += weight / sum(mix.values()) * usable(kind, node) / total
    return value


@given(_mixes, st.lists(_amounts, min_size=1, max_size=6), st.lists(_amounts, min_size=1, max_size=6))
def test_values_are_those_of_a_loop_over_nodes_and_pods(
    mix: dict[TypicalPod, int], nodes: list[tuple[int, int, int]], others: list[tuple[int, int, int]]
) -> None:
    fragmentation = Fragmentation(mix, free(*nodes))

    assert list(fragmentation.values) == pytest.approx([plain_value(mix, nodes, each) for each in nodes])
    assert list(fragmentation.value(free(*others))) == pytest.approx([plain_value(mix, nodes, each) for each in others])
