"""What a policy makes of a pod, independently of the cluster. Pure: equal pods have equal results."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.byte_cache import parsed_bytes
from webhook.kube.admission import Refusal
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.field import FieldError, InvalidInput, forbidden
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_NAMESPACE, MIRROR_POD_ANNOTATION
from webhook.mutation.edits import PodTooLargeError
from webhook.mutation.mutate import RuleOutcome, mutate
from webhook.mutation.registry import RULES
from webhook.mutation.workload import Reading, is_disabled, read_workload
from webhook.placement.scheduler import PodSignature
from webhook.pod_content import PodContent, fields_read
from webhook.policy.document import CheckMode
from webhook.policy.policy import Policy, matches_any, opt_out_namespaces
from webhook.verdict import Bypassed, Denied

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutated:
    """A pod that the policy concerns: the patch, and what placement depends on. It holds nothing of the pod's own."""

    workload_type: str
    check_mode: CheckMode
    operations: list[JsonObject]
    rules: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...]
    signature: PodSignature | str
    """What the scheduler reads of the mutated pod; or why it is not asked, as the message of the verdict Unknown."""
    is_final: bool = True
    """Whether an equal pod has the same signature: not where the deadline has ended the reading."""


PolicyResult = Bypassed | Denied | Mutated

# The scheduler is not asked about a pod of which it would have to read more.
LARGEST_ASKED_BYTES = 256 * 1024
_UNREADABLE = "the scorer cannot read the pod"


def evaluate(content: PodContent, policy: Policy, expired: Expired = never) -> PolicyResult:
    """Return what `policy` makes of the pod in `content`.

    Once `expired()` holds, the signature is not read any more; the rest does not depend on it.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    pod, defaults = content.pod, content.defaults
    check_pod(pod)
    namespace = content.namespace or DEFAULT_NAMESPACE
    if reason := _left_alone(pod, namespace, defaults, policy):
        return Bypassed(reason)
    reading = read_workload(pod, namespace, defaults, policy)
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
    is_final = True
    signature: PodSignature | str
    try:
        signature = _signature(_as_created(mutation.pod, content.namespace), expired)
    except DeadlineNearError as error:
        signature, is_final = str(error), isinstance(error, BudgetSpentError)
    return Mutated(
        reading.workload.type_name,
        reading.workload.check_mode,
        mutation.operations,
        mutation.rules,
        (*warnings, *mutation.warnings),
        signature,
        is_final,
    )


def _signature(pod: JsonObject, expired: Expired) -> PodSignature | str:
    """Return the signature of `pod`, or why the scheduler is not asked.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    read = fields_read(pod)
    metadata = {key: read["metadata"].get(key) for key in ("labels", "ownerReferences")}
    try:
        data = orjson.dumps({**read, "metadata": metadata})
    except orjson.JSONEncodeError:
        return f"{_UNREADABLE}: {forbidden('spec', 'nested deeper than any pod')}"
    if len(data) > LARGEST_ASKED_BYTES:
        detail = f"more than {LARGEST_ASKED_BYTES // 1024} KiB, beside environment, commands and mounts"
        return f"{_UNREADABLE}: {forbidden('spec', detail)}"
    try:
        return PodSignature.of(pod, expired, parsed_bytes(data))
    except InvalidInput as error:
        return f"{_UNREADABLE}: {error.errors[0]}"


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
    if is_disabled(annotations, defaults, policy) and matches_any(namespace, opt_out_namespaces(policy.spec)):
        return f"{policy.keys.inject}: disabled"
    return None


def _refusal(reading: Reading) -> Refusal:
    errors: tuple[FieldError, ...] = (*reading.errors, *reading.denials)
    message = "; ".join(map(str, errors))
    return Refusal(422, "Invalid", message) if reading.errors else Refusal(403, "Forbidden", message)
