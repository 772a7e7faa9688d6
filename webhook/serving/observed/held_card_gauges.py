"""Exports the cards of the cluster view that are held and not used, counted in a thread when a scrape asks for them."""

import asyncio
from collections.abc import Callable

import structlog

from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.held_cards import SNAPSHOT_CLASSES, HeldCards
from webhook.runtime.metrics import Metrics

# Anyone who reaches the admin port can ask for metrics.
_INTERVAL_SECONDS = 10.0


class HeldCardGauges:
    """Keeps the gauges of held cards at the current snapshot and time. An instance is for one event loop."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        count: Callable[[Snapshot], HeldCards],
        metrics: Metrics,
        monotonic_seconds: Callable[[], float],
    ) -> None:
        """Create the gauges of `snapshot()`; `count` runs in another thread and may take long."""
        self._snapshot = snapshot
        self._count = count
        self._metrics = metrics
        self._monotonic_seconds = monotonic_seconds
        self._next_seconds = float("-inf")
        self._log = structlog.get_logger()

    async def refresh(self) -> None:
        """Count the cards again if the last count began some seconds ago: a pod is overdue without any change.

        An internal error is logged, and the last values stay.
        """
        now_seconds = self._monotonic_seconds()
        if now_seconds < self._next_seconds:
            return
        self._next_seconds = now_seconds + _INTERVAL_SECONDS
        try:
            self._show(await asyncio.to_thread(self._count, self._snapshot()))
        except Exception:
            self._log.exception("held cards cannot be counted")

    def _show(self, found: HeldCards) -> None:
        metrics = self._metrics
        metrics.held_cards.clear()
        for (reason, resource), cards in found.cards.items():
            metrics.held_cards.labels(reason, resource).set(cards)
        # Classes without pods are 0, so that a graph of them has no gaps.
        for reason in SNAPSHOT_CLASSES:
            metrics.held_pods.labels(reason).set(found.pods.get(reason, 0))
