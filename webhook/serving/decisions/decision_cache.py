"""Cache the policy's result and the rendered decision by the content of the pod (see ARCHITECTURE.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

from webhook.admission.cluster_view import ClusterView
from webhook.admission.evaluation import PolicyResult, evaluate
from webhook.admission.injection import Denied, Injection, RulesResult, apply_rules
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pipeline import PodVerdict, Steps, cluster_warnings, conclude, predict
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed, ObjectVerdict, Verdict
from webhook.cluster.row_log import RowLog
from webhook.cluster.snapshot import Snapshot
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.deadline import Expired
from webhook.objects.admission import admit_request
from webhook.placement.framework.result import Placement, PlacementVerdict
from webhook.placement.scorer import PodSignature, Scorer
from webhook.policy.exempt import shadow_reason
from webhook.policy.policy import Policy
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.decisions.decision_keys import ContentKey
from webhook.serving.decisions.rendering import Candidate, Rendered, render, render_like
from webhook.serving.work_budget import WorkBudget

RESULT_CACHE_BYTES = 12 * 1024 * 1024

_MOST_POLICIES = 64

# The fixed size of a result and its key, and the size of an operation with a value from the policy.
_RESULT_BYTES = 6144
_OPERATION_BYTES = 1024
# The fixed size of the name of a product.
_PRODUCT_BYTES = 64


# A snapshot is large, so what is known of a pod keeps none in memory.
Ref = Callable[[], Snapshot | None]


@dataclass(slots=True)
class _OfPolicy:
    """The injection and a signature for pods that differ only in containers and volumes."""

    result: RulesResult
    like: PodSignature | None = None


@dataclass(slots=True)
class _Known:
    """The cached results for equal pods: the policy's result, the last placement, and the last rendered verdict."""

    result: PolicyResult
    rules_key: ContentKey | None = None
    warned_on: Ref = lambda: None
    of_cluster: tuple[str, ...] = ()
    last: tuple[tuple[tuple[RowLog, int], int, int], Ref, Placement] | None = None
    verdict: PodVerdict | None = None
    placement: Placement | None = None
    warned: tuple[str, ...] = ()
    """The warnings about the cluster in the verdict."""
    rendered: Rendered | None = None
    rendered_of: Verdict | ObjectVerdict | None = None
    shadow: str | None = None
    counted: tuple[int, bool] | None = None
    """The size of the result in that of the entry, and whether the columns of a placement are in it."""


