"""Validate the annotations of a Namespace that are defaults of its pods, when the Namespace is written."""

from collections.abc import Mapping
from dataclasses import replace

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised, ObjectVerdict
from webhook.backends.backend import BatchRequest
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError, lines_of
from webhook.documents.parts import object_at
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import Denial
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.kube.reader import Reader
from webhook.mutation.workload.annotations import Annotations, stray_keys
from webhook.mutation.workload.batch_scheduling import BatchScheduling
from webhook.mutation.workload.permissions import limit_denials, read_products
from webhook.mutation.workload.workload import WorkloadReading, read_workload
from webhook.policy.keys import ANNOTATIONS
from webhook.policy.policy import Policy

_NO_BATCH = BatchScheduling(DEFAULT_SCHEDULER, BatchRequest(), (), adds_packing_hint=False)


def is_namespace(request: AdmissionRequest) -> bool:
    """Return whether `request` writes a Namespace."""
    return request.kind == "Namespace" and not request.group


def admit_namespace(request: AdmissionRequest, policy: Policy) -> ObjectVerdict:
    """Return the verdict on a Namespace that is created or updated.

    An error that the stored object already has is only a warning, so that it does not block other changes.

    Raises:
        InvalidInput: the annotations cannot be read.
    """
    own, labels = _annotations(request.object), object_at(request.object or {}, "metadata", "labels")
    prefix = f"{policy.spec.key_domain}/"
    if not any(key.startswith(prefix) for key in own):
        return Bypassed("no annotation of the policy's domain", tuple(stray_keys(own, labels, policy)))
    name = request.name or request.namespace
    # A Namespace can hold other defaults without a type, so every annotation is read.
    values = Annotations(own, name, {}, policy)
    for annotation in ANNOTATIONS:
        values.read(annotation)
    reading = _reading(own, labels, name, policy)
    errors = (*values.errors, *reading.denials)
    known = _known_errors(request, policy, own) if errors else frozenset()
    new = [error for error in errors if error.path not in known]
    warnings = tuple(dict.fromkeys(reading.warnings))
    if new and policy.spec.invalid_annotations == "deny":
        message = lines_of(new)
        is_invalid = any(error in values.errors for error in new)
        denial = Denial(422, "Invalid", message) if is_invalid else Denial(403, "Forbidden", message)
        return Denied(denial, reading.type_name, warnings=warnings, errors=tuple(new))
    ignored = (replace(each, detail=f"{each.detail}; the pods of the namespace ignore it") for each in errors)
    return Advised(reading.type_name, (*map(str, ignored), *warnings))


def _reading(own: Mapping[str, str], labels: Mapping[str, str], name: str, policy: Policy) -> WorkloadReading:
    """Return the WorkloadReading of a pod that has the defaults as its own annotations and requests an accelerator."""
    if policy.keys.workload_type not in own:
        # Pods can have types of their own, beside which the other defaults have an effect.
        denials: list[FieldError] = []
        values = Annotations(own, name, {}, policy)
        read_products(values, name, policy, denials)
        denials += limit_denials(values, {"metadata": {}, "spec": {}}, _NO_BATCH, name, policy)
        return WorkloadReading(None, None, denials=tuple(denials), warnings=tuple(stray_keys(own, labels, policy)))
    pod = {"metadata": {"annotations": own, "labels": labels}, "spec": {}}
    return read_workload(pod, name, {}, policy, policy.spec.accelerators[0].resources)


def _known_errors(request: AdmissionRequest, policy: Policy, own: Mapping[str, str]) -> frozenset[str]:
    """Return the paths of the annotations whose values the stored object already has."""
    if request.operation != "UPDATE":
        return frozenset()
    before = _annotations(request.old_object)
    path = Annotations(own, "", {}, policy).path
    return frozenset(path(key) for key in policy.keys if key in own and before.get(key) == own[key])


def _annotations(namespace: JsonObject | None) -> Mapping[str, str]:
    reader = Reader(namespace or {}, step="request.object")
    annotations = reader.object("metadata").text_map("annotations")
    reader.finish()
    return annotations
