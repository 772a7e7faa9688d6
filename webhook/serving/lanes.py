"""What a thread of admissions keeps from one pod to the next of its kind, and how it comes from a request to a verdict.

Pods of one template are alike in what is read of them (`webhook.evaluation.read_of`), so what is said of one holds for
the next. Small pods come by the thousand: of them the question to the scorer is kept, which is asked anew as soon as
the cluster has changed. What a large pod is made of is not worth the memory: of it the verdict is kept, for a while.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from webhook.byte_cache import ByteCache
from webhook.cluster.snapshot import Snapshot
from webhook.kube.admission import AdmissionRequest
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.pipeline import ClusterView, Memory, Scorer, admit, not_a_pod_creation, template_key
from webhook.placement.scheduler import Placement, PodSignature
from webhook.policy.policy import Policy
from webhook.serving.effort import Effort
from webhook.serving.rendering import Rendered, Renderings, render
from webhook.verdict import Denied, Patched, Unchanged, Verdict

# A verdict that was long in coming is given again for so many times as long: the replicas of a large template take a
# tenth of a processor at most, however fast the cluster changes.
_REUSE_RATIO = 10.0
_LONGEST_REUSE_SECONDS = 2.0
# Where the work budget was spent, it would be the next time.
_SPENT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class TimedScorer:
    """A scorer that tells `observe` how many seconds each answer took."""

    scorer: Scorer
    observe: Callable[[float], None]

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """What the scorer says."""
        began_seconds = time.perf_counter()
        placement = self.scorer.answer(asked, snapshot, expired)
        self.observe(time.perf_counter() - began_seconds)
        return placement


class Lane(Protocol):
    """The way of admissions in one thread."""

    @property
    def is_told(self) -> bool:
        """Whether what is predicted for its pods is compared with where they are bound."""
        ...

    def rendered(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, effort: Effort
    ) -> Rendered:
        """Return what is said of `request`.

        Raises:
            InvalidInput: the request's object cannot be read as a Pod.
        """
        ...


class SmallLane:
    """The lane of pods as people write them."""

    is_told = True

    def __init__(self) -> None:
        self._memory = Memory()
        self._renderings = Renderings()

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """The caches by name, to be measured."""
        return {"decisions": self._memory.caches, "renderings": self._renderings.caches}

    def rendered(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, effort: Effort
    ) -> Rendered:
        """Return what is said of `request`, by the cluster as it is now."""
        verdict = admit(request, policy, cluster, effort, self._memory)
        return self._renderings.of(request, verdict, policy, cluster.snapshot if cluster else None)


class _Kept(NamedTuple):
    rendered: Rendered
    until_seconds: float
    generation: int

    def holds(self, now_seconds: float, generation: int) -> bool:
        """Whether it may be said again; a denial only of the cluster that it is about."""
        is_of_the_past = isinstance(self.rendered.verdict, Denied) and self.generation != generation
        return now_seconds < self.until_seconds and not is_of_the_past


LARGE_CACHE_BYTES = 6 * 1024 * 1024


class LargeLane:
    """The lane of pods that cost much: the replicas of one template are worked out once in a while.

    `scorer` is asked in place of the cluster's, which another thread asks.
    """

    is_told = False

    def __init__(
        self,
        scorer: Scorer | None = None,
        cache_bytes: int = LARGE_CACHE_BYTES,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scorer = scorer
        self._monotonic_seconds = monotonic_seconds
        self._kept: ByteCache[tuple[tuple[str, bytes], bool], _Kept] = ByteCache(cache_bytes)
        self._policy: Policy | None = None

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """The caches by name, to be measured."""
        return {"large_decisions": (self._kept,)}

    def rendered(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, effort: Effort
    ) -> Rendered:
        """Return what is said of `request`, or was said of an equal one a moment ago."""
        if self._policy is not policy:
            self._kept.clear()
            self._policy = policy
        if not_a_pod_creation(request):
            return render(request, admit(request, policy, cluster, effort), policy)
        began_seconds = self._monotonic_seconds()
        namespace = request.namespace or DEFAULT_NAMESPACE
        defaults = cluster.snapshot.namespace_annotations(namespace) if cluster else {}
        template = template_key(request, defaults)
        key = None if template is None else (template, cluster is not None and not cluster.stale_reason)
        generation = cluster.snapshot.generation if cluster else 0
        kept = None if key is None else self._kept.get(key)
        if kept is not None and kept.holds(began_seconds, generation):
            return kept.rendered
        if cluster is not None and self._scorer is not None:
            cluster = replace(cluster, scorer=self._scorer)
        rendered = render(request, _light(admit(request, policy, cluster, effort)), policy)
        if key is not None and not effort.is_over:
            ended_seconds = self._monotonic_seconds()
            again_seconds = min((ended_seconds - began_seconds) * _REUSE_RATIO, _LONGEST_REUSE_SECONDS)
            if effort.is_spent and _is_unknown(rendered.verdict):
                again_seconds = _SPENT_SECONDS
            self._kept.put(key, _Kept(rendered, ended_seconds + again_seconds, generation), rendered.size_bytes)
        return rendered


def _is_unknown(verdict: Verdict) -> bool:
    return isinstance(verdict, Patched | Unchanged) and verdict.placement.verdict == "Unknown"


def _light(verdict: Verdict) -> Verdict:
    """The same without the pod, and without what its scores would be worked out of."""
    if isinstance(verdict, Patched | Unchanged):
        return replace(verdict, pod={}, placement=replace(verdict.placement, scores={}))
    if isinstance(verdict, Denied) and verdict.placement is not None:
        return replace(verdict, placement=replace(verdict.placement, scores={}))
    return verdict
