"""Admit the pods of a file with the `admit()` of the server."""

from collections.abc import Callable

import click

from webhook.annotation_suggestions import Place, in_annotations
from webhook.cli.terminal import echo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.admission import AdmissionRequest, pod_request
from webhook.kube.deadline import never
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.kube.independent_patch import TooDeepError
from webhook.kube.pod_set import pod_name
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.patch_proof import UnprovenPatchError, prove_pod_patch
from webhook.pipeline import ClusterView, admit, read_pod
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import PodSignature
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied, Patched, Verdict


def admit_document(document: Document, policy: Policy, cluster: ClusterView | None) -> Verdict:
    """Return the verdict on the creation of the pod in `document`, as the server gives it.

    Raises:
        InvalidInput: the document is not a valid pod; the errors name file and document.
    """
    try:
        return admit(_request(document), policy, cluster)
    except InvalidInput as error:
        raise InvalidInput(each.relocated(document.place, "request.object") for each in error.errors) from error


def admit_checked_document(document: Document, policy: Policy, cluster: ClusterView | None) -> Verdict:
    """Return the same verdict, but also check the fields that only the scheduler reads, unless the pod is bypassed.

    In a cluster the API server checks these fields; it does not see a file.

    Raises:
        InvalidInput: the document is not a valid pod; the errors name file and document.
    """
    verdict = admit_document(document, policy, cluster)
    if not isinstance(verdict, Bypassed):
        try:
            PodSignature.of(document.content)
        except InvalidInput as error:
            raise InvalidInput(each.relocated(document.place, "request.object") for each in error.errors) from error
    return verdict


def check_patch(document: Document, policy: Policy, cluster: ClusterView | None, verdict: Verdict) -> None:
    """Prove the patch of `verdict` for the pod in `document`, as `serve --prove-patches` does.

    Raises:
        click.ClickException: the patch is wrong, which is an internal error.
    """
    if isinstance(verdict, Patched):
        try:
            prove_pod_patch(read_pod(_request(document), cluster), verdict.operations, policy)
        except (UnprovenPatchError, TooDeepError) as error:
            reason = str(error) or "the pod is nested too deeply to be compared"
            raise click.ClickException(
                f"internal error: {document.place}: {pod_name(document.content)}: {reason}"
            ) from error


def in_annotations_of(
    document: Document, policy: Policy, placement: Placement, view: Snapshot, place: Place
) -> Placement:
    """Return the placement of the pod in `document`, which is as written, with suggestions in terms of annotations."""
    content = read_pod(_request(document), ClusterView(view, scorer=None))
    return in_annotations(content, policy, placement, view, place, never)


def _request(document: Document) -> AdmissionRequest:
    metadata = document.content.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return pod_request(
        document.content,
        namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE,
        name=pod_name(document.content).partition("/")[2],
    )


def print_verdict(document: Document, verdict: Verdict, located: Callable[[str], str] = str) -> None:
    """Print the warnings and the denial that the user of the pod in `document` would get to standard error.

    `located` replaces the fields of the pod in a text by those of its object.
    """
    name = pod_name(document.content)
    for warning in verdict.warnings:
        echo(f"Warning: {name}: {located(warning)}", fg="yellow", err=True)
    if isinstance(verdict, Denied):
        echo(f"Refused: {document.place}: {name}: {located(verdict.denial.message)}", fg="red", err=True)
    elif isinstance(verdict, Bypassed):
        echo(f"{name}: left alone: {verdict.reason}", err=True)
