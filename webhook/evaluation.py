"""Evaluates the policy for a pod, independently of the cluster. Pure: equal pods have equal results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.backends.registry import backend_of, batch_names_of, starts_whole
from webhook.byte_cache import parsed_bytes
from webhook.kube.admission import Denial
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.field import FieldError, InvalidInput, forbidden
from webhook.kube.json_patch import patched
from webhook.kube.reader import Reader
from webhook.kube.resources import extended_names, read_pod_resources
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, MIRROR_POD_ANNOTATION
from webhook.mutation.batch_scheduling import BatchScheduling
from webhook.mutation.edits import PodTooLargeError
from webhook.mutation.mutate import RuleOutcome, mutate
from webhook.mutation.registry import RULES
from webhook.mutation.workload import WorkloadReading, opts_out, read_workload
from webhook.placement.cluster_warnings import PodReferences
from webhook.placement.gang import GangRequest
from webhook.placement.pod_signature import PodSignature, deadline_reader
from webhook.pod_content import PodContent, fields_read
from webhook.policy.exempt import pod_exemption
from webhook.policy.patterns import matches_any
from webhook.policy.placement_check import CheckMode
from webhook.policy.policy import Policy, opt_out_namespaces
from webhook.verdict import Bypassed, Denied

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Injection:
    """The changes that the policy injects into a pod. It references nothing of the pod."""

    workload_type: str
    check_mode: CheckMode
    operations: list[JsonObject]
    patch: bytes
    """The operations as JSON."""
    rules: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...]
    references: PodReferences
    """The names in the pod that are looked up in the view of the cluster."""
    gang: GangRequest | None = None
    starts_whole: bool = False
    """Whether the pod starts with the others of its gang or not at all."""


@dataclass(frozen=True, slots=True)
class Mutated:
    """The injection for a pod that the policy applies to, and the signature of the mutated pod."""

    injection: Injection
    signature: PodSignature | str
    """The input of the scheduler from the mutated pod, or the message of the verdict Unknown if it is skipped."""
    is_final: bool = True
    """True if an equal pod has the same signature; False if the deadline stopped the reading."""


RulesResult = Bypassed | Denied | Injection
PolicyResult = Bypassed | Denied | Mutated
ApplyRules = Callable[[PodContent, tuple[str, ...], Policy], RulesResult]

# The scheduler skips a pod if it would have to read more of it.
MAX_SCORED_BYTES = 256 * 1024
_UNREADABLE = "the scorer cannot read the pod"


def apply_rules(content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
    """Return the result of applying the rules of `policy` to the pod in `content`.

    It depends only on `content.policy_data`, the namespace and `extended_resources`, the names of the extended
    resources that the pod requests.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    pod, defaults = content.pod, content.defaults
    check_pod(pod)
    namespace = content.namespace or DEFAULT_NAMESPACE
    if reason := _bypass_reason(pod, namespace, defaults, policy):
        return Bypassed(reason)
    reading = read_workload(pod, namespace, defaults, policy, extended_resources)
    if reading.type_name is None:
        return Bypassed(reading.bypass_reason, reading.warnings)
    warnings = reading.warnings
    if reading.errors or reading.denials:
        if policy.spec.invalid_annotations == "deny":
            errors = (*reading.errors, *reading.denials)
            return Denied(_denial(reading), reading.type_name, warnings=warnings, errors=errors)
        warnings = (*map(str, (*reading.errors, *reading.denials)), *warnings)
    if reading.workload is None:
        return Bypassed(reading.bypass_reason, warnings, reading.type_name)
    try:
        mutation = mutate(pod, reading.workload, policy, RULES)
    except PodTooLargeError as error:
        return Denied(Denial(422, "Invalid", str(error)), reading.type_name, warnings=warnings)
    scheduler = mutation.pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    is_whole = starts_whole(mutation.pod, policy.spec, scheduler)
    return Injection(
        reading.workload.type_name,
        reading.workload.check_mode,
        mutation.operations,
        orjson.dumps(mutation.operations),
        mutation.rules,
        (*warnings, *mutation.warnings),
        PodReferences(
            f"{reading.workload.accelerator.card}.product",
            reading.workload.products,
            scheduler,
            reading.workload.any_product.listed if reading.workload.any_product is not None else None,
            mutation.pod["spec"].get("priorityClassName") or "",
            batch_names_of(mutation.pod, backend_of(policy.spec, scheduler)),
        ),
        _gang(reading.workload.batch, is_whole),
        is_whole,
    )


def _gang(batch: BatchScheduling, is_whole: bool) -> GangRequest | None:
    """Return the gang that is requested; None without a size."""
    request = batch.request
    if request.gang_size is None:
        return None
    return GangRequest(request.gang or "", request.gang_size, batch.scheduler, is_whole)


