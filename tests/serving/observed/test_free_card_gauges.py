"""The gauges of free cards: when they are counted, and what they show."""

import asyncio
import gc
import threading
import weakref

from tests.support.servers.server import Clock
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.free_cards import FreeCards
from webhook.placement.packing.held_cards import HeldCards
from webhook.runtime.metrics import Metrics
from webhook.serving.observed.free_card_gauges import FreeCardGauges


class Counter:
    """Counts the free cards of any snapshot as `found`, and remembers in which threads."""

    def __init__(self, *found: FreeCards) -> None:
        self.found = found
        self.threads: list[str] = []

    def __call__(self, _: Snapshot) -> tuple[FreeCards, ...]:
        self.threads.append(threading.current_thread().name)
        return self.found


class View:
    """The snapshot of a view, which tests replace."""

    snapshot = Snapshot.of([])

    def __call__(self) -> Snapshot:
        return self.snapshot


def free(pool: str = "training", nodes: dict[int, int] | None = None, most: int = 8) -> FreeCards:
    return FreeCards(pool, "NVIDIA-H20", nodes or {8: 1, 1: 2}, 2.5, 24, most)


def nothing_held(_: Snapshot) -> HeldCards:
    return HeldCards({}, {})


def shown(metrics: Metrics, name: str, **labels: str) -> float | None:
    labels = {"pool": "training", "product": "NVIDIA-H20"} | labels
    return metrics.registry.get_sample_value(f"placement_webhook_{name}", labels)


def test_free_cards_are_shown_by_pool_and_product() -> None:
    metrics = Metrics()

    asyncio.run(FreeCardGauges(View(), Counter(free()), metrics, Clock(), nothing_held).refresh())

    assert shown(metrics, "free_cards") == 10
    assert shown(metrics, "unusable_free_cards_share") == 0.25
    sizes = [shown(metrics, "nodes_by_free_cards", free=str(cards)) for cards in range(10)]
    assert sizes == [0, 2, 0, 0, 0, 0, 0, 0, 1, None]


def test_many_free_cards_on_a_node_are_one_series() -> None:
    metrics = Metrics()

    asyncio.run(
        FreeCardGauges(
            View(), Counter(free(nodes={16: 1, 17: 2, 80: 3}, most=80)), metrics, Clock(), nothing_held
        ).refresh()
    )

    assert shown(metrics, "nodes_by_free_cards", free="16") == 1
    assert shown(metrics, "nodes_by_free_cards", free="17+") == 5
    assert shown(metrics, "nodes_by_free_cards", free="17") is None


def test_cards_are_counted_in_another_thread() -> None:
    count = Counter()

    asyncio.run(FreeCardGauges(View(), count, Metrics(), Clock(), nothing_held).refresh())

    assert len(count.threads) == 1
    assert threading.current_thread().name not in count.threads


def test_cards_are_counted_once_in_ten_seconds_and_for_another_snapshot_alone() -> None:
    count, clock, view = Counter(), Clock(), View()

    async def refresh_at(*seconds: float, changed: bool) -> int:
        before = len(count.threads)
        for each in seconds:
            clock.seconds = each
            view.snapshot = Snapshot.of([]) if changed else view.snapshot
            await gauges.refresh()
        return len(count.threads) - before

    gauges = FreeCardGauges(view, count, Metrics(), clock, nothing_held)
    assert asyncio.run(refresh_at(0, 5, 9.9, changed=True)) == 1
    assert asyncio.run(refresh_at(10, changed=True)) == 1
    assert asyncio.run(refresh_at(20, 30, 40, changed=False)) == 0


def test_a_counted_snapshot_that_is_replaced_is_given_up() -> None:
    view = View()
    view.snapshot = Snapshot.of([])
    gauges = FreeCardGauges(view, Counter(), Metrics(), Clock(), nothing_held)
    asyncio.run(gauges.refresh())

    counted = weakref.ref(view.snapshot)
    view.snapshot = Snapshot.of([])
    gc.collect()

    assert counted() is None


