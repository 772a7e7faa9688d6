"""The description of a kind that creates pods: where its pod templates are, how many pods they make, and their names.

A path is dotted; `*` stands for each item of a list or each value of a map, and a key with dots is in brackets. In
patterns, `{name}` is the name of the object, `{role}` the role in lower case, `{0}` and `{1}` the index within the
first and second count, `{pod}` the name of the pod.
"""

from dataclasses import dataclass
from typing import Literal

from webhook.documents.documents import JsonObject
from webhook.documents.object_path import Key, count_at, matches

Shape = Literal["PodTemplate", "Component", "RaySubmitter", "WorkflowTemplate"]


@dataclass(frozen=True, slots=True)
class Count:
    """A factor of the number of pods: the integer at `path`, `default` if it is absent or the path is empty.

    `at_least` and `at_most` are paths of bounds. `start` is the path of the first index. The first `skipped` indices
    are pods of another template.
    """

    path: str
    default: int = 1
    at_least: str = ""
    at_most: str = ""
    start: str = ""
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class PodTemplatePath:
    """One path of pod templates in an object.

    `counts`: their product is the number of pods. `role` tells the templates of an object apart. Empty means the key or
    the name of the item that the last `*` stands for (`unnamed` and its index if it has no name). `or_else` is the path
    of the template that takes the place of an absent one. An object without an `is_optional` template is valid.
    `claims` is the path of its volumeClaimTemplates. `annotations` is the path of the annotations of templates without
    metadata. `suspended` is the path of the field that leaves the template without pods while it is set; with the field
    at `unless`, the template is not read. `shape` is the type at the path: a PodTemplateSpec, a component of an
    InferenceService, the submitter of a RayJob or a template of an Argo Workflow.
    """

    template: str
    counts: tuple[Count, ...] = (Count(""),)
    role: str = ""
    name: str = "{name}-"
    labels: tuple[tuple[str, str], ...] = ()
    owner_kind: str = ""
    owner_name: str = "{name}"
    or_else: str = ""
    is_optional: bool = False
    unnamed: str = ""
    claims: str = ""
    completion_mode: str = ""
    indexed_name: str = ""
    annotations: str = ""
    suspended: str = ""
    unless: str = ""
    shape: Shape = "PodTemplate"


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind that creates pods, or (without `templates`) whose pods are not in the object; `note` says why.

    `is_per_node` is true if it makes a pod for each node. `copies_metadata` is true if its controller copies the labels
    and annotations of the object to the pods, too. `spec_defaults` are fields of a pod that templates can leave to the
    object: the field, the path in the object, and the default. `caveat` is what the object does not say of its pods;
    their placement is then Unknown. `caveats` are the same for objects with a value at a path. `suspended` is the path
    of the field that keeps the object from creating pods while it is set. `gang` are the paths of the number of pods
    that must run together, the first one that is set counts, else it is all pods. None means each pod is useful by
    itself. `group_size` is the path of the number of pods of each of its groups, which run together. `worker_groups` is
    the path of the groups of workers whose least numbers of pods, with one head, a scheduler starts together that makes
    gangs of the kind by itself. `queue` is the path of the queue of its pods, and `default_queue` the value there of an
    object that names none. `passed_on` are the paths of the changes of pod templates that are in another object, with
    their annotations.
    """

    group: str
    kind: str
    resource: str
    templates: tuple[PodTemplatePath, ...]
    note: str = ""
    caveat: str = ""
    suspended: str = ""
    is_per_node: bool = False
    copies_metadata: bool = False
    spec_defaults: tuple[tuple[str, str, str], ...] = ()
    caveats: tuple[tuple[str, str], ...] = ()
    gang: tuple[str, ...] | None = None
    group_size: str = ""
    worker_groups: str = ""
    queue: str = ""
    default_queue: str = ""
    passed_on: tuple[str, ...] = ()


STATEFUL_SET_LABELS = (("statefulset.kubernetes.io/pod-name", "{pod}"), ("apps.kubernetes.io/pod-index", "{0}"))


def group_of(api_version: object) -> str:
    """Return the API group of an apiVersion, or "" for the core group and for an apiVersion that is no text."""
    return api_version.partition("/")[0] if isinstance(api_version, str) and "/" in api_version else ""


def gang_size(content: JsonObject, kind: WorkloadKind, pods: int, *, is_grouped: bool = False) -> int | None:
    """Return the size of the gang of an object with this number of `pods`, or None if each pod is useful by itself.

    `is_grouped` is true if its scheduler makes a gang of the kind by itself.

    Raises:
        InvalidInput: a field that is read is malformed.
    """
    if kind.worker_groups and is_grouped:
        groups = matches(content, kind.worker_groups)
        least = 1 + sum(_least_of_group(content, kind.worker_groups, each.keys) for each in groups)
        return least if 1 < least <= pods else None
    if kind.group_size:
        size = count_at(content, kind.group_size, ())
        return size if size and 1 < size <= pods else None
    if kind.gang is None:
        return None
    stated = next((number for path in kind.gang if (number := count_at(content, path, ())) is not None), pods)
    # An object can ask for more pods than it has; it then never starts, which its own controller reports.
    return stated if 1 < stated <= pods else None


def _least_of_group(content: JsonObject, path: str, keys: tuple[Key, ...]) -> int:
    """Return from how many pods KAI starts a group of workers of a RayCluster.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/ray/ray_grouper.go, calcJobNumOfPods
    """
    least, all_of_it, hosts = (
        count_at(content, f"{path}.{name}", keys) for name in ("minReplicas", "replicas", "numOfHosts")
    )
    return (least or all_of_it or 0) * (1 if hosts is None else hosts)
