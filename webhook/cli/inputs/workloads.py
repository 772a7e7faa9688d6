"""Read the pods of files, and of the objects in them that create pods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from webhook.admission.evaluation import evaluate
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.cli.inputs.policies import NamespacePolicies, PlacedPolicies, is_namespace, policy_to_json
from webhook.cli.inputs.train_jobs import Runtimes
from webhook.cli.inputs.unknown_kinds import undescribed_templates, unknown_kind
from webhook.cli.output.terminal import echo, warn
from webhook.cluster.planned_objects import is_planned, with_planned_claims
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, field
from webhook.documents.field import (
    MOST_ERRORS,
    FieldError,
    InvalidInput,
    RefusedObjectError,
    invalid,
    prefixed_errors,
)
from webhook.documents.object_path import matches
from webhook.kube.api.admission import pod_request
from webhook.kube.api.strict_decoding import unknown_fields
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.resources import requested_extended_resources
from webhook.kube.release import is_server_version
from webhook.kube.workloads.pod_set import PodSet, pod_name
from webhook.kube.workloads.pod_sets import kind_of, pod_sets
from webhook.kube.workloads.pod_template_path import group_of
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, PATCHED_TEMPLATES, creates_no_pods
from webhook.mutation.workload.card_request import mistyped_resources
from webhook.objects.misplaced import misplaced
from webhook.objects.split_job import ScheduledSet, split_job
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of one template. `document` is the first pod, with its place in the object `source`.

    `owner` is the object, such as `Deployment team-a/web`, or empty for a Pod. `pods` is None if the object does not
    contain its pods; `note` is then the reason. Otherwise `note` is what the object does not define about its pods, or
    empty. `policy` is the policy for the namespace of the object. `policy_is_chosen` is true if there are several
    policies. `policy_place` is the place of the policy in a live cluster.
    """

    document: Document
    source: Document
    pods: PodSet | None
    policy: Policy
    owner: str = ""
    note: str = ""
    policy_is_chosen: bool = False
    policy_place: str = ""

    @property
    def chosen_policy(self) -> str:
        """Return name, revision and place of the policy if there are several or it has a place, or else ""."""
        if self.policy_place:
            return f"{self.policy.identity} ({self.policy_place})"
        return self.policy.identity if self.policy_is_chosen else ""

    @property
    def policy_json(self) -> dict[str, Any]:
        """Return the key `policy` of the JSON of `check` and `capacity`. It is absent for a file of one policy."""
        return {"policy": policy_to_json(self.policy, self.policy_place)} if self.chosen_policy else {}

    @property
    def name(self) -> str:
        """Return `NAMESPACE/NAME` of the first pod."""
        return pod_name(self.document.content)

    @property
    def title(self) -> str:
        """Return the object and the role of the pods in it."""
        return f"{self.owner}, {self.pods.role}" if self.pods and self.pods.role else self.owner

    def located(self, text: str) -> str:
        """Return `text`, a message about the pod, with the annotations named by their paths in the object."""
        if self.pods is None or self.pods.annotations_path == f"{self.pods.path}.metadata.annotations":
            return text
        return text.replace("metadata.annotations[", f"{self.pods.annotations_path}[")


def read_pods(
    documents: Sequence[Document], known: PlacedPolicies, snapshot: Snapshot | None = None
) -> tuple[list[Workload], Sequence[FieldError]]:
    """Return the pods of `documents` in order, and the errors of objects that cannot be read or are not known.

    The number of objects that create no pods, such as Services, is printed to standard error. The version of the API
    server in a cluster file is ignored. The policy of each object is chosen by the labels of its namespace in
    `documents` and in `snapshot`.
    """
    found: list[Workload] = []
    errors: list[FieldError] = []
    choice = NamespacePolicies(known.policies, snapshot, documents)
    without_pods: Counter[str] = Counter()
    runtimes = Runtimes.of(documents)
    # Their pods are those of the TrainJobs.
    used = [runtimes.of_job(each.content) for each in documents]
    for document in documents:
        if is_server_version(document.content) or any(document.content is each for each in used):
            continue
        try:
            made = _workloads(document, choice, without_pods, runtimes)
            found += (replace(each, policy_place=known.place_of(each.policy)) for each in made)
        except InvalidInput as error:
            errors += [each.prefixed(document.place) for each in error.errors]
    if without_pods:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(without_pods.items()))
        echo(f"passed over, because they make no pod: {kinds}", err=True)
    return found, errors[:MOST_ERRORS]


def print_policy(workload: Workload) -> None:
    """Print the policy for the pods to standard error, if there are several policies or it is from a live cluster."""
    if workload.chosen_policy:
        echo(f"{workload.name}: policy {workload.chosen_policy}", err=True)


def print_findings(workloads: Sequence[Workload], snapshot: Snapshot | None, *, is_strict: bool) -> None:
    """Print warnings about the objects of `workloads` to standard error.

    They are about unknown fields, misplaced annotations and, of pods without a workload type, mistyped resources.

    Raises:
        InvalidInput: an object has unknown fields, with `is_strict`; the errors name file and document.
    """
    _check_fields(workloads, is_strict=is_strict)
    print_misplaced(workloads, snapshot)
    _print_mistyped(workloads)


