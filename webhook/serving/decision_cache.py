"""Caches decisions by the content of the pod: the policy's result and the rendered decision.

Pods of one template are equal in everything that a decision depends on (`webhook.pod_content`). The policy's result is
valid until the policy changes; `webhook.serving.reuse` decides how long a rendered decision is valid.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from webhook.byte_cache import ByteCache, parsed_bytes
from webhook.evaluation import Injection, Mutated, PolicyResult, RulesResult, apply_rules, evaluate
from webhook.kube.admission import AdmissionRequest
from webhook.kube.deadline import Expired, never
from webhook.objects.admission import admit_request
from webhook.pipeline import ClusterView, admit_content, not_a_pod_creation, read_pod
from webhook.pod_content import PodContent
from webhook.policy.canary import shadow_reason
from webhook.policy.exempt import request_exemption
from webhook.policy.policy import Policy
from webhook.serving.candidate import candidate_of
from webhook.serving.rendering import Rendered, render
from webhook.serving.reuse import Reuse
from webhook.serving.work_budget import WorkBudget
from webhook.verdict import Denied

RESULT_CACHE_BYTES = 12 * 1024 * 1024

_MOST_POLICIES = 64

_MAX_KEY_BYTES = 2048
# The fixed size of a result and its key, and the size of an operation with a value from the policy.
_RESULT_BYTES = 6144
_OPERATION_BYTES = 1024
# The fixed size of the name of a product.
_PRODUCT_BYTES = 64
# A place in a set; up to three quarters of the places are empty.
_NODE_BYTES = 64


class DecisionKey(NamedTuple):
    """All that a decision depends on. A long `content` is replaced by its hash."""

    namespace: str
    content: bytes
    """The fields of the pod that are read, and the annotations of its namespace."""
    policy: str
    """Its identity: the policies of two namespaces can be equal but for the name, which is written to the pod."""
    shadow: str | None = None
    """Why the policy is not enforced for the pod, which depends on its owner; None if it is."""

    @classmethod
    def of(cls, content: PodContent, policy: Policy, shadow: str | None = None) -> "DecisionKey | None":
        """Return the key of the pod in `content`; None if the pod cannot be serialised."""
        data = content.data
        return None if data is None else cls(content.namespace, _short(data), policy.identity, shadow)

    def enforced(self) -> "DecisionKey":
        """Return the key of the policy's result, which is the same where the policy is not enforced."""
        return self._replace(shadow=None)


class RulesKey(NamedTuple):
    """All that the rules' result depends on; containers and volumes of the pod only if the policy reads amounts."""

    namespace: str
    content: bytes
    extended_resources: tuple[str, ...]
    policy: str


def _short(data: bytes) -> bytes:
    return data if len(data) <= _MAX_KEY_BYTES else blake2b(data, digest_size=32).digest()


