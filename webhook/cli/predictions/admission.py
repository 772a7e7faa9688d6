"""Admit the pods of files with the `admit()` of the server."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import click

from webhook.admission.annotation_suggestions import Place, as_annotation_changes
from webhook.admission.api_server.plugins import Completed, check_admitted, completed
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import admit, read_pod
from webhook.admission.verdict import Allowed, Verdict
from webhook.cli.inputs.profiles import SchedulersOf
from webhook.cli.inputs.workloads import Workload, print_policy
from webhook.cli.output.terminal import echo, warn
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, JsonObject, field
from webhook.documents.field import BETWEEN_ERRORS, InvalidInput, prefixed_errors
from webhook.documents.listing import some
from webhook.documents.text import cut
from webhook.kube.api.admission import AdmissionRequest, pod_request
from webhook.kube.api.independent_patch import PatchError, TooDeepError, independently_patched
from webhook.kube.api.json_patch import patched
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.pod_validation import check_complete, check_storable
from webhook.kube.shape import check_pod
from webhook.kube.workloads.pod_set import pod_name
from webhook.placement.framework.result import Placement
from webhook.placement.reasons.cluster_warnings import NO_SIGN, absent_scheduler
from webhook.placement.scheduler import PodSignature
from webhook.policy.policy import Policy

_MOST_NAMES = 3
_LONGEST_NAME = 63
_NOT_KNOWN = ": not known whether it runs: no bound pod names it. Without it, the pod stays Pending"
_WORSE_THAN = {"Feasible": ("Waiting", "Infeasible"), "Waiting": ("Infeasible",)}


def admit_document(document: Document, policy: Policy, cluster: ClusterView | None) -> Verdict:
    """Return the verdict on the creation of the pod in `document`, as the server gives it.

    Raises:
        InvalidInput: the document is not a valid pod; the errors name file and document.
    """
    with _located(document):
        return admit(_request(document), policy, cluster)


def admit_checked_document(document: Document, policy: Policy, cluster: ClusterView | None) -> Verdict:
    """Return the verdict as `admit_document`, and check the fields of the pod that only the scheduler reads.

    Raises:
        InvalidInput: the document is not a valid pod; the errors name file and document.
    """
    verdict = admit_document(document, policy, cluster)
    if not isinstance(verdict, Bypassed):
        with _located(document):
            PodSignature.of(document.content)
    return verdict


@contextmanager
def _located(document: Document) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(each.relocated(document.place, "request.object") for each in error.errors) from error


def admitted_pod(document: Document, verdict: Allowed | Bypassed) -> JsonObject:
    """Return the pod in `document` as `verdict` admits it. The library jsonpatch applies the patch.

    Raises:
        click.ClickException: the patch cannot be applied, which is an internal error.
    """
    if verdict.outcome != "Patched":
        return document.content
    try:
        return independently_patched(document.content, verdict.operations)
    except (PatchError, TooDeepError) as error:
        reason = str(error) or "the pod is nested too deeply"
        place = f"{document.place}: {pod_name(document.content)}"
        raise click.ClickException(f"internal error: {place}: {reason}") from error


def _request(document: Document) -> AdmissionRequest:
    namespace = field(document.content, "metadata", "namespace")
    return pod_request(
        document.content,
        namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE,
        name=pod_name(document.content).partition("/")[2],
    )


def print_verdict(workload: Workload, verdict: Verdict) -> None:
    """Print the warnings and the denial that the user of the pods would get to standard error."""
    _print_warnings(workload, verdict)
    if isinstance(verdict, Denied):
        # Only the breaks between errors are ours: names can have others.
        for each in workload.located(verdict.denial.message).split(BETWEEN_ERRORS):
            echo(f"Refused: {workload.document.place}: {workload.name}: {each}", fg="red", err=True)
    elif isinstance(verdict, Bypassed):
        echo(f"{workload.name}: left alone: {verdict.reason}", err=True)


def _print_warnings(workload: Workload, verdict: Verdict) -> None:
    for warning in verdict.warnings:
        warn(f"{workload.name}: {workload.located(warning)}")


@dataclass
class Admissions:
    """The pods of files: `with_policy`, as the webhook admits them; without it, as written and with hints.

    A hint suggests `remedy`, the option that applies the policy. Each pod that the policy makes fit gets a hint. All
    other pods that the webhook would change get one common hint. An empty `remedy` gives no hints. To pods that
    `are_stored`, the API server adds nothing any more, and it rejects none.
    """

    with_policy: bool
    schedulers: SchedulersOf
    remedy: str = "leave --as-written out"
    are_stored: bool = False
    _changed: list[str] = dataclasses.field(default_factory=list)

    def with_completed_pod(self, workload: Workload, snapshot: Snapshot) -> tuple[Workload, Completed]:
        """Return `workload` with its first pod as the API server sends it to webhooks, and the completed pod itself.

        Raises:
            InvalidInput: the API server would reject the pod; the errors name file and document.
        """
        with prefixed_errors(workload.document.place):
            check_pod(workload.document.content)
            found = self._completed(workload.document.content, snapshot)
            # The API server decodes a pod before it asks the webhook.
            self.check_storable(found.pod)
            PodSignature.of(found.pod)
            if not (workload.owner or self.are_stored):
                check_complete(found.pod)
        return replace(workload, document=replace(workload.document, content=found.pod)), found

    def _completed(self, pod: JsonObject, snapshot: Snapshot) -> Completed:
        return Completed(pod) if self.are_stored else completed(pod, snapshot)

    def check_storable(self, pod: Mapping[str, Any]) -> None:
        """Check that the API server can store `pod`.

        Raises:
            InvalidInput: it cannot.
        """
        if not self.are_stored:
            check_storable(pod)

    def check_admitted(self, pod: Mapping[str, Any], snapshot: Snapshot) -> None:
        """Check that the API server of `snapshot` admits `pod` after the webhooks.

        Raises:
            InvalidInput: it rejects the pod; contains its message.
        """
        if not self.are_stored:
            check_admitted(pod, snapshot)

    def answer(self, workload: Workload, snapshot: Snapshot) -> tuple[str, str]:
        """Print the warnings of the pods. Return the message of their denial and the reason of their bypass, or "".

        Raises:
            InvalidInput: the pod is not valid; the errors name file and document.
        """
        if not self.with_policy:
            self._warn_of_scheduler(workload, workload.document.content, snapshot)
            return "", ""
        verdict = _admit(workload, snapshot)
        if not any(NO_SIGN in each for each in verdict.warnings) and not isinstance(verdict, Denied):
            pod = patched(workload.document.content, verdict.operations)
            self._warn_of_scheduler(workload, pod, snapshot)
        if isinstance(verdict, Bypassed):
            _print_warnings(workload, verdict)
            return "", verdict.reason
        print_verdict(workload, verdict)
        if not isinstance(verdict, Denied):
            return "", ""
        print_policy(workload)
        return workload.located(verdict.denial.message), ""

    def _warn_of_scheduler(self, workload: Workload, pod: JsonObject, snapshot: Snapshot) -> None:
        """Warn about a scheduler if nothing in the cluster shows that it runs.

        If such evidence cannot be known, only warn about a scheduler that nothing but the pod names.
        """
        name, settings = str(field(pod, "spec", "schedulerName") or ""), workload.policy.spec.schedulers
        for text in absent_scheduler(name, snapshot, settings):
            warn(f"{workload.name}: {text}")
        is_named = not name or name in workload.policy.spec.allowed_schedulers
        is_named = is_named or snapshot.has_pod_of(name) or self.schedulers(workload.policy).has_profile(name)
        if snapshot.scheduler_evidence is None and not is_named:
            warn(f"{workload.name}: scheduler {cut(name, _LONGEST_NAME)}{_NOT_KNOWN}")

    def created(self, workload: Workload, pod: JsonObject, snapshot: Snapshot) -> JsonObject:
        """Return `pod`, one of the template, as it is created.

        Raises:
            InvalidInput: the pod is not valid; the errors name file and document.
        """
        with prefixed_errors(workload.document.place):
            pod = self._completed(pod, snapshot).pod
        if not self.with_policy:
            return pod
        verdict = _admit(replace(workload, document=replace(workload.document, content=pod)), snapshot)
        return patched(pod, verdict.operations)

    def with_suggestions(self, workload: Workload, placement: Placement, view: Snapshot, place: Place) -> Placement:
        """Return the placement on `view` of the admitted pod, with suggestions of annotations."""
        if field(workload.document.content, "spec", "nodeName"):
            # No scheduler reads its taints.
            return replace(placement, suggestions=())
        content = read_pod(_request(workload.document), ClusterView(view, scorer=None))
        return as_annotation_changes(content, workload.policy, placement, view, place, never)

    def with_hint(self, workload: Workload, placement: Placement, snapshot: Snapshot) -> Placement:
        """Return the placement on `snapshot` of a pod as written, with `remedy` as its first suggestion if it helps.

        Raises:
            InvalidInput: the pod is not valid; the errors name file and document.
        """
        if not self.remedy:
            return placement
        verdict = self._if_created(workload, snapshot)
        if verdict is not None and verdict.outcome == "Patched":
            admitted = self.schedulers(workload.policy).place(verdict.pod, snapshot)
            if placement.verdict in _WORSE_THAN.get(admitted.verdict, ()):
                text = f"{self.remedy}: {_effect(verdict.workload_type, admitted)}"
                return replace(placement, suggestions=(text, *placement.suggestions))
        self._note(workload, verdict)
        return placement

    def note(self, workload: Workload, snapshot: Snapshot) -> None:
        """Add the pod as written to the pods that the webhook would change, if the webhook would change it."""
        if not self.with_policy and self.remedy:
            self._note(workload, self._if_created(workload, snapshot))

    def _if_created(self, workload: Workload, snapshot: Snapshot) -> Verdict | None:
        """Return the verdict on the creation of the pod now, or None if the API server rejects a stored one."""
        if not self.are_stored:
            return _admit(workload, snapshot)
        try:
            pod = completed(workload.document.content, snapshot).pod
            verdict = _admit(replace(workload, document=replace(workload.document, content=pod)), snapshot)
            check_admitted(verdict.pod if verdict.outcome == "Patched" else pod, snapshot)
        except InvalidInput:
            return None
        return verdict

    def _note(self, workload: Workload, verdict: Verdict | None) -> None:
        # A stored pod that would be denied must not be created again.
        if verdict is None:
            return
        if verdict.outcome == "Patched" or (verdict.outcome == "Denied" and not self.are_stored):
            self._changed.append(workload.name)

    def print_hint(self) -> None:
        """Print to standard error the pods that the webhook would change or deny and that have no suggestion."""
        if self._changed:
            names = some([*dict.fromkeys(self._changed)], _MOST_NAMES)
            echo(f"Hint: checked as written, but the webhook would change or refuse {names}: {self.remedy}", err=True)


def _admit(workload: Workload, snapshot: Snapshot) -> Verdict:
    return admit_document(workload.document, workload.policy, ClusterView(snapshot, scorer=None))


def _effect(workload_type: str, admitted: Placement) -> str:
    found = f"{admitted.feasible} of {admitted.total} nodes can take it"
    if admitted.verdict == "Waiting":
        found = "it is Waiting, not Infeasible"
    return f"as the webhook admits the pod (workload type {workload_type}), {found}"
