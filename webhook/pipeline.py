"""One request's story, from the question to the verdict. Pure: the same question has the same answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import orjson

from webhook.byte_cache import ByteCache
from webhook.cluster.snapshot import Snapshot
from webhook.evaluation import Mutated, StaticVerdict, judge, read_of
from webhook.kube.admission import AdmissionRequest, Refusal
from webhook.kube.field import InvalidInput
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.placement.pod_signature import ANSWER_CACHE_BYTES
from webhook.placement.profile import PROFILES
from webhook.placement.scheduler import Placement, PodSignature, Scheduler
from webhook.placement.templates import template_nodes
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied, Patched, Unchanged, Verdict

JsonObject = dict[str, Any]


class Scorer(Protocol):
    """Foretells where a pod goes: the placement framework, or what wraps it."""

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """The placement on `snapshot` of a pod of which that is asked."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The view of the cluster that the placement check asks, and the scorer that asks it.

    `stale_reason` is the reason not to predict from it, such as its age; empty: it is current. The annotations of
    namespaces are read from it in any case.
    """

    snapshot: Snapshot
    scorer: Scorer
    stale_reason: str = ""


def scheduler_for(policy: Policy, cache_bytes: int = ANSWER_CACHE_BYTES) -> Scheduler:
    """The scorer that foretells at admission what `policy` wants to know: one suggestion is as much as is told."""
    profile, templates = PROFILES[policy.spec.placement_check.profile], template_nodes(policy.spec.node_templates)
    return Scheduler(profile, templates=templates, suggestions=1, cache_bytes=cache_bytes)


class _Conclusion(NamedTuple):
    mutated: Mutated
    placement: Placement
    verdict: Verdict


MEMORY_BYTES = 12 * 1024 * 1024


class Memory:
    """Remembers what a policy made of the last pods: those of one template are alike in what is read of them.

    Holds for one policy; asked about another, all is forgotten. It keeps what is to be done to a pod, not the pod: in
    its mutations that is empty. All that it keeps takes `cache_bytes` at most. An instance is for one thread.
    """

    def __init__(self, cache_bytes: int = MEMORY_BYTES) -> None:
        self._policy: Policy | None = None
        self._verdicts: ByteCache[tuple[str, bytes], StaticVerdict] = ByteCache(cache_bytes * 3 // 4)
        self._snapshot: Snapshot | None = None
        self._conclusions: ByteCache[int, _Conclusion] = ByteCache(cache_bytes // 4)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """The caches, to be measured."""
        return self._verdicts, self._conclusions

    def judge(
        self,
        request: AdmissionRequest,
        pod: JsonObject,
        defaults: Mapping[str, str],
        policy: Policy,
        expired: Callable[[], bool] = lambda: False,
    ) -> StaticVerdict:
        """What `judge` says, or said of an equal pod."""
        if self._policy is not policy:
            self._verdicts.clear()
            self._policy = policy
        question = template_key(request, defaults)
        if question is None:
            return judge(request, pod, defaults, policy, expired)
        verdict = self._verdicts.get(question)
        if verdict is not None:
            return verdict
        verdict = judge(request, pod, defaults, policy, expired)
        size_bytes = _size_bytes(verdict)
        if not isinstance(verdict, Mutated):
            self._verdicts.put(question, verdict, size_bytes)
            return verdict
        if not verdict.is_final:
            return verdict
        remembered = replace(verdict, mutation=replace(verdict.mutation, pod={}), size_bytes=size_bytes)
        return remembered if self._verdicts.put(question, remembered, size_bytes) else verdict

    def conclude(self, mutated: Mutated, placement: Placement, cluster: ClusterView | None) -> Verdict:
        """The verdict that follows from these: the same object, as long as the view of the cluster is the same.

        What still has its pod was too large to be remembered, and is not remembered here either.
        """
        if mutated.mutation.pod:
            return _conclude(mutated, placement)
        snapshot = cluster.snapshot if cluster else None
        if self._snapshot is not snapshot:
            # A placement holds on to its snapshot, which is large.
            self._conclusions.clear()
            self._snapshot = snapshot
        known = self._conclusions.get(id(mutated))
        if known is not None and known.mutated is mutated and known.placement is placement:
            return known.verdict
        verdict = _conclude(mutated, placement)
        # It holds `mutated`, so that nothing else gets its id.
        size_bytes = mutated.size_bytes + len(placement.message) + _VERDICT_BYTES
        self._conclusions.put(id(mutated), _Conclusion(mutated, placement, verdict), size_bytes)
        return verdict


def template_key(request: AdmissionRequest, defaults: Mapping[str, str]) -> tuple[str, bytes] | None:
    """Return a key that pods of one template share; None for a pod that cannot be serialized.

    `defaults` are the annotations of the namespace. The key of a pod with much in it has a hash of that.
    """
    try:
        read = orjson.dumps([read_of(request.object or {}), dict(defaults)])
    except orjson.JSONEncodeError:  # nested deeper than it writes, though not than it reads
        return None
    return request.namespace, read if len(read) <= _LONGEST_KEY_BYTES else blake2b(read, digest_size=32).digest()


_LONGEST_KEY_BYTES = 2048
# A verdict and what it is made of, its key too, but for what grows with the pod; an operation with a value of ours.
_VERDICT_BYTES = 6144
_OPERATION_BYTES = 1024


def _size_bytes(verdict: StaticVerdict) -> int:
    """The memory that `verdict` takes at most."""
    size_bytes = _VERDICT_BYTES + sum(len(text) * 4 for text in verdict.warnings)
    if isinstance(verdict, Denied):
        size_bytes += len(verdict.refusal.message) * 4
    if isinstance(verdict, Mutated):
        asked = verdict.question
        size_bytes += len(asked) if isinstance(asked, str) else asked.size_bytes
        size_bytes += len(verdict.mutation.operations) * _OPERATION_BYTES
    return size_bytes


def admit(
    request: AdmissionRequest,
    policy: Policy,
    cluster: ClusterView | None,
    expired: Callable[[], bool] = lambda: False,
    memory: Memory | None = None,
) -> Verdict:
    """What becomes of `request` under `policy`.

    The patch depends on the pod, its namespace's defaults and the policy alone; `cluster` serves those defaults and the
    placement check, which is given up (verdict Unknown) once `expired()` holds. `memory` answers for equal pods.

    Raises:
        InvalidInput: the request's object cannot be read as a Pod.
    """
    if reason := not_a_pod_creation(request):
        return Bypassed(reason)
    pod = request.object or {}
    defaults = cluster.snapshot.namespace_annotations(request.namespace or DEFAULT_NAMESPACE) if cluster else {}
    try:
        verdict = (memory.judge if memory else judge)(request, pod, defaults, policy, expired)
        if not isinstance(verdict, Mutated):
            return verdict
        placement = _placement(verdict, cluster, expired)
        return memory.conclude(verdict, placement, cluster) if memory else _conclude(verdict, placement)
    except InvalidInput as error:
        raise _under_object(error) from error


def not_a_pod_creation(request: AdmissionRequest) -> str | None:
    """Return why `request` is bypassed without reading its object; None for the creation of a pod."""
    if request.operation != "CREATE":
        return f"operation {request.operation}"
    if request.subresource:
        return f"subresource {request.subresource}"
    if request.kind not in ("", "Pod") or request.resource not in ("", "pods"):
        return f"not a pod: {request.kind or request.resource}"
    return None


def _placement(mutated: Mutated, cluster: ClusterView | None, expired: Callable[[], bool]) -> Placement:
    if mutated.workload.check_mode == "off":
        return _unknown("the placement check is off")
    if cluster is None:
        return _unknown("no view of the cluster")
    if cluster.stale_reason:
        return _unknown(cluster.stale_reason)
    if isinstance(mutated.question, str):
        return _unknown(mutated.question)
    placement = cluster.scorer.answer(mutated.question, cluster.snapshot, expired)
    if placement.verdict == "Infeasible" and placement.total == 0:
        # Nothing is known of a cluster whose nodes are still to come; a wrong file must not refuse every pod.
        return _unknown("the view of the cluster has no node")
    return placement


@lru_cache(maxsize=64)
def _unknown(message: str) -> Placement:
    """The same object each time, so that the verdicts on the pods of one template stay one object, too."""
    return Placement.unknown(message)


def _conclude(mutated: Mutated, placement: Placement) -> Patched | Unchanged | Denied:
    workload, mutation, warnings = mutated.workload, mutated.mutation, mutated.warnings
    if placement.verdict == "Infeasible" and workload.check_mode == "deny" and not placement.deny_exemption:
        suggestion = "".join(f" Suggestion: {text}." for text in placement.suggestions[:1])
        message = f"no node of this cluster could ever take this pod: {placement.message}{suggestion}"
        refusal = Refusal(403, "Forbidden", message)
        return Denied(refusal, workload.type_name, mutation.rules, warnings, placement)
    if placement.verdict in ("Infeasible", "Waiting"):
        # Each is cut to what reaches a client: the suggestion stands for itself, lest a long message cut it off.
        suggestions = [f"placement check: suggestion: {text}" for text in placement.suggestions[:1]]
        is_spared = placement.deny_exemption and workload.check_mode == "deny"
        doubts = [f"placement check: not refused: {placement.deny_exemption}"] if is_spared else []
        warnings = (*warnings, f"placement check: {placement.verdict}: {placement.message}", *doubts, *suggestions)
    if mutation.operations:
        return Patched(workload.type_name, mutation.pod, mutation.operations, mutation.rules, warnings, placement)
    return Unchanged(workload.type_name, mutation.pod, mutation.rules, warnings, placement)


def _under_object(error: InvalidInput) -> InvalidInput:
    return InvalidInput(
        replace(each, path=f"request.object.{each.path}" if each.path else "request.object") for each in error.errors
    )
