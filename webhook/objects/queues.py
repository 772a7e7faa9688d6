"""Check the queues that objects name against the limits of their namespace.

An object can also name the queue of a pod: the owner of the pod, or its PodGroup or Workload. These objects are checked
when they are written, so no denial depends on the view of the cluster.
"""

from collections.abc import Iterator

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised, ObjectVerdict
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import FieldError
from webhook.documents.object_path import segments
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import Denial
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.kube.workloads.workload_kinds import QUEUE_KEYS
from webhook.mutation.workload.permissions import queue_denial
from webhook.policy.policy import Policy


def queue_denials(
    content: JsonObject, request: AdmissionRequest, policy: Policy, *, has_type: bool
) -> Iterator[FieldError]:
    """Yield the denials of the queues that an object of a kind of the policy names for its pods.

    `has_type` is true if the pods have a workload type. Without a type, only the queue field of the kind itself is
    checked, because the controller creates the PodGroup from it for every pod.
    """
    found = [
        (f"metadata.{holder}[{key}]", field(content, "metadata", holder, key))
        for holder in ("labels", "annotations")
        for key in QUEUE_KEYS
        if has_type
    ]
    kind = policy.kinds[request.group, request.kind]
    found.append((kind.queue, _queue(content, kind)))
    for path, queue in found:
        if isinstance(queue, str):
            denial = queue_denial(path, queue, request.namespace or DEFAULT_NAMESPACE, policy)
            if denial is not None:
                yield denial


def admit_queued(request: AdmissionRequest, kind: WorkloadKind, policy: Policy) -> ObjectVerdict:
    """Return the verdict on a PodGroup or Workload; an update that keeps its queue is allowed."""
    settings = policy.spec.workload_objects
    if not settings.enabled:
        return Bypassed("the policy does not evaluate workload objects")
    queue = _queue(request.object or {}, kind)
    is_kept = queue == _queue(request.old_object or {}, kind)
    denial = None if is_kept else queue_denial(kind.queue, queue, request.namespace or DEFAULT_NAMESPACE, policy)
    if denial is None:
        return Bypassed("its namespace may use its queue")
    if (settings.invalid_annotations or policy.spec.invalid_annotations) == "deny":
        return Denied(Denial(403, "Forbidden", str(denial)), None, errors=(denial,))
    return Advised(None, (str(denial),))


def _queue(content: JsonObject, kind: WorkloadKind) -> str:
    """Return the queue that an object of `kind` names, or "" if it names none or the default queue."""
    queue = field(content, *segments(kind.queue)) if kind.queue else None
    return queue if isinstance(queue, str) and queue != kind.default_queue else ""
