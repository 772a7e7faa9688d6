"""What the server puts around the scorer: its time in the metrics, and patience with pods that cost much."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from webhook.byte_cache import ByteCache
from webhook.cluster.snapshot import Snapshot
from webhook.pipeline import Scorer
from webhook.placement.framework import Placement, Question

# An answer that was long in coming is given again for so many times as long: the replicas of a large template take a
# tenth of the worker's time at most, however fast the cluster changes.
_REUSE_RATIO = 10.0
# One whose question was too much for the budget would be so again.
_SPENT_SECONDS = 30.0
_SLOW_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class TimedScorer:
    """A scorer that tells `observe` how many seconds each answer took."""

    scorer: Scorer
    observe: Callable[[float], None]

    def answer(self, asked: Question, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """What the scorer says."""
        began_seconds = time.perf_counter()
        placement = self.scorer.answer(asked, snapshot, expired)
        self.observe(time.perf_counter() - began_seconds)
        return placement


class _Kept(NamedTuple):
    asked: Question
    placement: Placement
    until_seconds: float


class PatientScorer:
    """A scorer that gives an answer which was long in coming again for a while, though the cluster has changed since.

    The question has to be the same object, as `webhook.pipeline.Memory` hands it out for the pods of one template. An
    instance is for one thread.
    """

    def __init__(
        self, scorer: Scorer, cache_bytes: int, monotonic_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._scorer = scorer
        self._monotonic_seconds = monotonic_seconds
        self._kept: ByteCache[int, _Kept] = ByteCache(cache_bytes)

    @property
    def caches(self) -> tuple[ByteCache[int, _Kept], ...]:
        """The cache, to be measured."""
        return (self._kept,)

    def answer(self, asked: Question, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """What the scorer says, or said a moment ago."""
        began_seconds = self._monotonic_seconds()
        kept = self._kept.get(id(asked))
        if kept is not None and kept.until_seconds > began_seconds:
            return kept.placement
        placement = self._scorer.answer(asked, snapshot, expired)
        took_seconds = self._monotonic_seconds() - began_seconds
        if took_seconds >= _SLOW_SECONDS:
            again_seconds = _SPENT_SECONDS if placement.verdict == "Unknown" else took_seconds * _REUSE_RATIO
            until_seconds = began_seconds + took_seconds + again_seconds
            size_bytes = asked.size_bytes + len(snapshot.nodes) + len(placement.message)
            self._kept.put(id(asked), _Kept(asked, placement, until_seconds), size_bytes)
        return placement
