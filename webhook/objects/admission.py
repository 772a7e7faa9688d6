"""Decide on a request by the kind of its object: a pod, or a Namespace."""

from webhook.kube.admission import AdmissionRequest
from webhook.kube.deadline import Expired, never
from webhook.objects.namespace import admit_namespace, is_namespace
from webhook.pipeline import ClusterView, admit
from webhook.policy.policy import Policy
from webhook.verdict import ObjectVerdict, Verdict

_WRITES = ("CREATE", "UPDATE")


def admit_request(
    request: AdmissionRequest, policy: Policy, cluster: ClusterView | None, expired: Expired = never
) -> Verdict | ObjectVerdict:
    """Return the verdict on `request`, whatever its object is.

    Raises:
        InvalidInput: the request's object cannot be read as its kind.
    """
    if request.operation in _WRITES and is_namespace(request):
        return admit_namespace(request, policy)
    return admit(request, policy, cluster, expired)


def counted_kind(request: AdmissionRequest) -> str:
    """Return the kind under which the request is counted; empty for a pod and for kinds that are not known."""
    return request.kind if is_namespace(request) else ""
