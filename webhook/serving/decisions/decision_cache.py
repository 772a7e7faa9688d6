"""Caches what decisions depend on, by the content of the pod: the policy's result and the rendered decision.

Pods of one template are equal in everything that a decision depends on (`webhook.admission.pod_content`). The policy's
result is valid until the policy changes, the placement while its nodes are (`webhook.placement.ranking`), and a
rendered decision with both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import ref

from webhook.admission.evaluation import PolicyResult, RulesResult, apply_rules, evaluate
from webhook.admission.mutated_pod import Injection, Mutated
from webhook.admission.pipeline import (
    ClusterView,
    cluster_warnings,
    conclude,
    not_a_pod_creation,
    predict,
    read_pod,
    under_object,
)
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Denied, Patched, Unchanged
from webhook.cluster.row_log import RowLog
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest
from webhook.objects.admission import admit_request
from webhook.placement.framework.result import Placement
from webhook.placement.scorer import PodSignature, Scorer
from webhook.policy.exempt import request_exemption, shadow_reason
from webhook.policy.policy import Policy
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.decisions.rendering import Candidate, PodParts, Rendered, Renderer, render
from webhook.serving.work_budget import WorkBudget

RESULT_CACHE_BYTES = 12 * 1024 * 1024

_MOST_POLICIES = 64

_MAX_KEY_BYTES = 2048
# The fixed size of a result and its key, and the size of an operation with a value from the policy.
_RESULT_BYTES = 6144
_OPERATION_BYTES = 1024
# The fixed size of the name of a product.
_PRODUCT_BYTES = 64


class DecisionKey(NamedTuple):
    """All that the policy's result depends on. A long `content` is replaced by its hash."""

    namespace: str
    content: bytes
    """The fields of the pod that are read, and the annotations of its namespace."""
    policy: str
    """Its identity: the policies of two namespaces can be equal but for the name, which is written to the pod."""

    @classmethod
    def of(cls, content: PodContent, policy: Policy) -> "DecisionKey | None":
        """Return the key of the pod in `content`; None if the pod cannot be serialised."""
        data = content.data
        return None if data is None else cls(content.namespace, _short(data), policy.identity)


class RulesKey(NamedTuple):
    """All that the rules' result depends on; containers and volumes of the pod only if the policy reads amounts."""

    namespace: str
    content: bytes
    extended_resources: tuple[str, ...]
    policy: str


def _short(data: bytes) -> bytes:
    return data if len(data) <= _MAX_KEY_BYTES else blake2b(data, digest_size=32).digest()


# A snapshot is large, so what is known of a pod keeps none in memory.
Ref = Callable[[], Snapshot | None]


class _Basis(NamedTuple):
    """What a decision is made on; the decision on an equal pod is the same on an equal basis."""

    shadow: str | None
    placement: Placement | None
    of_cluster: tuple[str, ...]


@dataclass(slots=True)
class _Known:
    """What is known of equal pods: the policy's result, and the last decision with its basis."""

    result: PolicyResult
    parts: PodParts | None = None
    basis: _Basis | None = None
    rendered: Rendered | None = None
    warned_on: Ref = lambda: None
    of_cluster: tuple[str, ...] = ()
    last: tuple[tuple[RowLog, int], Ref, int, Placement] | None = None