class DecisionCache:
    """Decides on requests and caches results and rendered decisions. An instance is for one thread.

    The results take `result_bytes` at most; 0 disables their cache. With `scores`, a rendered decision includes the
    scores of its placement, which keep the snapshot in memory. `on_reuse` is called with each reused decision.
    """

    def __init__(
        self,
        reuse: Reuse,
        result_bytes: int = RESULT_CACHE_BYTES,
        *,
        scores: bool = True,
        on_reuse: Callable[[Rendered], object] = lambda _: None,
    ) -> None:
        self._results: ByteCache[DecisionKey, PolicyResult] = ByteCache(result_bytes * 3 // 4)
        self._rules: ByteCache[RulesKey, RulesResult] = ByteCache(result_bytes // 4)
        self._reuse = reuse
        self._scores = scores
        self._on_reuse = on_reuse
        self._policies: dict[str, Policy] = {}

    @property
    def results(self) -> tuple[ByteCache[Any, Any], ...]:
        """Return the caches of the policy's and the rules' results, for metrics."""
        return self._results, self._rules

    def decide(
        self, request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Rendered:
        """Return the rendered decision on `request`, or an earlier one on an equal request.

        Raises:
            InvalidInput: the request's object cannot be read as a Pod.
        """
        shadow = shadow_reason(request, policy.spec)
        if not_a_pod_creation(request) or request_exemption(request, policy.spec):
            return render(request, admit_request(request, policy, cluster, work_budget), policy, shadow=shadow)
        self._use_policy(policy)
        self._reuse.begin(cluster)
        content = read_pod(request, cluster)
        key = DecisionKey.of(content, policy, shadow)
        known = None if key is None else self._reuse.get(key)
        if known is not None and _has_room(known, cluster):
            self._on_reuse(known)
            return known
        evaluated = partial(self._evaluated, None if key is None else key.enforced())
        verdict = admit_content(content, policy, cluster, work_budget, evaluated)
        rendered = render(request, verdict, policy, scores=self._scores, shadow=shadow)
        if shadow is None and _reserves(cluster, content.namespace):
            # A pod that is left alone is placed as it is, once it is seen in the cluster.
            rendered = replace(rendered, candidate=candidate_of(verdict, content.namespace))
        if key is not None and content.data is not None:
            self._reuse.put(key, rendered, work_budget, _cached_bytes(rendered, content.data, scores=self._scores))
        return rendered

    def evaluate(self, content: PodContent, policy: Policy, expired: Expired = never) -> PolicyResult:
        """Return the result of `webhook.evaluation.evaluate`, cached for equal content."""
        self._use_policy(policy)
        return self._evaluated(DecisionKey.of(content, policy), content, policy, expired)

    def _evaluated(
        self, key: DecisionKey | None, content: PodContent, policy: Policy, expired: Expired
    ) -> PolicyResult:
        known = None if key is None else self._results.get(key)
        if known is not None:
            return known
        result = evaluate(content, policy, expired, self._apply_rules)
        # Any other result is in the cache of the rules.
        if key is not None and isinstance(result, Mutated) and result.is_final:
            self._results.put(key, result, _result_bytes(result))
        return result

    def _apply_rules(self, content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
        if content.policy_data is None:
            return apply_rules(content, extended_resources, policy)
        data = content.data if policy.reads_amounts else content.policy_data
        key = RulesKey(content.namespace, _short(data or b""), extended_resources, policy.identity)
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
                self._results.clear()
                self._rules.clear()
                self._reuse.clear()
                self._policies.clear()
            self._policies[policy.name] = policy


def _reserves(cluster: ClusterView | None, namespace: str) -> bool:
    return cluster is not None and cluster.reservations is not None and cluster.reserves(namespace)


def _has_room(rendered: Rendered, cluster: ClusterView | None) -> bool:
    """Return false if pods that wait have taken the room of an earlier pod of the template meanwhile."""
    candidate, reservations = rendered.candidate, None if cluster is None else cluster.reservations
    if candidate is None or reservations is None:
        return True
    node = candidate.placement.node or ""
    return node in reservations.base.rows and reservations.has_room(node, candidate.pod.running)


def _result_bytes(result: PolicyResult) -> int:
    """Return the maximum size of `result` in memory."""
    if not isinstance(result, Mutated):
        return _rules_bytes(result)
    signature = result.signature
    size_bytes = len(signature) if isinstance(signature, str) else signature.size_bytes
    return size_bytes + _rules_bytes(result.injection)


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


def _cached_bytes(rendered: Rendered, data: bytes, *, scores: bool) -> int:
    """Return the maximum size of `rendered` in memory; scores keep the pod's signature and a mask of the nodes."""
    size_bytes, placement = rendered.size_bytes, rendered.placement
    if rendered.candidate is not None:
        size_bytes += 2 * parsed_bytes(data) + len(rendered.candidate.content)
    if placement is not None:
        size_bytes += _NODE_BYTES * (len(placement.possible_nodes) + len(placement.binding.possible_nodes))
        size_bytes += len(placement.binding.message)
    if not scores or placement is None or not placement.total:
        return size_bytes
    return size_bytes + parsed_bytes(data) + placement.total + len(placement.message)
