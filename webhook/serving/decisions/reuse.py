"""Reuse of the rendered decisions on large pods for a limited time."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.admission.pipeline import ClusterView
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.decisions.rendering import Rendered
from webhook.serving.work_budget import WorkBudget

TIMED_CACHE_BYTES = 6 * 1024 * 1024

# A decision is reused for this many times its duration, so the replicas of a large template take a tenth of a CPU at
# most, however fast the cluster changes.
_REUSE_RATIO = 10.0
_MAX_REUSE_SECONDS = 2.0
# A decision that spent its work budget would spend it again.
_SPENT_REUSE_SECONDS = 30.0


class _Kept(NamedTuple):
    rendered: Rendered
    until_seconds: float
    generation: int

    def is_valid(self, now_seconds: float, generation: int) -> bool:
        """Return whether the decision may be reused; a denial only on its own snapshot."""
        is_outdated = self.rendered.outcome == "Denied" and self.generation != generation
        return now_seconds < self.until_seconds and not is_outdated


class ForLimitedTime:
    """Reuses a decision for ten times its duration on any snapshot; a denial only on its own snapshot."""

    def __init__(
        self, cache_bytes: int = TIMED_CACHE_BYTES, monotonic_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self.cache: ByteCache[tuple[Any, bool], _Kept] = ByteCache(cache_bytes)
        self._monotonic_seconds = monotonic_seconds
        self._began_seconds = 0.0
        self._is_current = False
        self._generation = 0

    def begin(self, cluster: ClusterView | None) -> None:
        """Record the start time and the snapshot of the decision."""
        self._began_seconds = self._monotonic_seconds()
        self._is_current = cluster is not None and not cluster.stale_reason
        self._generation = cluster.snapshot.generation if cluster else 0

    def get(self, key: Any) -> Rendered | None:
        """Return the decision of `key` if it is recent."""
        kept = self.cache.get((key, self._is_current))
        if kept is not None and kept.is_valid(self._began_seconds, self._generation):
            return kept.rendered
        return None

    def put(self, key: Any, rendered: Rendered, work_budget: WorkBudget, size_bytes: int) -> None:
        """Keep a decision unless the deadline stopped its work."""
        if work_budget.is_expired:
            return
        ended_seconds = self._monotonic_seconds()
        reuse_seconds = min((ended_seconds - self._began_seconds) * _REUSE_RATIO, _MAX_REUSE_SECONDS)
        if work_budget.is_spent and rendered.is_unknown:
            reuse_seconds = _SPENT_REUSE_SECONDS
        kept = _Kept(rendered, ended_seconds + reuse_seconds, self._generation)
        self.cache.put((key, self._is_current), kept, size_bytes)

    def clear(self) -> None:
        """Remove all decisions."""
        self.cache.clear()
