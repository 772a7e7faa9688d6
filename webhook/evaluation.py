"""What a policy makes of a pod, whatever the cluster. Pure: the same pod has the same answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.byte_cache import parsed_bytes
from webhook.kube.admission import AdmissionRequest, Refusal
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.field import FieldError, InvalidInput, forbidden
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_NAMESPACE, MIRROR_POD_ANNOTATION
from webhook.mutation.edits import PodTooLargeError
from webhook.mutation.mutate import Mutation, mutate
from webhook.mutation.registry import RULES
from webhook.mutation.workload import Reading, Workload, is_disabled, read_workload
from webhook.placement.scheduler import PodSignature
from webhook.policy.policy import Policy, matches_any, opt_out_namespaces
from webhook.verdict import Bypassed, Denied

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutated:
    """What the policy makes of a pod, before anybody looks at the cluster."""

    workload: Workload
    mutation: Mutation
    warnings: tuple[str, ...]
    question: PodSignature | str
    """What to ask the scorer; or why it is not asked, as the message of the verdict Unknown."""
    is_final: bool = True
    """Whether an equal pod gets the same question: not where the deadline has ended the reading."""
    size_bytes: int = 0
    """The memory that it takes at most, once it is remembered."""


StaticVerdict = Bypassed | Denied | Mutated


# What neither rules nor scorer read, and what may differ between the pods of one template.
_UNREAD_METADATA = {"name", "generateName", "uid", "creationTimestamp", "managedFields"}
_READ_OF_CONTAINER = ("image", "ports", "resources", "restartPolicy", "restartPolicyRules")
_CONTAINERS = ("containers", "initContainers")
# The scorer is not asked about a pod of which it would have to read more.
LARGEST_ASKED_BYTES = 256 * 1024
_UNREADABLE = "the scorer cannot read the pod"
_PLAIN_VOLUMES = {"name", "configMap", "downwardAPI", "emptyDir", "projected", "secret"}


def read_of(pod: JsonObject) -> JsonObject:
    """The part of a pod that `judge` depends on. What has an odd shape is kept: `judge` refuses it."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return pod
    read = {key: value for key, value in spec.items() if key != "volumes"}
    for key in _CONTAINERS:
        containers = spec.get(key)
        if isinstance(containers, list):
            read[key] = [
                {field: each.get(field) for field in _READ_OF_CONTAINER} if isinstance(each, dict) else each
                for each in containers
            ]
    volumes = spec.get("volumes")
    if isinstance(volumes, list):
        # The API server gives each pod a token volume with a name of its own.
        read["volumes"] = [each for each in volumes if not (isinstance(each, dict) and each.keys() <= _PLAIN_VOLUMES)]
    elif volumes is not None:
        read["volumes"] = volumes
    return {"metadata": {key: value for key, value in metadata.items() if key not in _UNREAD_METADATA}, "spec": read}


def judge(
    request: AdmissionRequest,
    pod: JsonObject,
    defaults: Mapping[str, str],
    policy: Policy,
    expired: Expired = never,
) -> StaticVerdict:
    """What `policy` makes of `pod`, whatever the cluster; `defaults` are the annotations of its namespace.

    Once `expired()` holds, what the scorer is to be asked is not read any more; the rest does not depend on it.

    Raises:
        InvalidInput: `pod` cannot be read as a Pod.
    """
    check_pod(pod)
    namespace = request.namespace or DEFAULT_NAMESPACE
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
    warnings = (*warnings, *mutation.warnings)
    try:
        question = _question(_as_created(mutation.pod, request.namespace), expired)
    except DeadlineNearError as error:
        is_final = isinstance(error, BudgetSpentError)
        return Mutated(reading.workload, mutation, warnings, str(error), is_final)
    return Mutated(reading.workload, mutation, warnings, question)


def _question(pod: JsonObject, expired: Expired) -> PodSignature | str:
    """What to ask the scorer about `pod`, or why it is not asked.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    read = read_of(pod)
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
