"""The description of a kind that creates pods: where its pod templates are, how many pods they make, and their names.

A path is dotted. `*` matches each item of a list or each value of a map. A key that contains dots is in brackets. In
patterns, `{name}` is the name of the object, `{role}` the role in lower case, `{0}` and `{1}` the index within the
first and second count, and `{pod}` the name of the pod.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from webhook.documents.documents import JsonObject
from webhook.documents.object_path import Key, Match, count_at, matches
from webhook.kube.workloads.exclusive_topology import ExclusiveTopology

Shape = Literal[
    "PodTemplate",
    "AddedTemplate",
    "Component",
    "RaySubmitter",
    "WorkflowTemplate",
    "PodSpec",
    "InlineContainer",
    "SparkPod",
]

_MOST_TASKS = 64


@dataclass(frozen=True, slots=True)
class Count:
    """A factor of the number of pods: the integer at `path`, or `default` if it is absent or the path is empty.

    `at_least` are the paths of minimums, which apply only while the field at `least_if`, if given, is set. `at_most` is
    the path of a maximum. `start` is the path of the first index. The first `skipped` indices belong to pods of another
    template.
    """

    path: str
    default: int = 1
    at_least: tuple[str, ...] = ()
    least_if: str = ""
    at_most: str = ""
    start: str = ""
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class PodTemplatePath:
    """One path of pod templates in an object.

    The number of pods is the product of `counts`. `role` distinguishes the templates of an object; if it is empty, the
    role is the key or the name of the item that the last `*` matched (or `unnamed` and its index). `or_else` is the
    path of a template that is used if this one is absent. `is_optional` is true if an object without the template is
    valid. `part` is the path of an object that has pods even without the template; its controller adds the template.
    `claims` is the path of the volumeClaimTemplates. `annotations` is the path of the annotations of templates without
    metadata; those of a PodSpec are read there. `suspended` is the path of a field: while it is set, the template
    creates no pods. `unless` is also the path of a field: if it is set, the template is not read. `shape` is the type
    at the path: a PodTemplateSpec, one that the controller can add, a component of an InferenceService, the submitter
    of a RayJob, a template of an Argo Workflow, a PodSpec, fields of a pod with the resources of its container, or a
    driver or executor of Spark.
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
    part: str = ""
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
    """A kind that creates pods. Without `templates`, the object does not contain its pods, and `note` is the reason.

    `is_per_node` is true if the controller creates a pod on each node. `copies_metadata` is true if the controller also
    copies the labels and annotations of the object to the pods. `spec_defaults` are pod fields that a template can omit
    because the object sets them: the field, the path in the object, and the default. `caveat` is a property of the pods
    that the object does not define; their placement is then Unknown. `caveats` are caveats for objects that have a
    value at a path. `suspended` is the path of a field: while it is set, the object creates no pods. `gang` are the
    paths of the number of pods that must run together; the first one that is set counts, or else all pods. None means
    that the pods need not run together. `tasks` is the path of tasks that each have such a number, or else need all of
    their pods, which counts if no path of `gang` is set. `group_size` is the path of the number of pods in each group,
    if the object creates groups of pods that run together. `worker_groups` is the path of the worker groups: a
    scheduler that makes gangs of the kind by itself starts one head together with the minimum number of pods of each
    group. `queue` is the path of the queue of the pods, and `default_queue` the queue of an object that names none.
    `passed_on` are the paths of patches, with annotations, that the object applies to the pod templates of another
    object. `exclusive` are the annotations that request topology domains for groups of its pods. `wrapped` is the path
    of objects that the object contains and creates.
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
    tasks: str = ""
    group_size: str = ""
    worker_groups: str = ""
    queue: str = ""
    default_queue: str = ""
    passed_on: tuple[str, ...] = ()
    exclusive: tuple[ExclusiveTopology, ...] = ()
    wrapped: str = ""


STATEFUL_SET_LABELS = (("statefulset.kubernetes.io/pod-name", "{pod}"), ("apps.kubernetes.io/pod-index", "{0}"))


def group_of(api_version: object) -> str:
    """Return the API group of an apiVersion, or "" for the core group and for an apiVersion that is no text."""
    return api_version.partition("/")[0] if isinstance(api_version, str) and "/" in api_version else ""


def gang_size(content: JsonObject, kind: WorkloadKind, pods: int, *, is_grouped: bool = False) -> int | None:
    """Return the size of the gang of an object with this number of `pods`, or None if each pod is useful by itself.

    `is_grouped` is true if the scheduler makes gangs of objects of this kind by itself.

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
    stated = next((number for path in kind.gang if (number := count_at(content, path, ())) is not None), None)
    if kind.tasks and not stated and (tasks := [*islice(matches(content, kind.tasks), _MOST_TASKS + 1)]):
        stated = sum([_least_of_task(each) for each in tasks]) if len(tasks) <= _MOST_TASKS else pods
    stated = pods if stated is None else stated
    # An object can ask for more pods than it has; it then never starts, which its own controller reports.
    return stated if 1 < stated <= pods else None


def _least_of_task(task: Match) -> int:
    """Return the minimum number of pods of a task of a Volcano Job, by default all of them.

    Source: volcano.sh/volcano/pkg/webhooks/admission/jobs/mutate/mutate_job.go, mutateSpec, patchDefaultMinAvailable
    """
    content = task.value if isinstance(task.value, dict) else {}
    if (least := count_at(content, "minAvailable", ())) is not None:
        return least
    names = "partitionPolicy.minPartitions", "partitionPolicy.partitionSize", "replicas"
    parts, size, all_of_it = (count_at(content, name, ()) or 0 for name in names)
    return parts * size or all_of_it


def _least_of_group(content: JsonObject, path: str, keys: tuple[Key, ...]) -> int:
    """Return the minimum number of pods of a worker group of a RayCluster that KAI starts.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/ray/ray_grouper.go, calcJobNumOfPods
    """
    least, all_of_it, hosts = (
        count_at(content, f"{path}.{name}", keys) for name in ("minReplicas", "replicas", "numOfHosts")
    )
    return (least or all_of_it or 0) * (1 if hosts is None else hosts)


@dataclass(frozen=True, slots=True)
class Shaped:
    """The labels, annotations and spec of the pods of a template, as written in the object.

    The paths are the paths of the annotations and of the pod's spec in the object. `caveat` is a property of the pod
    that the object does not define. `name` is the pattern of pod names if it differs from that of other templates.
    `path` is the path of the template if it is in another field.
    """

    labels: Any
    annotations: Any
    spec: Any
    annotations_path: str
    spec_path: str
    caveat: str = ""
    name: str = ""
    path: str = ""
