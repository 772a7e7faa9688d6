"""The free cards of each pool and product."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import USAGE
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.free_cards import OTHER, FreeCards, FreeCardsByProduct
from webhook.placement.packing.typical_pods import CardMixes, ExpectedMixes, TypicalPod
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS

GPU, MIG, PRODUCT = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.product"
RESOURCES = tuple(name for each in BUILT_IN_ACCELERATORS for name in each.resources)
# Half of the pods have one card, half of them eight.
MIX = {TypicalPod(1000, 2**30, 1): 1.0, TypicalPod(8000, 2**33, 8): 1.0}


def counted(*nodes: NodeInfo, most: int = 64) -> list[FreeCards]:
    mixes = ExpectedMixes(CardMixes(RESOURCES, {GPU: MIX, MIG: MIX}))
    return list(FreeCardsByProduct(USAGE, BUILT_IN_ACCELERATORS, mixes, most).of(Snapshot.of(nodes)))


def eight(name: str, pool: str, product: str, used: int, *, cpu: int = 64, unschedulable: bool = False) -> NodeInfo:
    labels = {USAGE: pool, PRODUCT: product}
    capacity = {"cpu": str(cpu), "memory": "1Ti", GPU: "8"}
    return node(name, make_pod().gpu(used), labels=labels, capacity=capacity, unschedulable=unschedulable)


def test_nodes_are_counted_by_free_cards_in_each_pool_and_product() -> None:
    found = counted(
        eight("a", "training", "H20", 0), eight("b", "training", "H20", 7), eight("c", "training", "H20", 7),
        eight("d", "hybrid", "H20", 8), eight("e", "training", "L40S", 4),
    )  # fmt: skip

    assert [(each.pool, each.product, dict(each.nodes), each.free) for each in found] == [
        ("hybrid", "H20", {0: 1}, 0),
        ("training", "H20", {8: 1, 1: 2}, 10),
        ("training", "L40S", {4: 1}, 4),
    ]


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ({}, 8),
        ({"unschedulable": True}, 0),
        ({"taints": ["node.kubernetes.io/not-ready:NoExecute"]}, 0),
        ({"taints": ["karpenter.sh/disrupted:NoSchedule"]}, 0),
        ({"taints": ["DeletionCandidateOfClusterAutoscaler=1:PreferNoSchedule"]}, 8),
        ({"taints": ["reserved=x:NoSchedule"]}, 8),
    ],
)
def test_cards_on_a_node_that_takes_no_pods_are_neither_usable_nor_free(state: dict[str, Any], usable: int) -> None:
    (found,) = counted(node("a", labels={USAGE: "p", PRODUCT: "H20"}, capacity={GPU: "8"}, **state))

    assert (found.offered, found.usable, found.free) == (8, usable, usable)


@pytest.mark.parametrize(
    ("nodes", "share"),
    [
        pytest.param([eight("a", "p", "H20", 0)], 0.0, id="every pod can use a free node"),
        pytest.param([eight("a", "p", "H20", 4)], 0.5, id="half of the pods need more cards"),
        pytest.param([eight("a", "p", "H20", 4), eight("b", "p", "H20", 0)], 0.5 * 4 / 12, id="each card counts once"),
        pytest.param([eight("a", "p", "H20", 0, cpu=1)], 0.5, id="CPU is missing for half of the pods"),
        pytest.param([eight("a", "p", "H20", 0, cpu=0)], 1.0, id="CPU is missing for every pod"),
        pytest.param([eight("a", "p", "H20", 8)], 0.0, id="no card is free"),
        pytest.param([eight("a", "p", "H20", 0, unschedulable=True)], 0.0, id="a cordoned node has no free card"),
    ],
)
def test_cards_are_unusable_for_the_typical_pods_that_do_not_fit(nodes: list[NodeInfo], share: float) -> None:
    (found,) = counted(*nodes)

    assert found.unusable_share == pytest.approx(share)


def test_rounding_makes_no_share_negative() -> None:
    mix = {TypicalPod(0, 0, cards): weight for cards, weight in {1: 0.1, 2: 0.1, 4: 0.3, 8: 0.2}.items()}
    mixes = ExpectedMixes(CardMixes(RESOURCES, {GPU: mix}))

    (found,) = FreeCardsByProduct(USAGE, BUILT_IN_ACCELERATORS, mixes).of(Snapshot.of([eight("a", "p", "H20", 0)]))

    assert found.unusable_share == 0


def test_running_pods_are_the_typical_ones_of_a_policy_without_a_mix() -> None:
    """Four pods of four cards run; beside them count, with a small weight, pods of 1, 2, 4 and 8 cards."""
    nodes = [eight(name, "p", "H20", 4) for name in "abcd"]
    of_running = FreeCardsByProduct(USAGE, BUILT_IN_ACCELERATORS, ExpectedMixes(CardMixes(RESOURCES)))

    (found,) = of_running.of(Snapshot.of(nodes))

    # The default kinds have the weights 4, 2, 1 and 1/2; only the pods of eight cards do not fit.
    assert found.unusable_share == pytest.approx(0.5 / (4 + 4 + 2 + 1 + 0.5))


def test_nodes_without_labels_are_counted_as_none() -> None:
    (found,) = counted(node("a", capacity={GPU: "2"}))

    assert (found.pool, found.product, found.free) == ("none", "none", 2)


def test_another_resource_of_a_product_is_counted_apart() -> None:
    labels = {USAGE: "p", PRODUCT: "A100"}
    found = counted(node("a", labels=labels, capacity={GPU: "1", MIG: "7", "example.com/nic": "2"}))

    assert [(each.product, each.free) for each in found] == [("A100", 1), (f"A100 {MIG}", 7)]


def test_kinds_with_the_fewest_cards_beyond_the_limit_are_counted_together() -> None:
    small = [node(f"s{number}", labels={USAGE: f"pool-{number}"}, capacity={GPU: "1"}) for number in range(3)]
    found = counted(*small, eight("a", "p", "H20", 2), most=2)

    assert [(each.pool, each.product, each.free, dict(each.nodes)) for each in found] == [
        ("other", "other", 2, {1: 2}),
        ("p", "H20", 6, {6: 1}),
        ("pool-0", "none", 1, {1: 1}),
    ]


_nodes = st.lists(
    st.tuples(st.sampled_from("pq"), st.sampled_from("xy"), st.integers(0, 9), st.integers(0, 12), st.booleans()),
    max_size=8,
)


@given(_nodes)
def test_counts_and_shares_are_those_of_a_loop_over_nodes_and_pods(
    drawn: list[tuple[str, str, int, int, bool]],
) -> None:
    nodes = [
        eight(f"n{row}", pool, product, used, cpu=cpu, unschedulable=is_cordoned)
        for row, (pool, product, used, cpu, is_cordoned) in enumerate(drawn)
    ]
    expected: dict[tuple[str, str], list[float]] = {}
    for pool, product, used, cpu, is_cordoned in drawn:
        sums = expected.setdefault((pool, product), [0.0, 0.0])
        free = 0 if is_cordoned else max(0, 8 - used)
        fitting = sum(kind.cards <= free and kind.milli_cpu <= 1000 * cpu for kind in MIX) / len(MIX)
        sums[0] += free
        sums[1] += free * (1 - fitting)

    found = {(each.pool, each.product): each for each in counted(*nodes)}

    assert {kind: each.free for kind, each in found.items()} == {kind: free for kind, (free, _) in expected.items()}
    for kind, (total, unusable) in expected.items():
        assert found[kind].unusable_share == pytest.approx(unusable / total if total else 0)
        assert sum(found[kind].nodes.values()) == [each[:2] for each in drawn].count(kind)


def test_kinds_with_the_most_cards_are_kept_and_the_others_are_summed() -> None:
    nodes = [
        *(
            eight(f"{pool}{number}", pool, "H20", number)
            for pool, count in (("a", 1), ("b", 3), ("c", 2))
            for number in range(count)
        ),
    ]

    found = counted(*nodes, most=1)

    assert [(each.pool, each.offered, each.free) for each in found] == [("b", 24, 21), (OTHER, 24, 23)]


def test_kinds_with_the_most_cards_are_kept_though_others_have_more_free_ones() -> None:
    found = counted(eight("a", "p", "busy", 8), eight("b", "p", "busy", 8), eight("c", "p", "idle", 0), most=1)

    assert [(each.product, each.offered, each.free, each.most, each.usable) for each in found] == [
        (OTHER, 8, 8, 8, 8),
        ("busy", 16, 0, 8, 16),
    ]
