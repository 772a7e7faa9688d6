"""The JobSets that the Kubeflow trainer makes of TrainJobs whose runtimes are in the same files. Pure.

Source: github.com/kubeflow/trainer, pkg/runtime/core/trainingruntime.go, newRuntimeInfo and mergeRuntimePatches;
pkg/runtime/framework/plugins/jobset
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.documents.documents import Document, JsonObject
from webhook.documents.documents import field as field_of
from webhook.documents.parts import listed
from webhook.kube.workloads.pod_template_path import group_of

_GROUP, _CLUSTER_KIND = "trainer.kubeflow.org", "ClusterTrainingRuntime"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
# The trainer makes further pods, or a gang, by other policies.
_KNOWN_POLICIES = {"numNodes", "torch"}


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
                namespace = "" if kind == _CLUSTER_KIND else str(field_of(content, "metadata", "namespace") or "")
                found[kind, namespace, str(field_of(content, "metadata", "name"))] = content
        return cls(found)

    def job_set_of(self, content: JsonObject) -> JsonObject | None:
        """Return the JobSet of `content`, or None if it is no TrainJob, or one whose pods are not known."""
        if content.get("kind") != "TrainJob" or group_of(str(content.get("apiVersion"))) != _GROUP:
            return None
        kind = str(field_of(content, "spec", "runtimeRef", "kind") or _CLUSTER_KIND)
        namespace = "" if kind == _CLUSTER_KIND else str(field_of(content, "metadata", "namespace") or "")
        runtime = self.by_name.get((kind, namespace, str(field_of(content, "spec", "runtimeRef", "name"))))
        policy = field_of(runtime or {}, "spec", "mlPolicy") or {}
        if runtime is None or not {*policy} <= _KNOWN_POLICIES or field_of(runtime, "spec", "podGroupPolicy"):
            return None
        template = field_of(runtime, "spec", "template") or {}
        spec: JsonObject = field_of(template, "spec") or {}
        for patch in listed(content, "spec", "runtimePatches"):
            spec = _merged(spec, field_of(patch, "trainingRuntimeSpec", "template", "spec") or {})
        jobs = [_replicated_job(each, content, policy) for each in listed(spec, "replicatedJobs")]
        metadata = {**(content.get("metadata") or {}), **(template.get("metadata") or {})}
        metadata |= {key: (content.get("metadata") or {}).get(key) for key in ("name", "namespace")}
        suspended = {"suspend": True} if field_of(content, "spec", "suspend") else {}
        job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}
        return {**job_set, "spec": {**spec, "replicatedJobs": jobs, **suspended}}


def _replicated_job(job: JsonObject, train_job: JsonObject, policy: JsonObject) -> JsonObject:
    """Return a replicated job of the runtime with the fields of `train_job`."""
    template = field_of(job, "template", "spec", "template") or {}
    changes: JsonObject = {}
    if field_of(job, "template", "metadata", "labels", _STEP) == "trainer":
        nodes = field_of(train_job, "spec", "trainer", "numNodes") or policy.get("numNodes") or 1
        changes = {"parallelism": nodes, "completions": nodes}
        resources = field_of(train_job, "spec", "trainer", "resourcesPerNode")
        if resources and policy:
            template = _merged(template, {"spec": {"containers": [{"name": "node", "resources": resources}]}})
    for patch in listed(train_job, "spec", "podTemplateOverrides"):
        if job.get("name") in [each.get("name") for each in listed(patch, "targetJobs")]:
            template = _merged(template, {key: patch[key] for key in ("metadata", "spec") if key in patch})
    return {**_merged(job, {"template": {"spec": {**changes, "template": template}}})}


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
    return isinstance(value, list) and all(isinstance(each, Mapping) and "name" in each for each in value)
