"""The pods that the Kubeflow trainer makes of TrainJobs whose runtimes are in the same files. Pure.

What depends on the release of the trainer, or is not certain, is left unknown.

Source: github.com/kubeflow/trainer, pkg/runtime/core/trainingruntime.go, newRuntimeInfo and mergeRuntimePatches;
pkg/runtime/framework/plugins/jobset
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.documents.documents import Document, JsonObject
from webhook.documents.documents import field as field_of
from webhook.documents.field import InvalidInput
from webhook.documents.parts import listed, texts
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.pod_template_path import group_of
from webhook.kube.workloads.workload_kinds import Kinds

_GROUP, _CLUSTER_KIND = "trainer.kubeflow.org", "ClusterTrainingRuntime"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER, _NODE = "trainer", "node"
# By other policies, the trainer makes further pods.
_KNOWN_POLICIES = {"numNodes", "torch"}
# Lists that a strategic merge merges by another key than the name.
_OTHER_LISTS = {"topologySpreadConstraints", "ports", "volumeMounts", "volumeDevices", "hostAliases"}


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The training runtimes of files by kind, namespace (empty for the whole cluster) and name."""

    by_name: Mapping[tuple[str, str, str], JsonObject] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> "Runtimes":
        """Return the runtimes among `documents`."""
        found = {}
        for content in (each.content for each in documents):
            kind = str(content.get("kind"))
            if kind in (_CLUSTER_KIND, "TrainingRuntime") and group_of(str(content.get("apiVersion"))) == _GROUP:
                found[kind, _namespace(content, kind), str(field_of(content, "metadata", "name"))] = content
        return cls(found)

    def of_job(self, content: JsonObject) -> JsonObject | None:
        """Return the runtime of `content`, or None if it is no TrainJob, or its runtime is not in the files."""
        if content.get("kind") != "TrainJob" or group_of(str(content.get("apiVersion"))) != _GROUP:
            return None
        kind = str(field_of(content, "spec", "runtimeRef", "kind") or _CLUSTER_KIND)
        return self.by_name.get((kind, _namespace(content, kind), str(field_of(content, "spec", "runtimeRef", "name"))))

    def pods_of(self, content: JsonObject, kinds: Kinds) -> tuple[PodSet, ...]:
        """Return the pods of `content`, or none if it is no TrainJob, or one whose pods are not known."""
        runtime = self.of_job(content)
        found = _job_set(content, runtime) if runtime is not None else None
        try:
            return pod_sets(found, kinds) if found is not None else ()
        except InvalidInput:
            return ()


def _namespace(content: JsonObject, kind: str) -> str:
    return "" if kind == _CLUSTER_KIND else str(field_of(content, "metadata", "namespace") or "")


def _job_set(train_job: JsonObject, runtime: JsonObject) -> JsonObject | None:
    """Return the JobSet that the trainer makes of `train_job`, or None if it is not known."""
    policy, template = field_of(runtime, "spec", "mlPolicy"), field_of(runtime, "spec", "template")
    is_known = policy is None or (isinstance(policy, Mapping) and {*policy} <= _KNOWN_POLICIES)
    patches = [
        field_of(each, "trainingRuntimeSpec", "template") for each in listed(train_job, "spec", "runtimePatches")
    ]
    overrides = listed(train_job, "spec", "podTemplateOverrides")
    if not is_known or field_of(runtime, "spec", "podGroupPolicy") or not _is_plain([*patches, *overrides]):
        return None
    spec, own = field_of(template or {}, "spec"), field_of(train_job, "metadata")
    if not isinstance(own, Mapping):
        return None
    metadata = {key: own[key] for key in ("name", "generateName", "namespace") if key in own}
    for part in ("labels", "annotations"):
        metadata[part] = {
            key: text for each in (template, *patches) for key, text in texts(each or {}, "metadata", part).items()
        }
    for patch in patches:
        spec = _merged(spec, field_of(patch or {}, "spec") or {})
    if not isinstance(spec, Mapping):
        return None
    jobs = [_replicated_job(each, train_job, policy) for each in listed({**spec}, "replicatedJobs")]
    if not jobs or None in jobs:
        return None
    suspended = field_of(train_job, "spec", "suspend")
    job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}
    return {**job_set, "spec": {**spec, "replicatedJobs": jobs, "suspend": suspended}}


def _replicated_job(job: JsonObject, train_job: JsonObject, policy: Any) -> JsonObject | None:
    """Return a replicated job of the runtime with the fields of `train_job`, or None if it is not known."""
    template: Any = field_of(job, "template", "spec", "template") or {}
    counts: JsonObject = {}
    if field_of(job, "template", "metadata", "labels", _STEP) == _TRAINER:
        nodes = field_of(train_job, "spec", "trainer", "numNodes")
        resources = field_of(train_job, "spec", "trainer", "resourcesPerNode")
        if policy is None and (nodes is not None or resources is not None):
            return None
        if policy is not None:
            nodes = policy.get("numNodes", 1) if nodes is None else nodes
            counts = {"parallelism": nodes, "completions": nodes}
        own = [each for each in listed(template, "spec", "containers") if each.get("name") == _NODE]
        if resources is not None and own:
            # Trainer 2.3 merges the resources; before, they replace those of the container.
            if own[0].get("resources") and _merged(own[0]["resources"], resources) != resources:
                return None
            template = _merged(template, {"spec": {"containers": [{"name": _NODE, "resources": resources}]}})
    for patch in listed(train_job, "spec", "podTemplateOverrides"):
        if job.get("name") in [each.get("name") for each in listed(patch, "targetJobs")]:
            template = _merged(template, {key: patch[key] for key in ("metadata", "spec") if key in patch})
    return {**_merged(job, {"template": {"spec": {**counts, "template": template}}})}


def _is_plain(value: Any) -> bool:
    """Return whether `value` has neither directives of a strategic merge nor lists that it merges by other keys."""
    if isinstance(value, Mapping):
        return all(key not in _OTHER_LISTS and not str(key).startswith("$") for key in value) and all(
            map(_is_plain, value.values())
        )
    return all(map(_is_plain, value)) if isinstance(value, list) else True


def _merged(base: Any, patch: Any) -> Any:
    """Return `base` with `patch`, as by a strategic merge: objects of lists with names are merged by name."""
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        return {**base, **{key: _merged(base.get(key), value) for key, value in patch.items()}}
    if not (_has_names(base) and _has_names(patch)):
        return patch
    named = {each["name"]: each for each in base}
    for each in patch:
        named[each["name"]] = _merged(named.get(each["name"]), each)
    return [*named.values()]


def _has_names(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in value
    )