class DecisionCache:
    """Decides on requests and caches results and rendered decisions. Not thread-safe.

    The caches take `cache_bytes` at most; 0 disables them. `scorer` returns the scorer of a policy, if that is not the
    one of the cluster view. `on_reuse` is called for each placement that is reused.
    """

    records_predictions = True

    def __init__(
        self,
        cache_bytes: int = RESULT_CACHE_BYTES,
        scorer: Callable[[Policy], Scorer] | None = None,
        on_reuse: Callable[[], object] = lambda: None,
    ) -> None:
        self._scorer = scorer
        self._known: ByteCache[DecisionKey, _Known] = ByteCache(cache_bytes * 5 // 8)
        self._rules: ByteCache[RulesKey, RulesResult] = ByteCache(cache_bytes // 8)
        # By the identity of the injection, which the entry keeps.
        self._like: ByteCache[int, tuple[Injection, PodSignature]] = ByteCache(cache_bytes * 3 // 16)
        self._renderer = Renderer(cache_bytes // 16)
        self._on_reuse = on_reuse
        self._policies: dict[str, Policy] = {}

    @property
    def caches(self) -> Mapping[str, tuple[ByteCache[Any, Any], ...]]:
        """Return the caches by name, for metrics."""
        return {"decisions": (self._known, self._rules, self._like), "renderings": (self._renderer.cache,)}

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
        shadow = shadow_reason(request, policy.spec)
        if not_a_pod_creation(request) or request_exemption(request, policy.spec):
            return render(request, admit_request(request, policy, cluster, work_budget), policy, shadow=shadow)
        self._use_policy(policy)
        content = read_pod(request, cluster)
        key = DecisionKey.of(content, policy)
        known = None if key is None else self._known.get(key)
        is_new = known is None
        try:
            if known is None:
                known = _Known(evaluate(content, policy, work_budget, self._apply_rules))
            result = known.result
            if not isinstance(result, Mutated):
                rendered = self._final(request, known, policy, shadow)
            else:
                result.bind(content, work_budget)
                if is_new and (like := self._like.get(id(result.injection))) is not None:
                    result.like = like[1]
                try:
                    rendered = self._predicted(request, known, result, policy, cluster, shadow, work_budget)
                finally:
                    result.release()
        except InvalidInput as error:
            raise under_object(error) from error
        if is_new and key is not None:
            self._known.put(key, known, _known_bytes(known))
            if isinstance(result, Mutated) and (signature := result.known_signature) is not None:
                self._like.put(id(result.injection), (result.injection, signature), signature.size_bytes)
        return rendered

    def _final(self, request: AdmissionRequest, known: _Known, policy: Policy, shadow: str | None) -> Rendered:
        """Return the decision on a pod that is bypassed or denied without a look at the cluster."""
        assert not isinstance(known.result, Mutated)  # noqa: S101 - the caller's
        basis = _Basis(shadow, None, ())
        if known.rendered is None or known.basis != basis:
            known.basis, known.rendered = basis, render(request, known.result, policy, shadow=shadow)
        return known.rendered

    def _predicted(
        self,
        request: AdmissionRequest,
        known: _Known,
        result: Mutated,
        policy: Policy,
        cluster: ClusterView | None,
        shadow: str | None,
        work_budget: WorkBudget,
    ) -> Rendered:
        """Return the decision on a pod that the policy applies to."""
        of_cluster: tuple[str, ...] = ()
        namespace = result.content.namespace
        if cluster is not None and not cluster.stale_reason:
            if known.warned_on() is not cluster.snapshot:
                known.of_cluster, known.warned_on = cluster_warnings(result, policy, cluster), ref(cluster.snapshot)
            of_cluster = known.of_cluster
        placement = self._placement(known, result, policy, cluster, work_budget)
        rendered, before = known.rendered, known.basis
        if (
            rendered is None
            or before is None
            or before.placement is not placement
            or before.shadow != shadow
            or before.of_cluster != of_cluster
        ):
            verdict = conclude(result, placement, of_cluster)
            if shadow is None and isinstance(verdict, Patched | Unchanged):
                rendered, known.parts = self._renderer.allowed(request, verdict, policy, known.parts)
            else:
                rendered = render(request, verdict, policy, shadow=shadow)
            known.rendered, known.basis = rendered, _Basis(shadow, placement, of_cluster)
        rendered.candidate = None
        # A pod that is left alone is placed as it is, once it is seen in the cluster.
        is_admitted = shadow is None and rendered.outcome != "Denied"
        if is_admitted and cluster is not None and cluster.assumed is not None and cluster.reserves(namespace):
            rendered.candidate = Candidate.of(result, placement)
        return rendered

    def _placement(
        self, known: _Known, result: Mutated, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Placement:
        """Return the placement of the pod in `result`.

        That of an equal pod is reused on the same state of the cluster. A pod for which room is reserved has its own.
        """
        if cluster is None or cluster.assumed is None or cluster.stale_reason:
            return predict(result, policy, cluster, work_budget)
        signature = result.signature
        if isinstance(signature, str):
            return predict(result, policy, cluster, work_budget)
        assumed, last = cluster.assumed, known.last
        state = assumed.before_pod(signature.info.preemption).state
        is_same = last is not None and last[0] == state and last[1]() is assumed.base and last[2] == len(assumed)
        if is_same and last is not None and not (_fits(last[3]) and cluster.reserves(result.content.namespace)):
            self._on_reuse()
            return last[3]
        placement = predict(result, policy, cluster, work_budget)
        known.last = (state, ref(assumed.base), len(assumed), placement) if placement.is_final else None
        return placement

    def _apply_rules(self, content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
        data = content.data if policy.reads_amounts else content.data_without_containers
        if data is None:
            return apply_rules(content, extended_resources, policy)
        key = RulesKey(content.namespace, _short(data), extended_resources, policy.identity)
        result = self._rules.get(key)
        if result is None:
            result = apply_rules(content, extended_resources, policy)
            key_bytes = sum(len(name) for name in extended_resources)
            self._rules.put(key, result, _rules_bytes(result) + key_bytes)
        return result

    def _use_policy(self, policy: Policy) -> None:
        """Clear the caches if `policy` replaces one of its name: its keys would never be looked up again.

        The keys of a policy that was deleted or renamed age out.
        """
        known = self._policies.get(policy.name)
        if known is not policy:
            if known is not None or len(self._policies) >= _MOST_POLICIES:
                self._known.clear()
                self._rules.clear()
                self._like.clear()
                self._renderer.cache.clear()
                self._policies.clear()
            self._policies[policy.name] = policy


def _fits(placement: Placement) -> bool:
    return "Feasible" in (placement.verdict, placement.binding.verdict)


def _known_bytes(known: _Known) -> int:
    """Return the maximum size of what is known in memory."""
    size_bytes = 0
    if known.rendered is not None:
        placement = known.rendered.placement
        columns = () if placement is None else (placement.best_rows, placement.feasible_mask)
        size_bytes = known.rendered.size_bytes + sum(each.nbytes for each in columns if each is not None)
    if isinstance(known.result, Mutated):
        return size_bytes + known.result.size_bytes + _rules_bytes(known.result.injection)
    return size_bytes + _rules_bytes(known.result)


def _rules_bytes(result: RulesResult) -> int:
    """Return the maximum size of `result` in memory."""
    size_bytes = _RESULT_BYTES + sum(len(text) * 4 for text in result.warnings)
    if isinstance(result, Denied):
        size_bytes += len(result.denial.message) * 4
    if isinstance(result, Injection):
        # An operation with many products is larger: it is kept as JSON and as a list of references.
        size_bytes += max(len(result.operations) * _OPERATION_BYTES, len(result.patch) * 3)
        size_bytes += sum(_PRODUCT_BYTES + len(product) for product in result.references.products)
    return size_bytes