def _check_fields(workloads: Iterable[Workload], *, is_strict: bool) -> None:
    """Print a warning to standard error for each field that the API server does not know."""
    for _, each in groupby(workloads, key=lambda workload: id(workload.source)):
        workload = next(each)
        source = workload.source
        unknown = unknown_fields(source.content, _pod_templates(workload))
        if unknown and is_strict:
            text = f"strict decoding error: {', '.join(unknown)}"
            raise InvalidInput([RefusedObjectError(source.place, "Forbidden", None, text)])
        for text in unknown:
            warn(f"{pod_name(source.content)}: {text}")


def _print_mistyped(workloads: Iterable[Workload]) -> None:
    """Print a warning for each mistyped resource of a pod without a workload type. Others get it from the webhook."""
    for each in workloads:
        pod, policy = each.document.content, each.policy
        if each.pods is None or field(pod, "metadata", "annotations", policy.keys.workload_type) is not None:
            continue
        for warning in mistyped_resources(requested_extended_resources(pod), policy):
            warn(f"{each.name}: {warning}")


def _pod_templates(workload: Workload) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each PodTemplateSpec in the object, if its controller copies them to the pods."""
    content = workload.source.content
    kind = kind_of(content, workload.policy.kinds) if workload.owner else None
    if kind is not None and (kind.group, kind.kind) in PATCHED_TEMPLATES:
        for template in kind.templates:
            if template.shape == "PodTemplate":
                yield from ((path, value) for path, _, value in matches(content, template.template))


def print_misplaced(workloads: Iterable[Workload], snapshot: Snapshot | None) -> None:
    """Print a warning to standard error for each object with annotations that belong on its pod template.

    So is one whose templates go to two schedulers, because only some name a type, and one with templates that the
    policy does not name. `snapshot` has the defaults of its namespace.
    """
    for _, each in groupby(workloads, key=lambda workload: id(workload.source)):
        first, *others = each
        pods = [workload.pods for workload in (first, *others) if workload.pods is not None]
        if not first.owner:
            continue
        kind = kind_of(first.source.content, first.policy.kinds)
        note = kind.note if kind and not kind.templates else first.note
        # The templates of a TrainJob are in another object.
        warnings = misplaced(first.source.content, pods if note == first.note else (), first.policy, note)
        if kind is not None and kind not in BUILT_IN_KINDS:
            warnings += undescribed_templates(first.source.content, kind)
        if others:
            sets = (_scheduled(workload, snapshot) for workload in (first, *others))
            warnings += split_job(filter(None, sets), first.policy)
        for warning in warnings:
            warn(f"{pod_name(first.source.content)}: {warning}")


def _scheduled(workload: Workload, snapshot: Snapshot | None) -> ScheduledSet | None:
    """Return the pods of a template with the scheduler that they go to, or None if no API server stores them."""
    pods, policy = workload.pods, workload.policy
    if pods is None:
        return None
    namespace = pods.names.namespace or DEFAULT_NAMESPACE
    defaults = snapshot.namespace_annotations(namespace) if snapshot else {}
    try:
        result = evaluate(PodContent(pod_request(pods.pod, namespace), defaults), policy)
    except InvalidInput:
        return None
    if not isinstance(result, Mutated) or not result.injection.workload_type:
        return ScheduledSet.as_written(pods)
    return ScheduledSet(pods, result.injection.workload_type, result.injection.references.scheduler)


def with_claims_of(workload: Workload, snapshot: Snapshot, most: int) -> Snapshot:
    """Return `snapshot` with the claims that are created with the pods of a template, for at most `most` pods.

    Raises:
        InvalidInput: a claim is malformed.
    """
    replicas = workload.pods.replicas if workload.pods else None
    return with_claims_of_pods(workload, snapshot, range(max(1, min(replicas or 1, most))))


def with_claims_of_pods(workload: Workload, snapshot: Snapshot, indices: Sequence[int]) -> Snapshot:
    """Return `snapshot` with the claims that are created with the pods of a template that have these `indices`.

    Raises:
        InvalidInput: a claim is malformed.
    """
    pods = workload.pods
    if pods is None or not pods.claims:
        return snapshot
    with prefixed_errors(f"{workload.source.place}: {pods.template.claims}"):
        return with_planned_claims(snapshot, (claim for index in indices for claim in pods.claims_at(index)))


def _workloads(
    document: Document, choice: NamespacePolicies, without_pods: Counter[str], runtimes: Runtimes
) -> Iterator[Workload]:
    """Yield the pods of an object. If it creates no pods, count its kind in `without_pods`."""
    content, place = document.content, document.place
    if choice.are_several and is_namespace(content):
        return
    policy = choice.of(content)
    make = partial(Workload, source=document, policy=policy, policy_is_chosen=choice.are_several)
    kinds = policy.kinds
    found = runtimes.pods_of(content, kinds) or pod_sets(content, kinds)
    # A Pod in a wrapper has a path.
    if found and not found[0].path:
        yield make(document, pods=found[0])
        return
    kind = kind_of(content, kinds)
    name = str(content["kind"])
    owner = f"{name} {pod_name(content)}".rstrip("/")
    if kind and kind.note and not found:
        yield make(Document(place, {"metadata": content.get("metadata")}), pods=None, owner=owner, note=kind.note)
    elif kind is None and not creates_no_pods(group_of(content["apiVersion"]), name):
        raise InvalidInput([invalid("kind", name, unknown_kind(content))])
    elif not found and not is_planned(content):
        without_pods[name] += 1
    for pods in found:
        where = f"{place}: {pods.path}" if pods.annotations_path.startswith(pods.path) else place
        yield make(Document(where, pods.pod), pods=pods, owner=owner, note=pods.caveat)
