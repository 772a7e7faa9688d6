"""The gauges of held cards: when they are counted, and what they show."""

import asyncio
import threading

from structlog.testing import capture_logs

from tests.support.servers.server import Clock
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.held_cards import HeldCards
from webhook.runtime.metrics import Metrics
from webhook.serving.observed.held_card_gauges import HeldCardGauges

CARD = "nvidia.com/gpu"
EMPTY = Snapshot.of([])


class Counter:
    """Counts the held cards as `found`, or fails without it, and remembers in which threads."""

    def __init__(self, found: HeldCards | None) -> None:
        self.found = found
        self.threads: list[str] = []

    def __call__(self, _: Snapshot) -> HeldCards:
        self.threads.append(threading.current_thread().name)
        if self.found is None:
            raise RuntimeError("no cards")
        return self.found


def gauges(count: Counter, metrics: Metrics, clock: Clock) -> HeldCardGauges:
    return HeldCardGauges(lambda: EMPTY, count, metrics, clock)


def cards(metrics: Metrics, reason: str) -> float | None:
    return metrics.registry.get_sample_value("placement_webhook_held_cards", {"reason": reason, "resource": CARD})


def pods(metrics: Metrics, reason: str) -> float | None:
    return metrics.registry.get_sample_value("placement_webhook_held_pods", {"reason": reason})


def test_held_cards_are_shown_by_reason_and_those_that_are_gone_are_not() -> None:
    metrics, clock, count = Metrics(), Clock(), Counter(HeldCards({("image-pull", CARD): 8}, {"image-pull": 1}))
    kept = gauges(count, metrics, clock)

    asyncio.run(kept.refresh())
    first = cards(metrics, "image-pull"), pods(metrics, "image-pull"), pods(metrics, "crash-loop")
    count.found = HeldCards({}, {})
    clock.seconds += 10
    asyncio.run(kept.refresh())

    assert first == (8, 1, 0)
    assert (cards(metrics, "image-pull"), pods(metrics, "image-pull")) == (None, 0)


def test_cards_are_counted_in_another_thread_at_most_once_in_ten_seconds() -> None:
    clock, count = Clock(), Counter(HeldCards({}, {}))
    kept = gauges(count, Metrics(), clock)

    for seconds in (0, 9, 1):
        clock.seconds += seconds
        asyncio.run(kept.refresh())

    assert len(count.threads) == 2
    assert threading.current_thread().name not in count.threads


def test_a_count_that_fails_is_logged_and_the_values_stay() -> None:
    metrics, clock, count = Metrics(), Clock(), Counter(HeldCards({("terminating", CARD): 8}, {"terminating": 1}))
    kept = gauges(count, metrics, clock)
    asyncio.run(kept.refresh())
    count.found = None
    clock.seconds += 10

    with capture_logs() as logs:
        asyncio.run(kept.refresh())

    assert [each["event"] for each in logs] == ["held cards cannot be counted"]
    assert cards(metrics, "terminating") == 8
