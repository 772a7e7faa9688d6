"""Export the free cards of the cluster view, the largest gangs, and the held cards.

A scrape starts the count, which runs in another thread.
"""

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence

import structlog
from prometheus_client import Gauge

from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.free_cards import FreeCards
from webhook.placement.packing.held_cards import HeldCards
from webhook.runtime.metrics import Metrics

# Anyone who reaches the admin port can ask for metrics. A count takes tens of milliseconds in a large cluster.
_INTERVAL_SECONDS = 10.0

# Nodes with more free cards, such as those of shared cards, are counted together.
_MOST_EXACT = 16


class FreeCardGauges:
    """Updates the gauges of free and held cards from the current snapshot. An instance is for one event loop."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        count: Callable[[Snapshot], Sequence[FreeCards]],
        metrics: Metrics,
        monotonic_seconds: Callable[[], float],
        count_held: Callable[[Snapshot], HeldCards],
        count_gangs: Callable[[Snapshot], Mapping[str, int]] = lambda _: {},
    ) -> None:
        """Create the gauges for the snapshots that `snapshot` returns.

        `count_gangs` returns the size of the largest gang by topology key.
        """
        self._snapshot = snapshot
        self._count = count
        self._count_held = count_held
        self._count_gangs = count_gangs
        self._metrics = metrics
        self._monotonic_seconds = monotonic_seconds
        # A strong reference would keep an old snapshot until the next scrape, which may never come.
        self._last: weakref.ref[Snapshot] | None = None
        self._next_seconds = float("-inf")
        self._log = structlog.get_logger()

    def count_by(self, count: Callable[[Snapshot], Sequence[FreeCards]]) -> None:
        """Replace the function that counts."""
        self._count = count
        self._last = None

    async def refresh(self) -> None:
        """Count the cards again if the snapshot has changed and the last count began some seconds ago.

        Held cards are counted even if the snapshot has not changed: a pod becomes overdue with time.

        An internal error is logged, and the last values are kept.
        """
        now_seconds = self._monotonic_seconds()
        if now_seconds < self._next_seconds:
            return
        self._next_seconds = now_seconds + _INTERVAL_SECONDS
        try:
            snapshot = self._snapshot()
            if self._last is None or snapshot is not self._last():
                self._show(await asyncio.to_thread(self._count, snapshot))
                self._show_gangs(await asyncio.to_thread(self._count_gangs, snapshot))
                self._last = weakref.ref(snapshot)
            self._show_held(await asyncio.to_thread(self._count_held, snapshot))
        except Exception:
            self._log.exception("free cards cannot be counted")

    def _show(self, found: Sequence[FreeCards]) -> None:
        metrics = self._metrics
        for gauge in (metrics.free_cards, metrics.nodes_by_free_cards, metrics.unusable_free_cards_share):
            gauge.clear()
        for each in found:
            metrics.free_cards.labels(each.pool, each.product).set(each.free)
            metrics.unusable_free_cards_share.labels(each.pool, each.product).set(each.unusable_share)
            # Sizes that no node has are 0, so that a graph of them has no gaps.
            for cards in range(min(each.most, _MOST_EXACT) + 1):
                self._nodes(each, str(cards)).set(each.nodes.get(cards, 0))
            if each.most > _MOST_EXACT:
                more = sum(nodes for cards, nodes in each.nodes.items() if cards > _MOST_EXACT)
                self._nodes(each, f"{_MOST_EXACT + 1}+").set(more)

    def _show_gangs(self, found: Mapping[str, int]) -> None:
        self._metrics.largest_gang.clear()
        for key, pods in found.items():
            self._metrics.largest_gang.labels(key).set(pods)

    def _show_held(self, found: HeldCards) -> None:
        self._metrics.held_cards.clear()
        for (reason, resource), cards in found.cards.items():
            self._metrics.held_cards.labels(reason, resource).set(cards)
        for reason, pods in found.pods.items():
            self._metrics.held_pods.labels(reason).set(pods)

    def _nodes(self, each: FreeCards, free: str) -> Gauge:
        return self._metrics.nodes_by_free_cards.labels(each.pool, each.product, free)
