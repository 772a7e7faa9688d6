"""Pods of a file through the same `admit()` as the server's."""

from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.kube.workload import pod_name
from webhook.pipeline import Cluster, admit
from webhook.policy.policy import Policy
from webhook.verdict import Verdict


def admit_document(document: Document, policy: Policy, cluster: Cluster | None) -> Verdict:
    """The verdict on the creation of the pod in `document`.

    Raises:
        InvalidInput: it is no readable pod; the errors name file and document.
    """
    pod = document.content
    metadata = pod.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    request = AdmissionRequest(
        uid="",
        operation="CREATE",
        kind="Pod",
        resource="pods",
        subresource="",
        namespace=namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE,
        name=pod_name(pod).partition("/")[2],
        user="",
        dry_run=True,
        object=pod,
    )
    try:
        return admit(request, policy, cluster)
    except InvalidInput as error:
        raise InvalidInput(each.within(document.place, "request.object") for each in error.errors) from error
