"""Decide on a request by the kind of its object: a pod, a workload object, a Namespace or a PlacementPolicy."""

from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import Steps, admit
from webhook.admission.verdict import ObjectVerdict, Verdict
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import Denial
from webhook.kube.deadline import Expired, never
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.kube.workloads.workload_kinds import QUEUED_KINDS
from webhook.objects.namespace import admit_namespace, is_namespace
from webhook.objects.policy_object import admit_policy_object
from webhook.objects.queues import admit_queued
from webhook.objects.workload import admit_workload
from webhook.policy.exempt import POLICY_OBJECT, request_exemption
from webhook.policy.policy import Policy, Withheld

_WRITES = ("CREATE", "UPDATE")


def admit_request(
    request: AdmissionRequest,
    policy: Policy,
    cluster: ClusterView | None,
    expired: Expired = never,
    steps: Steps | None = None,
) -> Verdict | ObjectVerdict:
    """Return the verdict on `request` for an object of any kind. `steps` are the steps of the admission of a pod.

    Raises:
        InvalidInput: the request's object cannot be read as its kind.
    """
    is_pod = request.kind == "Pod" and not request.group
    if request.operation in _WRITES and not request.subresource and not is_pod:
        if (request.group, request.kind) == POLICY_OBJECT:
            return admit_policy_object(request, expired)
        if reason := request_exemption(request, policy.spec):
            return Bypassed(reason)
        if is_namespace(request):
            return admit_namespace(request, policy)
        if kind := policy.kinds.get((request.group, request.kind)):
            if policy.withheld is not None:
                return _withheld(policy.withheld, kind, policy)
            return admit_workload(request, kind, policy, cluster, expired)
        if queued := QUEUED_KINDS.get((request.group, request.kind)):
            return admit_queued(request, queued, policy)
    return admit(request, policy, cluster, expired, steps or Steps())


def _withheld(withheld: Withheld, kind: WorkloadKind, policy: Policy) -> Denied | Bypassed:
    """Return the verdict on a workload object. A DaemonSet itself is denied, because its pods are bypassed."""
    if withheld.handling == "deny" and kind.is_per_node and policy.spec.workload_objects.enabled:
        return Denied(Denial(403, "Forbidden", withheld.reason), None)
    return Bypassed(withheld.reason)


def counted_kind(request: AdmissionRequest, policy: Policy) -> str:
    """Return the kind by which metrics count the request, "" for pods and kinds that users could invent."""
    group_kind = (request.group, request.kind)
    is_known = group_kind == POLICY_OBJECT or group_kind in QUEUED_KINDS or group_kind in policy.kinds
    return request.kind if is_known or is_namespace(request) else ""
