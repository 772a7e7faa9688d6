"""Pods of a file through the same `admit()` as the server's."""

from webhook.cli.terminal import say
from webhook.cluster.snapshot import Snapshot
from webhook.evaluation import StaticVerdict, judge
from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.kube.workload import pod_name
from webhook.pipeline import ClusterView, admit
from webhook.placement.scheduler import PodSignature
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied, Verdict


def admit_document(document: Document, policy: Policy, cluster: ClusterView | None) -> Verdict:
    """The verdict on the creation of the pod in `document`.

    Raises:
        InvalidInput: it is no readable pod; the errors name file and document.
    """
    try:
        verdict = admit(_request(document), policy, cluster)
        if not isinstance(verdict, Bypassed):
            # The server leaves what only the scorer reads to the API server; a file has nobody else to look at it.
            PodSignature.of(document.content)
    except InvalidInput as error:
        raise InvalidInput(each.within(document.place, "request.object") for each in error.errors) from error
    return verdict


def judge_document(document: Document, policy: Policy, snapshot: Snapshot) -> StaticVerdict:
    """What the policy makes of the pod in `document`, whatever the cluster but for its namespaces' defaults.

    Raises:
        InvalidInput: it is no readable pod; the errors name file and document.
    """
    request = _request(document)
    try:
        return judge(request, document.content, snapshot.namespace_annotations(request.namespace), policy)
    except InvalidInput as error:
        raise InvalidInput(each.under(document.place) for each in error.errors) from error


def _request(document: Document) -> AdmissionRequest:
    metadata = document.content.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return AdmissionRequest(
        uid="",
        operation="CREATE",
        kind="Pod",
        resource="pods",
        subresource="",
        namespace=namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE,
        name=pod_name(document.content).partition("/")[2],
        user="",
        dry_run=True,
        object=document.content,
    )


def remark(document: Document, verdict: Verdict | StaticVerdict) -> None:
    """Say on standard error what the user of the pod in `document` would be told."""
    name = pod_name(document.content)
    for warning in verdict.warnings:
        say(f"Warning: {name}: {warning}", fg="yellow", err=True)
    if isinstance(verdict, Denied):
        say(f"Refused: {document.place}: {name}: {verdict.refusal.message}", fg="red", err=True)
    elif isinstance(verdict, Bypassed):
        say(f"{name}: left alone: {verdict.reason}", err=True)
