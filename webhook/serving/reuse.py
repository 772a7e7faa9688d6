"""How long a rendered decision is reused for equal pods."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from webhook.byte_cache import ByteCache
from webhook.pipeline import ClusterView
from webhook.serving.rendering import Rendered
from webhook.serving.work_budget import WorkBudget

SNAPSHOT_CACHE_BYTES = 8 * 1024 * 1024
TIMED_CACHE_BYTES = 6 * 1024 * 1024

# A decision that took long is reused for this many times as long: the replicas of a large template take a tenth of a
# processor at most, however fast the cluster changes.
_REUSE_RATIO = 10.0
_LONGEST_REUSE_SECONDS = 2.0
# Where the work budget was spent, it would be the next time.
_SPENT_SECONDS = 30.0


class Reuse(Protocol):
    """Keeps rendered decisions by key for as long as they hold."""

    @property
    def cache(self) -> ByteCache[Any, Any]:
        """Return the cache, to be measured."""
        ...

    def begin(self, cluster: ClusterView | None) -> None:
        """Begin a decision on `cluster`."""
        ...

    def get(self, key: Any) -> Rendered | None:
        """Return the decision kept under `key` if it still holds."""
        ...

    def put(self, key: Any, rendered: Rendered, work_budget: WorkBudget, size_bytes: int) -> None:
        """Keep a decision of `size_bytes` made within `work_budget`, unless it holds for this request alone."""
        ...

    def clear(self) -> None:
        """Forget every decision."""
        ...


class UntilNextSnapshot:
    """Reuses a decision on the snapshot that it was made on, as long as the view does not become too old.

    A decision holds on to its snapshot, which is large, so all are forgotten once another comes.
    """

    def __init__(self, cache_bytes: int = SNAPSHOT_CACHE_BYTES) -> None:
        self.cache: ByteCache[Any, Rendered] = ByteCache(cache_bytes)
        self._cluster: ClusterView | None = None

    def begin(self, cluster: ClusterView | None) -> None:
        """Forget the decisions on another snapshot."""
        known = self._cluster
        if cluster is known:
            return
        if cluster is None or known is None or not _is_same(cluster, known):
            self.cache.clear()
        self._cluster = cluster

    def get(self, key: Any) -> Rendered | None:
        """Return the decision made under `key` on this snapshot."""
        return self.cache.get(key)

    def put(self, key: Any, rendered: Rendered, work_budget: WorkBudget, size_bytes: int) -> None:  # noqa: ARG002 - the protocol's
        """Keep a decision, unless the deadline has ended its work."""
        if rendered.is_final:
            self.cache.put(key, rendered, size_bytes)

    def clear(self) -> None:
        """Forget every decision."""
        self.cache.clear()


def _is_same(cluster: ClusterView, known: ClusterView) -> bool:
    return cluster.snapshot is known.snapshot and cluster.stale_reason == known.stale_reason


class _Kept(NamedTuple):
    rendered: Rendered
    until_seconds: float
    generation: int

    def holds(self, now_seconds: float, generation: int) -> bool:
        """Return whether it may be reused; a denial only on the snapshot that it was made on."""
        is_outdated = self.rendered.outcome == "Denied" and self.generation != generation
        return now_seconds < self.until_seconds and not is_outdated


class ForAWhile:
    """Reuses a decision for ten times as long as it took, whatever the snapshot; a denial only on its own snapshot."""

    def __init__(
        self, cache_bytes: int = TIMED_CACHE_BYTES, monotonic_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self.cache: ByteCache[tuple[Any, bool], _Kept] = ByteCache(cache_bytes)
        self._monotonic_seconds = monotonic_seconds
        self._began_seconds = 0.0
        self._is_current = False
        self._generation = 0

    def begin(self, cluster: ClusterView | None) -> None:
        """Note when the decision begins, and on which snapshot."""
        self._began_seconds = self._monotonic_seconds()
        self._is_current = cluster is not None and not cluster.stale_reason
        self._generation = cluster.snapshot.generation if cluster else 0

    def get(self, key: Any) -> Rendered | None:
        """Return the decision made under `key` a moment ago."""
        kept = self.cache.get((key, self._is_current))
        if kept is not None and kept.holds(self._began_seconds, self._generation):
            return kept.rendered
        return None

    def put(self, key: Any, rendered: Rendered, work_budget: WorkBudget, size_bytes: int) -> None:
        """Keep a decision, unless the deadline has ended its work."""
        if work_budget.is_expired:
            return
        ended_seconds = self._monotonic_seconds()
        again_seconds = min((ended_seconds - self._began_seconds) * _REUSE_RATIO, _LONGEST_REUSE_SECONDS)
        if work_budget.is_spent and rendered.is_unknown:
            again_seconds = _SPENT_SECONDS
        kept = _Kept(rendered, ended_seconds + again_seconds, self._generation)
        self.cache.put((key, self._is_current), kept, size_bytes)

    def clear(self) -> None:
        """Forget every decision."""
        self.cache.clear()
