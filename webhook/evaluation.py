"""What a policy makes of a pod, independently of the cluster. Pure: equal pods have equal results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.byte_cache import parsed_bytes
from webhook.kube.admission import Refusal
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.field import FieldError, InvalidInput, forbidden
from webhook.kube.json_patch import patched
from webhook.kube.reader import Reader
from webhook.kube.resources import extended_names, read_pod_resources
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_NAMESPACE, MIRROR_POD_ANNOTATION
from webhook.mutation.edits import PodTooLargeError
from webhook.mutation.mutate import RuleOutcome, mutate
from webhook.mutation.registry import RULES
from webhook.mutation.workload import WorkloadReading, opts_out, read_workload
from webhook.placement.pod_signature import PodSignature, deadline_reader
from webhook.pod_content import PodContent, fields_read
from webhook.policy.document import CheckMode
from webhook.policy.policy import Policy, matches_any, opt_out_namespaces
from webhook.verdict import Bypassed, Denied

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Injection:
    """What the policy injects into a pod that it concerns. It holds nothing of the pod's own."""

    workload_type: str
    check_mode: CheckMode
    operations: list[JsonObject]
    patch: bytes
    """The operations as JSON."""
    rules: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutated:
    """A pod that the policy concerns: what is injected, and what the placement of the mutated pod depends on."""

    injection: Injection
    signature: PodSignature | str
    """What the scheduler reads of the mutated pod; or why it is not asked, as the message of the verdict Unknown."""
    is_final: bool = True
    """Whether an equal pod has the same signature: not where the deadline has ended the reading."""


RulesResult = Bypassed | Denied | Injection
PolicyResult = Bypassed | Denied | Mutated
ApplyRules = Callable[[PodContent, tuple[str, ...], Policy], RulesResult]

# The scheduler is not asked about a pod of which it would have to read more.
LARGEST_ASKED_BYTES = 256 * 1024
_UNREADABLE = "the scorer cannot read the pod"


def apply_rules(content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
    """Return what the rules of `policy` make of the pod in `content`.

    It depends on `content.policy_data`, the namespace and `extended_resources`, the names of those that the pod
    requests, alone.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    pod, defaults = content.pod, content.defaults
    check_pod(pod)
    namespace = content.namespace or DEFAULT_NAMESPACE
    if reason := _left_alone(pod, namespace, defaults, policy):
        return Bypassed(reason)
    reading = read_workload(pod, namespace, defaults, policy, extended_resources)
    if reading.type_name is None:
        return Bypassed("no workload type", reading.warnings)
    warnings = reading.warnings
    if reading.errors or reading.denials:
        if policy.spec.invalid_annotations == "deny":
            return Denied(_refusal(reading), reading.type_name, warnings=warnings)
        warnings = (*map(str, (*reading.errors, *reading.denials)), *warnings)
    if reading.workload is None:
        return Bypassed("invalid annotations", warnings, reading.type_name)
    try:
        mutation = mutate(pod, reading.workload, policy, RULES)
    except PodTooLargeError as error:
        return Denied(Refusal(422, "Invalid", str(error)), reading.type_name, warnings=warnings)
    return Injection(
        reading.workload.type_name,
        reading.workload.check_mode,
        mutation.operations,
        orjson.dumps(mutation.operations),
        mutation.rules,
        (*warnings, *mutation.warnings),
    )


def evaluate(
    content: PodContent, policy: Policy, expired: Expired = never, rules: ApplyRules = apply_rules
) -> PolicyResult:
    """Return what `policy` makes of the pod in `content`.

    Once `expired()` holds, the signature is not read any more; the rest does not depend on it. `rules` is
    `apply_rules`, or returns what that returned for equal content.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    reader = Reader()
    resources = read_pod_resources(reader, content.pod)
    # Where they are malformed, the API server refuses the pod itself.
    injection = rules(content, () if reader.errors else extended_names(resources.requests), policy)
    if not isinstance(injection, Injection):
        return injection
    pod = _as_created(patched(content.pod, injection.operations), content.namespace)
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


def _signature_bytes(content: PodContent, injection: Injection, pod: JsonObject) -> int:
    """Return the memory that the signature of the mutated `pod` takes at most.

    Raises:
        InvalidInput: the scheduler would have to read too much of the pod.
    """
    data = content.data
    if data is not None and len(data) + len(injection.patch) <= LARGEST_ASKED_BYTES:
        return parsed_bytes(data) + parsed_bytes(injection.patch)
    # Near the bound it counts what exactly the scheduler would read.
    read = fields_read(pod)
    metadata = {key: read.policy["metadata"].get(key) for key in ("labels", "ownerReferences")}
    try:
        data = orjson.dumps({**read.policy["spec"], **read.workload, "metadata": metadata})
    except orjson.JSONEncodeError as error:
        raise InvalidInput([forbidden("spec", "nested deeper than any pod")]) from error
    if len(data) > LARGEST_ASKED_BYTES:
        detail = f"more than {LARGEST_ASKED_BYTES // 1024} KiB, beside environment, commands and mounts"
        raise InvalidInput([forbidden("spec", detail)])
    return parsed_bytes(data)


def _as_created(pod: JsonObject, namespace: str) -> JsonObject:
    """`pod` as it will be stored: its namespace may stand in the request alone, and its status is dropped.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, PrepareForCreate
    """
    metadata, pod = pod["metadata"], {**pod, "status": {}} if pod.get("status") else pod
    if metadata.get("namespace") or not namespace:
        return pod
    return {**pod, "metadata": {**metadata, "namespace": namespace}}


def _left_alone(pod: Mapping[str, Any], namespace: str, defaults: Mapping[str, str], policy: Policy) -> str | None:
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    if MIRROR_POD_ANNOTATION in annotations:
        return "mirror pod"
    if spec.get("nodeName"):
        return "spec.nodeName is set"
    owners = metadata.get("ownerReferences") or ()
    if any(owner.get("kind") == "DaemonSet" for owner in owners):
        # Its controller has chosen the node already and does not know what we inject (kubernetes#61886).
        return "pod of a DaemonSet"
    if opts_out(annotations, defaults, policy) and matches_any(namespace, opt_out_namespaces(policy.spec)):
        return f"{policy.keys.inject}: disabled"
    return None


def _refusal(reading: WorkloadReading) -> Refusal:
    errors: tuple[FieldError, ...] = (*reading.errors, *reading.denials)
    message = "; ".join(map(str, errors))
    return Refusal(422, "Invalid", message) if reading.errors else Refusal(403, "Forbidden", message)
