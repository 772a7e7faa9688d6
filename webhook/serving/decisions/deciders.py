"""The decider of the worker thread, which caches rendered decisions for a time."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from webhook.admission.cluster_view import ClusterView
from webhook.admission.pipeline import not_a_pod_creation, read_pod
from webhook.kube.api.admission import AdmissionRequest
from webhook.placement.scorer import Scorer
from webhook.policy.exempt import request_exemption, shadow_reason
from webhook.policy.policy import Policy
from webhook.runtime.byte_cache import ByteCache, parsed_bytes
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.decision_keys import ContentKey
from webhook.serving.decisions.rendering import Rendered
from webhook.serving.work_budget import WorkBudget

_CACHE_BYTES = 6 * 1024 * 1024
# A decision is reused for this many times its duration, so the replicas of a large template take a tenth of a CPU at
# most, however fast the cluster changes.
_REUSE_RATIO = 10.0
_MAX_REUSE_SECONDS = 2.0
# A decision that spent its work budget would spend it again.
_SPENT_REUSE_SECONDS = 30.0
# A place in a set; up to three quarters of the places are empty.
_NODE_BYTES = 64


class _Kept(NamedTuple):
    rendered: Rendered
    until_seconds: float
    generation: int

    def is_valid(self, now_seconds: float, generation: int) -> bool:
        """Return whether the decision may be reused. A denial may only be reused on the same snapshot."""
        is_outdated = self.rendered.outcome == "Denied" and self.generation != generation
        return now_seconds < self.until_seconds and not is_outdated


class WorkerDecider:
    """Decides on expensive pods in the worker thread. Replicas of one template share a decision for a limited time.

    A decision is reused for ten times its duration, on any snapshot. `scorer` returns the scorer of a policy, as in
    `DecisionCache`. A separate scorer is needed because the event loop uses that of the cluster view.
    """

    def __init__(
        self,
        scorer: Callable[[Policy], Scorer] | None = None,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept: ByteCache[tuple[ContentKey, str | None, bool], _Kept] = ByteCache(_CACHE_BYTES)
        self._monotonic_seconds = monotonic_seconds
        self._decisions = DecisionCache(0, scorer)

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """Return the caches by name, for metrics."""
        return {"large_decisions": (self._kept,)}

    def decide(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        """Return the rendered decision on `request`, or a recent one on an equal request.

        Raises:
            InvalidInput: the request's object cannot be read as a Pod.
        """
        rendered = self._decide(request, policy, cluster, work_budget)
        # It can be the decision on an earlier pod of the template.
        rendered.prediction = None
        return rendered

    def _decide(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        if not_a_pod_creation(request) or request_exemption(request, policy.spec):
            return self._decisions.decide(request, policy, cluster, work_budget)
        began_seconds = self._monotonic_seconds()
        content = read_pod(request, cluster)
        pod_key = ContentKey.of_decision(content, policy)
        if pod_key is None or content.data is None:
            return self._decisions.decide(request, policy, cluster, work_budget)
        is_current = cluster is not None and not cluster.stale_reason
        generation = cluster.snapshot.generation if cluster else 0
        key = pod_key, shadow_reason(request, policy.spec), is_current
        kept = self._kept.get(key)
        if kept is not None and kept.is_valid(began_seconds, generation) and _has_room(kept.rendered, cluster):
            return kept.rendered
        rendered = self._decisions.decide(request, policy, cluster, work_budget)
        if not work_budget.is_expired:
            ended_seconds = self._monotonic_seconds()
            seconds = min((ended_seconds - began_seconds) * _REUSE_RATIO, _MAX_REUSE_SECONDS)
            if work_budget.is_spent and rendered.is_unknown:
                seconds = _SPENT_REUSE_SECONDS
            kept = _Kept(rendered, ended_seconds + seconds, generation)
            self._kept.put(key, kept, _cached_bytes(rendered, content.data))
        return rendered


Decider = DecisionCache | WorkerDecider


def _has_room(rendered: Rendered, cluster: ClusterView | None) -> bool:
    """Return false if waiting pods now have the room that was predicted for an earlier pod of the template."""
    candidate, assumed = rendered.candidate, None if cluster is None else cluster.assumed
    if candidate is None or assumed is None or candidate.placement.verdict != "Feasible":
        return True
    return assumed.has_room(candidate.placement.node or "", candidate.pod.running)


def _cached_bytes(rendered: Rendered, data: bytes) -> int:
    size_bytes, placement = rendered.size_bytes, rendered.placement
    if rendered.candidate is not None:
        size_bytes += 2 * parsed_bytes(data)
    if placement is not None:
        size_bytes += _NODE_BYTES * (len(placement.possible_nodes) + len(placement.binding.possible_nodes))
        size_bytes += len(placement.binding.message)
    return size_bytes