class DecisionCache:
    """Decides on requests and keeps results and rendered decisions. Not thread-safe.

    The caches take at most `cache_bytes`; 0 disables them. `scorer` returns the scorer of a policy; if it is None, the
    scorer of the cluster view is used. `on_reuse` is called for each placement that is reused.
    """

    def __init__(
        self,
        cache_bytes: int = RESULT_CACHE_BYTES,
        scorer: Callable[[Policy], Scorer] | None = None,
        on_reuse: Callable[[], object] = lambda: None,
    ) -> None:
        self._scorer = scorer
        self.known: ByteCache[ContentKey, _Known] = ByteCache(cache_bytes * 5 // 8)
        self.of_policies: ByteCache[ContentKey, _OfPolicy] = ByteCache(cache_bytes * 5 // 16)
        # For equal injections, warnings and verdicts of the placement check: a decision without its placement.
        self.renderings: ByteCache[tuple[ContentKey, tuple[str, ...], PlacementVerdict], Rendered]
        self.renderings = ByteCache(cache_bytes // 16)
        self.on_reuse = on_reuse
        self._policies: dict[str, Policy] = {}

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """Return the caches by name, for metrics."""
        return {"decisions": (self.known, self.of_policies), "renderings": (self.renderings,)}

    def decide(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        """Return the rendered decision on `request`.

        Raises:
            InvalidInput: the request's object cannot be read as a Pod.
        """
        if cluster is not None and cluster.scorer is not None and self._scorer is not None:
            scorer = self._scorer(policy)
            cluster = cluster if scorer is cluster.scorer else replace(cluster, scorer=scorer)
        if self._policies.get(policy.name) is not policy:
            self._use_policy(policy)
        shadow = shadow_reason(request, policy.spec)
        steps = _KnownSteps(self, work_budget)
        try:
            verdict = admit_request(request, policy, cluster, work_budget, steps)
            if steps.known is None:
                return render(request, verdict, policy, shadow=shadow)
            rendered = steps.rendered(request, verdict, policy, shadow)
            # A pod that is left alone is placed as it is, once it is seen in the cluster.
            rendered.candidate = None
            if shadow is None and isinstance(verdict, Allowed) and cluster is not None and cluster.assumed is not None:
                has_place = cluster.reserves(request.namespace)
                rendered.candidate = Candidate.of(verdict.mutated, verdict.placement) if has_place else None
            return rendered
        finally:
            steps.finish()

    def keep(self, key: ContentKey, of_policy: _OfPolicy) -> None:
        """Cache the injection and the signature for pods that differ only in containers and volumes."""
        size_bytes = _rules_bytes(of_policy.result) + sum(map(len, key.extended_resources))
        self.of_policies.put(key, of_policy, size_bytes + (of_policy.like.size_bytes if of_policy.like else 0))

    def _use_policy(self, policy: Policy) -> None:
        """Clear the caches if `policy` replaces one of the same name, whose keys are never looked up again."""
        if policy.name in self._policies or len(self._policies) >= _MOST_POLICIES:
            self.known.clear()
            self.of_policies.clear()
            self.renderings.clear()
            self._policies.clear()
        self._policies[policy.name] = policy


class _KnownSteps(Steps):
    """The steps of one admission, with the cached results for equal pods. `known` is set once the pod is evaluated."""

    def __init__(self, cache: DecisionCache, work_budget: WorkBudget) -> None:
        self.known: _Known | None = None
        self._cache = cache
        self._work_budget = work_budget
        self._key: ContentKey | None = None
        self._rules_key: ContentKey | None = None
        self._of_policy: _OfPolicy | None = None

    def evaluate(self, content: PodContent, policy: Policy, expired: Expired) -> PolicyResult:
        key = ContentKey.of_decision(content, policy)
        known = None if key is None else self._cache.known.get(key)
        if known is None:
            known = _Known(evaluate(content, policy, expired, self._apply_rules), self._rules_key)
            if isinstance(known.result, Mutated) and self._of_policy is not None:
                known.result.like = self._of_policy.like
        elif isinstance(known.result, Mutated):
            known.result.bind(content, expired)
        self._key, self.known = key, known
        return known.result

    def _apply_rules(self, content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
        self._rules_key = ContentKey.of_rules(content, extended_resources, policy)
        if self._rules_key is None:
            return apply_rules(content, extended_resources, policy)
        self._of_policy = self._cache.of_policies.get(self._rules_key)
        if self._of_policy is None:
            self._of_policy = _OfPolicy(apply_rules(content, extended_resources, policy))
            self._cache.keep(self._rules_key, self._of_policy)
        return self._of_policy.result

    def cluster_warnings(self, result: Mutated, policy: Policy, cluster: ClusterView | None) -> tuple[str, ...]:
        known = self.known
        if known is None or cluster is None or cluster.stale_reason:
            return ()
        if known.warned_on() is not cluster.snapshot:
            known.of_cluster, known.warned_on = cluster_warnings(result, policy, cluster), ref(cluster.snapshot)
        return known.of_cluster

    def predict(self, result: Mutated, policy: Policy, cluster: ClusterView | None, expired: Expired) -> Placement:
        """Return the cached placement of an equal pod on the same state of the cluster, or predict the placement."""
        known = self.known
        if known is None or cluster is None or cluster.assumed is None or cluster.stale_reason:
            return predict(result, policy, cluster, expired)
        signature = result.signature
        if isinstance(signature, str):
            return predict(result, policy, cluster, expired)
        assumed, last = cluster.assumed, known.last
        state = assumed.before_pod(signature.info.preemption).state, len(assumed), cluster.minute
        is_same = last is not None and last[0] == state and last[1]() is assumed.base
        if is_same and last is not None and not (_fits(last[2]) and cluster.reserves(result.content.namespace)):
            self._cache.on_reuse()
            return last[2]
        placement = predict(result, policy, cluster, expired)
        budget = self._work_budget
        # Parts of the placement can be missing, such as suggestions that were not verified in time.
        is_cut_short = budget.is_expired or (budget.is_spent and placement.verdict != "Unknown")
        is_kept = placement.is_final and not is_cut_short
        known.last = (state, ref(assumed.base), placement) if is_kept else None
        return placement

    def conclude(self, result: Mutated, placement: Placement, of_cluster: tuple[str, ...]) -> PodVerdict:
        known = self.known
        assert known is not None  # noqa: S101 - evaluated
        if known.verdict is None or known.placement is not placement or known.warned != of_cluster:
            known.verdict = conclude(result, placement, of_cluster)
            known.placement, known.warned = placement, of_cluster
        return known.verdict

    def rendered(
        self, request: AdmissionRequest, verdict: Verdict | ObjectVerdict, policy: Policy, shadow: str | None
    ) -> Rendered:
        known, renderings = self.known, self._cache.renderings
        assert known is not None  # noqa: S101 - evaluated
        equal = known.rendered
        if equal is not None and known.rendered_of is verdict and known.shadow == shadow:
            return equal
        rendered, key = None, None
        if shadow is None and known.rules_key is not None and isinstance(verdict, Allowed):
            key = known.rules_key, verdict.warnings, verdict.placement.verdict
            like = renderings.get(key)
            if like is not None:
                rendered, key = render_like(verdict, policy, like, equal), None
        if rendered is None:
            rendered = render(request, verdict, policy, shadow=shadow)
            if key is not None and not rendered.record.truncated:
                # A placement keeps its snapshot in memory.
                renderings.put(key, replace(rendered, placement=None, prediction=None), rendered.size_bytes)
        known.rendered, known.rendered_of, known.shadow = rendered, verdict, shadow
        return rendered

    def finish(self) -> None:
        known = self.known
        if known is None:
            return
        result_bytes = 0
        if isinstance(known.result, Mutated):
            known.result.release()
            result_bytes = known.result.size_bytes
            of_policy = self._of_policy
            if self._rules_key is not None and of_policy is not None and of_policy.like is None:
                of_policy.like = known.result.known_signature
                self._cache.keep(self._rules_key, of_policy)
        if self._key is None or known.rendered is None:
            return
        placement = known.rendered.placement
        parts = result_bytes, placement is not None and placement.best_rows is not None
        if parts != known.counted:
            known.counted = parts
            self._cache.known.put(self._key, known, _known_bytes(known))


def _fits(placement: Placement) -> bool:
    return "Feasible" in (placement.verdict, placement.binding.verdict)


def _known_bytes(known: _Known) -> int:
    size_bytes = 0
    if known.rendered is not None:
        placement = known.rendered.placement
        columns = () if placement is None else (placement.best_rows, placement.feasible_mask)
        size_bytes = known.rendered.size_bytes + sum([each.nbytes for each in columns if each is not None])
    if isinstance(known.result, Mutated):
        return size_bytes + known.result.size_bytes + _rules_bytes(known.result.injection)
    return size_bytes + _rules_bytes(known.result)


def _rules_bytes(result: RulesResult) -> int:
    size_bytes = _RESULT_BYTES + sum([len(text) * 4 for text in result.warnings])
    if isinstance(result, Denied):
        size_bytes += len(result.denial.message) * 4
    if isinstance(result, Injection):
        # An operation with many products is larger: it is kept as JSON and as a list of references.
        size_bytes += max(len(result.operations) * _OPERATION_BYTES, len(result.patch) * 3)
        size_bytes += sum([_PRODUCT_BYTES + len(product) for product in result.references.products])
    return size_bytes
