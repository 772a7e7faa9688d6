"""Read the pods of files, and of the objects in them that create pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from webhook.cli.files import STANDARD_INPUT, read_text
from webhook.cli.terminal import echo
from webhook.cluster.planned_claims import with_planned_claims
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document, JsonObject, field, parse
from webhook.kube.field import MOST_ERRORS, FieldError, InvalidInput, invalid
from webhook.kube.pod_set import PodSet, pod_name
from webhook.kube.pod_sets import kind_of, pod_sets
from webhook.kube.pod_template_path import group_of
from webhook.kube.podless_kinds import creates_no_pods
from webhook.kube.workload_kinds import Kinds
from webhook.objects.misplaced import misplaced
from webhook.policy.policy import Policy

_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of one template; `document` is the first one, with its place in the object `source`.

    `owner` is the object, such as `Deployment team-a/web`; empty for a Pod. `pods` is None if the pods are not in the
    object; `note` is the reason, or what the object does not say of its pods.
    """

    document: Document
    source: Document
    pods: PodSet | None
    owner: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Return `NAMESPACE/NAME` of the first pod."""
        return pod_name(self.document.content)

    @property
    def title(self) -> str:
        """Return the object and the role of the pods in it."""
        return f"{self.owner}, {self.pods.role}" if self.pods and self.pods.role else self.owner

    def located(self, text: str) -> str:
        """Return a message about the pod with the paths of its annotations in the object."""
        if self.pods is None or self.pods.annotations_path == f"{self.pods.path}.metadata.annotations":
            return text
        return text.replace("metadata.annotations[", f"{self.pods.annotations_path}[")


def read_pods(filenames: Sequence[str], kinds: Kinds) -> list[Workload]:
    """Return the pods of the files in order. An object that creates no pods (a Service) is reported on standard error.

    Raises:
        InvalidInput: a file cannot be read or parsed, holds an object that cannot be read or of a kind that is not
            known, or no file holds a pod.
    """
    found: list[Workload] = []
    errors: list[FieldError] = []
    for filename in filenames:
        place = "<stdin>" if filename == STANDARD_INPUT else filename
        for document in parse(read_text(filename, "--filename"), place):
            try:
                found += _workloads(document, kinds)
            except InvalidInput as error:
                errors += [each.prefixed(document.place) for each in error.errors]
    if errors:
        raise InvalidInput(errors[:MOST_ERRORS])
    if not found:
        raise InvalidInput([invalid("--filename", " ".join(filenames), "holds no pod and nothing that makes one")])
    return found


def print_misplaced(workloads: Iterable[Workload], policy: Policy) -> None:
    """Print a warning to standard error for each object with annotations that belong on its pod template."""
    for _, each in groupby(workloads, key=lambda workload: id(workload.source)):
        first, *others = each
        pods = [workload.pods for workload in (first, *others) if workload.pods is not None]
        for warning in misplaced(first.source.content, pods, policy, first.note) if first.owner else ():
            echo(f"Warning: {pod_name(first.source.content)}: {warning}", fg="yellow", err=True)


def with_claims_of(workload: Workload, snapshot: Snapshot, most: int) -> Snapshot:
    """Return `snapshot` with the claims that are created with the pods of a template, those of `most` pods at most.

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
    try:
        return with_planned_claims(snapshot, (claim for index in indices for claim in pods.claims_at(index)))
    except InvalidInput as error:
        place = f"{workload.source.place}: {pods.template.claims}"
        raise InvalidInput(each.prefixed(place) for each in error.errors) from error


def _workloads(document: Document, kinds: Kinds) -> Iterator[Workload]:
    content, place = document.content, document.place
    found = pod_sets(content, kinds)
    if found and found[0].kind is None:
        yield Workload(document, document, found[0])
        return
    kind = kind_of(content, kinds)
    name = str(content["kind"])
    owner = f"{name} {pod_name(content)}".rstrip("/")
    if kind and kind.note and not found:
        yield Workload(Document(place, {"metadata": content.get("metadata")}), document, None, owner, kind.note)
    elif kind is None and not creates_no_pods(group_of(content["apiVersion"]), name):
        raise InvalidInput([invalid("kind", name, _unknown_kind(content))])
    elif not found:
        echo(f"{place}: kind {name} makes no pod; passed over", err=True)
    for pods in found:
        where = f"{place}: {pods.path}" if pods.annotations_path.startswith(pods.path) else place
        yield Workload(Document(where, pods.pod), document, pods, owner, pods.caveat)


def _unknown_kind(content: JsonObject) -> str:
    """Return how to describe the kind of `content` in a policy."""
    group, kind = group_of(content["apiVersion"]), content["kind"]
    path = _template_path(content)
    templates = f"[{{path: {path}}}]" if path else "[]"
    empty = '""'
    entry = f"{{group: {group or empty}, kind: {kind}, resource: {kind.lower()}s, templates: {templates}}}"
    why = "" if path else "; with the paths of its pod templates, if it has some"
    return f"is not a known kind; describe it in the policy: spec.workloadKinds: [{entry}]{why}"


def _template_path(content: JsonObject) -> str:
    """Return the path of the first value in `content` that looks like a pod template; empty if there is none."""
    waiting: list[tuple[str, Any]] = [("", content)]
    for path, value in waiting:
        if len(waiting) > _MOST_STEPS:
            break
        if isinstance(value, Mapping):
            if path and isinstance(field(value, "spec", "containers"), list):
                return path
            waiting += [(f"{path}.{key}" if path else key, inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}.*", inner) for inner in value[:1]]
    return ""