def evaluate(
    content: PodContent, policy: Policy, expired: Expired = never, rules: ApplyRules = apply_rules
) -> PolicyResult:
    """Return the result of evaluating `policy` for the pod in `content`.

    Once `expired()` holds, reading the signature stops; nothing else depends on it. `rules` is `apply_rules` or a
    cached version of it.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    if _is_bypassed_by_metadata(content, policy):
        # Most pods of a cluster: reading their resources would cost more than all the rest.
        result = rules(content, (), policy)
        if not isinstance(result, Injection):
            return result
    reader = Reader()
    resources = read_pod_resources(reader, content.pod)
    # If they are malformed, the API server rejects the pod itself.
    injection = rules(content, () if reader.errors else extended_names(resources.requests), policy)
    if not isinstance(injection, Injection):
        return injection
    pod = as_created(patched(content.pod, injection.operations), content.namespace)
    try:
        size_bytes = _signature_bytes(content, injection, pod)
        reading = deadline_reader(expired)
        reading.errors = reader.errors
        signature = PodSignature.read(reading, pod, resources, size_bytes)
    except DeadlineNearError as error:
        return Mutated(injection, str(error), isinstance(error, BudgetSpentError))
    except InvalidInput as error:
        return Mutated(injection, f"{_UNREADABLE}: {error.errors[0]}")
    return Mutated(injection, signature)


def inject(content: PodContent, policy: Policy) -> RulesResult:
    """Return what the rules of `policy` make of the pod in `content`, without a cache.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    reader = Reader()
    resources = read_pod_resources(reader, content.pod)
    return apply_rules(content, () if reader.errors else extended_names(resources.requests), policy)


def _is_bypassed_by_metadata(content: PodContent, policy: Policy) -> bool:
    """Return true if the rules reject or bypass the pod, whatever it requests; false if that is not certain."""
    metadata, spec = content.pod.get("metadata"), content.pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or spec.get("nodeName"):
        return True
    annotations, owners = metadata.get("annotations") or {}, metadata.get("ownerReferences") or []
    if not isinstance(annotations, dict) or not isinstance(owners, list):
        return True
    if policy.keys.workload_type not in annotations and policy.keys.workload_type not in content.defaults:
        return True
    return any(isinstance(owner, dict) and owner.get("kind") == "DaemonSet" for owner in owners)


def _signature_bytes(content: PodContent, injection: Injection, pod: JsonObject) -> int:
    """Return the maximum size of the signature of the mutated `pod` in memory.

    Raises:
        InvalidInput: the scheduler would have to read too much of the pod.
    """
    data = content.data
    if data is not None and len(data) + len(injection.patch) <= MAX_SCORED_BYTES:
        return parsed_bytes(data) + parsed_bytes(injection.patch)
    # Near the limit, count exactly the fields that the scheduler reads.
    read = fields_read(pod)
    metadata = {key: read.policy["metadata"].get(key) for key in ("labels", "ownerReferences")}
    try:
        data = orjson.dumps({**read.policy["spec"], **read.containers, "metadata": metadata})
    except orjson.JSONEncodeError as error:
        raise InvalidInput([forbidden("spec", "nested deeper than any pod")]) from error
    if len(data) > MAX_SCORED_BYTES:
        detail = f"more than {MAX_SCORED_BYTES // 1024} KiB, beside environment, commands and mounts"
        raise InvalidInput([forbidden("spec", detail)])
    return parsed_bytes(data)


def as_created(pod: JsonObject, namespace: str) -> JsonObject:
    """Return `pod` as it will be stored: with the namespace of the request, and without status.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, PrepareForCreate
    """
    metadata, pod = pod["metadata"], {**pod, "status": {}} if pod.get("status") else pod
    if metadata.get("namespace") or not namespace:
        return pod
    return {**pod, "metadata": {**metadata, "namespace": namespace}}


def _bypass_reason(pod: Mapping[str, Any], namespace: str, defaults: Mapping[str, str], policy: Policy) -> str | None:
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    if MIRROR_POD_ANNOTATION in annotations:
        return "mirror pod"
    if spec.get("nodeName"):
        return "spec.nodeName is set"
    owners = metadata.get("ownerReferences") or ()
    if any(owner.get("kind") == "DaemonSet" for owner in owners):
        # The DaemonSet controller has chosen the node already and does not know the injection (kubernetes#61886).
        return "pod of a DaemonSet"
    if reason := pod_exemption(pod, namespace, policy.spec):
        return reason
    if opts_out(annotations, defaults, policy) and matches_any(namespace, opt_out_namespaces(policy.spec)):
        return f"{policy.keys.inject}: disabled"
    return None


def _denial(reading: WorkloadReading) -> Denial:
    errors: tuple[FieldError, ...] = (*reading.errors, *reading.denials)
    message = "; ".join(map(str, errors))
    return Denial(422, "Invalid", message) if reading.errors else Denial(403, "Forbidden", message)
