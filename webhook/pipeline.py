"""One request's story, from the question to the verdict. Pure: the same question has the same answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from webhook.cluster.snapshot import Snapshot
from webhook.kube import wellknown
from webhook.kube.admission import AdmissionRequest, Refusal
from webhook.kube.field import FieldError, InvalidInput
from webhook.kube.shape import check_pod
from webhook.mutation.mutate import Mutation, mutate
from webhook.mutation.registry import RULES
from webhook.mutation.workload import Reading, Workload, is_disabled, read_workload
from webhook.placement.framework import Placement
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied, Patched, Unchanged, Verdict

JsonObject = dict[str, Any]


class Scorer(Protocol):
    """Foretells where a pod goes: the placement framework, or what wraps it."""

    def place(self, pod: Mapping[str, Any], snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """The placement of `pod` on `snapshot`."""
        ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """The view of the cluster that the placement check asks, and the scorer that asks it."""

    snapshot: Snapshot
    scorer: Scorer


def admit(
    request: AdmissionRequest, policy: Policy, cluster: Cluster | None, expired: Callable[[], bool] = lambda: False
) -> Verdict:
    """What becomes of `request` under `policy`.

    The patch depends on the pod, its namespace's defaults and the policy alone; `cluster` serves those defaults and the
    placement check, which is given up (verdict Unknown) once `expired()` holds.

    Raises:
        InvalidInput: the request's object cannot be read as a Pod.
    """
    if reason := _not_a_pod_creation(request):
        return Bypassed(reason)
    pod = request.object or {}
    check_pod(pod, "request.object")
    namespace = request.namespace or wellknown.DEFAULT_NAMESPACE
    defaults = cluster.snapshot.namespace_annotations(namespace) if cluster else {}
    if reason := _left_alone(pod, defaults, policy):
        return Bypassed(reason)
    reading = _read(pod, namespace, defaults, policy)
    if reading.type_name is None:
        return Bypassed("no workload type", reading.warnings)
    return _judge(reading, pod, policy, cluster, expired)


def _not_a_pod_creation(request: AdmissionRequest) -> str | None:
    if request.operation != "CREATE":
        return f"operation {request.operation}"
    if request.subresource:
        return f"subresource {request.subresource}"
    if request.kind not in ("", "Pod") or request.resource not in ("", "pods"):
        return f"not a pod: {request.kind or request.resource}"
    return None


def _left_alone(pod: Mapping[str, Any], defaults: Mapping[str, str], policy: Policy) -> str | None:
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    if wellknown.MIRROR_POD_ANNOTATION in annotations:
        return "mirror pod"
    if spec.get("nodeName"):
        return "spec.nodeName is set"
    owners = metadata.get("ownerReferences") or ()
    if any(owner.get("kind") == "DaemonSet" for owner in owners):
        # Its controller has chosen the node already and does not know what we inject (kubernetes#61886).
        return "pod of a DaemonSet"
    if is_disabled(annotations, defaults, policy):
        return f"{policy.keys.inject}: disabled"
    return None


def _read(pod: JsonObject, namespace: str, defaults: Mapping[str, str], policy: Policy) -> Reading:
    try:
        return read_workload(pod, namespace, defaults, policy)
    except InvalidInput as error:
        raise _under_object(error) from error


def _judge(
    reading: Reading, pod: JsonObject, policy: Policy, cluster: Cluster | None, expired: Callable[[], bool]
) -> Verdict:
    warnings = reading.warnings
    if reading.errors or reading.denials:
        if policy.spec.invalid_annotations == "deny":
            return Denied(_refusal(reading), reading.type_name, warnings=warnings)
        warnings = (*map(str, (*reading.errors, *reading.denials)), *warnings)
    workload = reading.workload
    if workload is None:
        return Bypassed("invalid annotations", warnings, reading.type_name)
    mutation = mutate(pod, workload, policy, RULES)
    placement = _placement(mutation.pod, workload, cluster, expired)
    return _verdict(mutation, workload, placement, (*warnings, *mutation.warnings))


def _refusal(reading: Reading) -> Refusal:
    errors: tuple[FieldError, ...] = (*reading.errors, *reading.denials)
    message = "; ".join(map(str, errors))
    return Refusal(422, "Invalid", message) if reading.errors else Refusal(403, "Forbidden", message)


def _placement(pod: JsonObject, workload: Workload, cluster: Cluster | None, expired: Callable[[], bool]) -> Placement:
    if workload.check_mode == "off":
        return Placement.unknown("the placement check is off")
    if cluster is None:
        return Placement.unknown("no view of the cluster")
    try:
        return cluster.scorer.place(pod, cluster.snapshot, expired)
    except InvalidInput as error:
        raise _under_object(error) from error


def _verdict(mutation: Mutation, workload: Workload, placement: Placement, warnings: tuple[str, ...]) -> Verdict:
    if placement.verdict == "Infeasible" and workload.check_mode == "deny":
        message = f"no node of this cluster could ever take this pod: {placement.message}"
        refusal = Refusal(403, "Forbidden", message)
        return Denied(refusal, workload.type_name, mutation.rules, warnings, placement)
    if placement.verdict in ("Infeasible", "Waiting"):
        warnings = (*warnings, f"placement check: {placement.verdict}: {placement.message}")
    if mutation.operations:
        return Patched(workload.type_name, mutation.pod, mutation.operations, mutation.rules, warnings, placement)
    return Unchanged(workload.type_name, mutation.pod, mutation.rules, warnings, placement)


def _under_object(error: InvalidInput) -> InvalidInput:
    return InvalidInput(replace(each, path=f"request.object.{each.path}") for each in error.errors)
