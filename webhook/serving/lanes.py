"""The ways of admissions in the two threads: each has its own decision cache, and the large one its own scorer.

Small pods come by the thousand: the policy's result is kept, and the scorer is asked anew as soon as the cluster has
changed. For large pods only the rendered decision is kept, for a while.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from webhook.byte_cache import ByteCache
from webhook.cluster.snapshot import Snapshot
from webhook.kube.admission import AdmissionRequest
from webhook.pipeline import ClusterView, Scorer
from webhook.placement.scheduler import Placement, PodSignature
from webhook.policy.policy import Policy
from webhook.serving.decision_cache import DecisionCache
from webhook.serving.rendering import Rendered
from webhook.serving.reuse import TIMED_CACHE_BYTES, ForAWhile, UntilNextSnapshot
from webhook.serving.work_budget import WorkBudget


@dataclass(frozen=True, slots=True)
class TimedScorer:
    """A scorer that reports to `observe` how many seconds each answer took."""

    scorer: Scorer
    observe: Callable[[float], None]

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """Return the answer of the scorer."""
        began_seconds = time.perf_counter()
        placement = self.scorer.answer(asked, snapshot, expired)
        self.observe(time.perf_counter() - began_seconds)
        return placement


class Lane(Protocol):
    """The way of admissions in one thread."""

    @property
    def records_predictions(self) -> bool:
        """Whether the predictions for its pods are compared with the nodes that they are bound to."""
        ...

    def rendered(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        """Return the rendered decision on `request`.

        Raises:
            InvalidInput: the request's object cannot be read as a Pod.
        """
        ...


class SmallLane:
    """The lane of pods as people write them.

    `observe` gets the seconds of each placement check that is answered from the cache, about none: so the metric
    counts every check.
    """

    records_predictions = True

    def __init__(self, observe: Callable[[float], object] = lambda _: None) -> None:
        self._observe = observe
        self._reuse = UntilNextSnapshot()
        self._decisions = DecisionCache(self._reuse, on_reuse=self._count_check)

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """Return the caches by name, to be measured."""
        return {"decisions": self._decisions.results, "renderings": (self._reuse.cache,)}

    def rendered(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        """Return the rendered decision on `request`, by the cluster as it is now."""
        return self._decisions.decide(request, policy, cluster, work_budget)

    def _count_check(self, reused: Rendered) -> None:
        if reused.placement is not None and reused.placement.total:
            self._observe(0.0)


class LargeLane:
    """The lane of pods that cost much: the replicas of one template are worked out once in a while.

    `scorer` is asked in place of the cluster's, which another thread asks.
    """

    records_predictions = False

    def __init__(
        self,
        scorer: Scorer | None = None,
        cache_bytes: int = TIMED_CACHE_BYTES,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scorer = scorer
        self._reuse = ForAWhile(cache_bytes, monotonic_seconds)
        self._decisions = DecisionCache(self._reuse, 0, scores=False)

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """Return the caches by name, to be measured."""
        return {"large_decisions": (self._reuse.cache,)}

    def rendered(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        """Return the rendered decision on `request`, or that on an equal one a moment ago."""
        if cluster is not None and self._scorer is not None:
            cluster = replace(cluster, scorer=self._scorer)
        return self._decisions.decide(request, policy, cluster, work_budget)
