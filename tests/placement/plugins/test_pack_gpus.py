"""PackGpus: the placement that takes away the fewest cards that other pods could use."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from tests.support.plugins import node, pod_info, scores
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.cluster.working_snapshot import WorkingSnapshot
from webhook.placement.packing.typical_pods import CardMixes, Mix, TypicalPod
from webhook.placement.plugins.pack_gpus import PackGpus
from webhook.placement.profiles.profile import DEFAULT, PACK_GPUS
from webhook.placement.scheduler import Scheduler

_GPU = "nvidia.com/gpu"


def plugin(*mix: tuple[int, int, float]) -> PackGpus:
    """Return the plugin for a mix of cores, cards and weight."""
    kinds: Mix = {TypicalPod(cpu * 1000, 0, cards): weight for cpu, cards, weight in mix}
    return PackGpus(CardMixes((_GPU,), {_GPU: kinds} if mix else {}))


def gpus(name: str, cpu: int, count: int, *pods: PodBuilder) -> NodeInfo:
    return node(name, *pods, capacity={"cpu": cpu, _GPU: count})


def pod(cpu: int, count: int) -> PodBuilder:
    return make_pod().requests(cpu=cpu).gpu(count)


def best(plugin: PackGpus, pending: PodBuilder, *nodes: NodeInfo) -> str:
    names = sorted(each.node.name for each in nodes)
    found = [name for name, score in zip(names, scores(plugin, pending, *nodes), strict=True) if score == 100]
    return " ".join(found)


_MIX = ((8, 1, 6.0), (64, 8, 1.0))


@pytest.mark.parametrize(
    ("mix", "pending", "nodes", "expected"),
    [
        pytest.param(
            _MIX,
            pod(8, 1),
            [gpus("part", 96, 8, pod(8, 4)), gpus("whole", 96, 8)],
            "part",
            id="whole nodes are kept for pods of eight cards",
        ),
        pytest.param(
            _MIX,
            pod(8, 1),
            [gpus("poor", 16, 2), gpus("rich", 64, 2)],
            "poor",
            id="CPU that no card needs is kept",
        ),
        pytest.param(
            _MIX,
            pod(12, 1),
            [gpus("starved", 19, 2), gpus("enough", 64, 2)],
            "enough",
            id="a card that is left without CPU for a typical pod is lost",
        ),
        pytest.param(
            _MIX,
            make_pod().requests(cpu=12),
            [gpus("cards", 16, 2), gpus("none", 64, 0)],
            "none",
            id="a pod without cards leaves the CPU of cards",
        ),
        pytest.param(
            ((8, 8, 1.0), (64, 8, 1.0)),
            pod(8, 8),
            [gpus("a-large", 64, 8), gpus("small", 32, 8), gpus("small-too", 32, 8)],
            "small small-too",
            id="the last node for large pods is kept",
        ),
        pytest.param(
            ((1, 1, 1.0),),
            pod(1, 1),
            [gpus("four", 64, 4), gpus("two", 64, 2), gpus("two-with-less-cpu", 32, 2)],
            "two-with-less-cpu",
            id="of equal losses the fewest cards, then the least CPU",
        ),
        pytest.param(
            ((1, 1, 1.0),),
            pod(1, 1),
            [gpus("fewer-cards", 64, 2), gpus("less-cpu", 32, 4)],
            "fewer-cards",
            id="of equal losses the fewest cards, with more CPU",
        ),
        pytest.param(
            ((1, 1, 1.0),),
            make_pod(),
            [gpus("empty", 64, 0), gpus("used", 64, 0, make_pod().requests(cpu=32))],
            "used",
            id="a pod that takes nothing goes to the fuller node",
        ),
    ],
)
def test_best_node(
    mix: tuple[tuple[int, int, float], ...], pending: PodBuilder, nodes: list[NodeInfo], expected: str
) -> None:
    assert best(plugin(*mix), pending, *nodes) == expected


def test_memory_counts_like_cpu() -> None:
    mix = PackGpus(CardMixes((_GPU,), {_GPU: {TypicalPod(0, 64 * 2**30, 1): 1.0}}))
    nodes = [node(name, capacity={"memory": memory, _GPU: 2}) for name, memory in (("a", "127Gi"), ("b", "512Gi"))]

    assert best(mix, make_pod().requests(memory="64Gi").gpu(1), *nodes) == "b"


def test_scores_below_the_best_fall_with_the_loss() -> None:
    """A node loses its place for a pod of eight cards, and one all its cards, for want of CPU."""
    nodes = [gpus("a", 64, 8), gpus("b", 64, 8, pod(1, 1)), gpus("c", 15, 8)]

    # Of 23 cards for pods of one, b loses 1, a 1 and all 8 for the other kind, c 8; these are 6 of 7 pods.
    losses = [6 / 7 / 23 + 1 / 7, 6 / 7 / 23, 6 / 7 * 8 / 23]
    second = int(99 * (losses[2] - losses[0]) / (losses[2] - losses[1]))
    assert scores(plugin(*_MIX), pod(8, 1), *nodes) == [second, 100, 0]


def test_only_the_best_nodes_score_100() -> None:
    """Two nodes that differ in CPU alone have one loss; 99 stays for the second."""
    assert scores(plugin((1, 1, 1.0)), pod(1, 1), gpus("a", 64, 8), gpus("b", 63, 8)) == [99, 100]


def test_cluster_without_cards_is_not_scored() -> None:
    snapshot = Snapshot.of([node("a"), node("b")])

    assert PackGpus(CardMixes((_GPU,))).score(pod_info(make_pod()), snapshot, np.arange(2)) is None


def test_resources_that_are_no_cards_do_not_count() -> None:
    snapshot = Snapshot.of([node("a", capacity={"x.org/nic": 8}), node("b", capacity={"x.org/nic": 8})])

    assert plugin().score(pod_info(make_pod().gpu(1, "x.org/nic")), snapshot, np.arange(2)) is None


def test_cards_of_two_vendors_are_lost_each_for_its_own_pods() -> None:
    cards = CardMixes((_GPU, "amd.com/*"), {"amd.com/gpu": {TypicalPod(8000, 0, 1): 1.0}})
    amd, nvidia = node("amd", capacity={"cpu": 8, "amd.com/gpu": 1}), gpus("nvidia", 8, 1, make_pod().gpu(1))

    assert best(PackGpus(cards), make_pod().requests(cpu=1), amd, nvidia) == "nvidia"


def test_mix_is_that_of_the_running_pods() -> None:
    """Once many pods of three cards run, three free cards are worth more than four, which are kept otherwise."""
    nodes = [gpus("a", 64, 3), gpus("b", 64, 4), gpus("c", 64, 60)]
    threes = updated(Snapshot.of(nodes), [gpus("c", 64, 60, *[pod(1, 3)] * 20)], 2)
    packing = plugin()

    found = [packing.score(pod_info(pod(1, 1)), each, np.arange(2)) for each in (Snapshot.of(nodes), threes)]

    assert [list(each) if each is not None else None for each in found] == [[100, 0], [0, 100]]


def test_cards_of_a_large_pod_are_kept_while_none_runs() -> None:
    """Running pods of one card alone would value eight and nine free cards alike; the fewer would be taken."""
    assert best(plugin(), pod(1, 1), gpus("eight", 64, 8), gpus("nine", 64, 10, pod(1, 1))) == "nine"


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=2, max_size=6),
    st.integers(0, 9),
    st.integers(0, 4),
)
def test_best_node_loses_the_fewest_usable_cards_of_one_kind(
    nodes: list[tuple[int, int]], cpu: int, cards: int
) -> None:
    """With one kind of pod, the loss is the number of its usable cards: a plain count, for any nodes that fit."""
    kind = (3, 2)
    infos = [gpus(f"{number}", *amounts) for number, amounts in enumerate(nodes)]
    fitting = [row for row, (has_cpu, has_cards) in enumerate(nodes) if has_cpu >= cpu and has_cards >= cards]
    snapshot = Snapshot.of(infos)
    assume(fitting and any(has_cards for _, has_cards in nodes))
    found = plugin((*kind, 1.0)).score(pod_info(pod(cpu, cards)), snapshot, np.array(fitting, dtype=np.intp))
    assert found is not None

    def usable(has_cpu: int, has_cards: int) -> int:
        return has_cards if has_cpu >= kind[0] and has_cards >= kind[1] else 0

    def rank(row: int) -> tuple[int, int, int]:
        has_cpu, has_cards = nodes[row]
        lost = usable(has_cpu, has_cards) - usable(has_cpu - cpu, has_cards - cards)
        return lost, has_cards - cards, has_cpu - cpu

    ranks = [rank(row) for row in fitting]
    assert [score == 100 for score in found] == [each == min(ranks) for each in ranks]


def test_profile_packs_what_the_default_profile_spreads() -> None:
    snapshot = Snapshot.of([gpus("empty", 96, 8), gpus("part", 96, 8, pod(8, 2))])
    pending = pod(8, 1).obj()

    assert Scheduler(DEFAULT).place(pending, snapshot).node == "empty"
    assert Scheduler(PACK_GPUS).place(pending, snapshot).node == "part"


def test_profile_keeps_to_the_preferred_pool() -> None:
    """The node that packs is in another pool than the pod prefers, and another has a taint that it does not like."""
    nodes = [
        node("mine", labels={"pool": "a"}, capacity={_GPU: 8}),
        node("other", make_pod().gpu(4), labels={"pool": "b"}, capacity={_GPU: 8}),
        node("tainted", make_pod().gpu(4), labels={"pool": "a"}, taints=["x=y:PreferNoSchedule"], capacity={_GPU: 8}),
    ]
    pending = make_pod().gpu(1).prefer_node(1, match_expressions(("pool", "In", ["a"]))).obj()

    assert Scheduler(PACK_GPUS).place(pending, Snapshot.of(nodes)).node == "mine"


@pytest.mark.parametrize(
    ("taints", "weight"),
    [
        pytest.param(("x=y:PreferNoSchedule", "z=y:PreferNoSchedule"), 100, id="a node with one more taint"),
        pytest.param(("x=y:PreferNoSchedule",), 99, id="a pool that it prefers less"),
    ],
)
def test_profile_keeps_to_what_the_pod_prefers_by_little(taints: tuple[str, ...], weight: int) -> None:
    """The node that packs is in the pool `b`, or has one more taint."""
    nodes = [
        node("mine", labels={"pool": "a"}, taints=["x=y:PreferNoSchedule"], capacity={"cpu": 96, _GPU: 8}),
        node("other", pod(8, 2), labels={"pool": "b"}, taints=[*taints], capacity={"cpu": 96, _GPU: 8}),
    ]
    pending = pod(8, 1).prefer_node(100, match_expressions(("pool", "In", ["a"])))
    pending = pending.prefer_node(weight, match_expressions(("pool", "In", ["b"])))

    assert Scheduler(PACK_GPUS).place(pending.obj(), Snapshot.of(nodes)).node == "mine"


def test_values_follow_a_snapshot_that_changes_in_place() -> None:
    """The pods before a pod take cards of the same snapshot, whose log has another position then."""
    packing, pending, rows = plugin(*_MIX), pod_info(pod(8, 1)), np.arange(3)
    shown = WorkingSnapshot(Snapshot.of([gpus(name, 96, 8) for name in "abc"]))
    added = [RunningPod.of(pod(8, 3).node_name(name).obj())._replace(name=f"on-{name}") for name in "cbcb"]

    for change in (*((shown.add, each) for each in added), *((shown.remove, each) for each in added[:2])):
        change[0](change[1])
        found = packing.score(pending, shown.snapshot, rows)
        anew = plugin(*_MIX).score(pending, Snapshot.of(shown.snapshot.nodes), rows)
        assert found is not None
        assert anew is not None
        assert found.tolist() == anew.tolist()