def test_series_of_a_pool_that_is_gone_end() -> None:
    metrics, clock, view = Metrics(), Clock(), View()
    count = Counter(free(), free("hybrid"))
    gauges = FreeCardGauges(view, count, metrics, clock, nothing_held)

    asyncio.run(gauges.refresh())
    assert shown(metrics, "free_cards", pool="hybrid") == 10
    count.found, view.snapshot, clock.seconds = (free(),), Snapshot.of([]), 2000.0
    asyncio.run(gauges.refresh())

    assert shown(metrics, "free_cards", pool="hybrid") is None
    assert shown(metrics, "nodes_by_free_cards", pool="hybrid", free="1") is None
    assert shown(metrics, "free_cards") == 10


def test_a_failed_count_leaves_the_last_values() -> None:
    class Failing(Counter):
        def __call__(self, _: Snapshot) -> tuple[FreeCards, ...]:
            if self.threads:
                raise ZeroDivisionError
            return super().__call__(_)

    metrics, clock, view = Metrics(), Clock(), View()
    gauges = FreeCardGauges(view, Failing(free()), metrics, clock, nothing_held)

    asyncio.run(gauges.refresh())
    view.snapshot, clock.seconds = Snapshot.of([]), 2000.0
    asyncio.run(gauges.refresh())

    assert shown(metrics, "free_cards") == 10


def test_held_cards_are_shown_by_reason_also_without_a_change_of_the_snapshot() -> None:
    metrics, clock = Metrics(), Clock()
    found = [HeldCards({("image-pull", "nvidia.com/gpu"): 8}, {"image-pull": 1, "crash-loop": 0})]
    found.append(HeldCards({}, {"image-pull": 0, "crash-loop": 0}))
    gauges = FreeCardGauges(View(), Counter(), metrics, clock, lambda _: found.pop(0))

    asyncio.run(gauges.refresh())
    first = held(metrics)
    clock.seconds += 10
    asyncio.run(gauges.refresh())

    assert (first, held(metrics)) == ((8, 1, 0), (None, 0, 0))


def test_largest_gangs_are_shown_by_topology_key_until_a_key_is_gone() -> None:
    metrics, clock, view = Metrics(), Clock(), View()
    found = [{"rack": 3, "zone": 4}, {"zone": 0}]
    gauges = FreeCardGauges(
        view, Counter(), metrics, clock, count_held=nothing_held, count_gangs=lambda _: found.pop(0)
    )

    asyncio.run(gauges.refresh())
    first = gangs(metrics)
    view.snapshot, clock.seconds = Snapshot.of([]), clock.seconds + 10
    asyncio.run(gauges.refresh())

    assert (first, gangs(metrics)) == ([3, 4], [None, 0])


def gangs(metrics: Metrics) -> list[float | None]:
    values = metrics.registry.get_sample_value
    return [values("placement_webhook_largest_gang", {"domain_key": key}) for key in ("rack", "zone")]


def held(metrics: Metrics) -> tuple[float | None, ...]:
    value = metrics.registry.get_sample_value
    cards = value("placement_webhook_held_cards", {"reason": "image-pull", "resource": "nvidia.com/gpu"})
    pods = (value("placement_webhook_held_pods", {"reason": reason}) for reason in ("image-pull", "crash-loop"))
    return cards, *pods


def test_another_way_to_count_counts_the_same_snapshot_again() -> None:
    """The policy that replaces another one can have other pools and products."""
    metrics, clock = Metrics(), Clock()
    gauges = FreeCardGauges(View(), Counter(free()), metrics, clock, nothing_held)
    asyncio.run(gauges.refresh())

    gauges.count_by(Counter(free("hybrid")))
    clock.seconds += 10
    asyncio.run(gauges.refresh())

    names = ("free_cards", "unusable_free_cards_share")
    assert [shown(metrics, name, pool="hybrid") for name in names] == [10, 0.25]
    assert [shown(metrics, name) for name in names] == [None, None]
