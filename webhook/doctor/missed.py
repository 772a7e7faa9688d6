"""Find pods that the policy concerns and that were stored without its marks. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.doctor.installation import JsonObject, Missed, listed, texts
from webhook.doctor.matching import selects_namespace
from webhook.doctor.sample_pods import would_inject
from webhook.kube import documents
from webhook.kube.wellknown import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.policy.policy import Policy

MOST_NAMED = 10
_TEMPLATE_HASH = "pod-template-hash"


@dataclass(slots=True)
class PodsRead:
    """What is kept of the pods of a cluster while its pages are read: `missed` are the first of `missed_count`.

    `webhook` is the one for pods; None: no pod counts as missed. `labels` and `annotations` are those of namespaces.
    """

    policy: Policy
    webhook: JsonObject | None
    labels: Mapping[str, Mapping[str, str]]
    annotations: Mapping[str, dict[str, str]]
    bound_schedulers: set[str] = field(default_factory=set)
    missed: list[Missed] = field(default_factory=list)
    missed_count: int = 0
    _selected: dict[str, bool] = field(default_factory=dict)

    def add(self, pod: JsonObject) -> None:
        """Take note of `pod`, which has not ended."""
        scheduler = documents.field(pod, "spec", "schedulerName")
        if documents.field(pod, "spec", "nodeName") and isinstance(scheduler, str) and scheduler != DEFAULT_SCHEDULER:
            self.bound_schedulers.add(scheduler)
        if self._is_missed(pod):
            self.missed_count += 1
            if len(self.missed) < MOST_NAMED:
                metadata = pod["metadata"]
                self.missed.append(Missed(_namespace(pod), str(metadata.get("name", "")), _owner(pod)))

    def _is_missed(self, pod: JsonObject) -> bool:
        if self.webhook is None or documents.field(pod, "metadata", "deletionTimestamp"):
            return False
        namespace, annotations = _namespace(pod), texts(pod, "metadata", "annotations")
        defaults = self.annotations.get(namespace, {})
        key = self.policy.keys.workload_type
        if self.policy.policy_annotation in annotations or (key not in annotations and key not in defaults):
            return False
        return self._selects(namespace) and would_inject(_as_created(pod), namespace, self.policy, defaults)

    def _selects(self, namespace: str) -> bool:
        if namespace not in self._selected:
            self._selected[namespace] = self.webhook is not None and selects_namespace(
                self.webhook, self.labels.get(namespace, {})
            )
        return self._selected[namespace]


def _as_created(pod: JsonObject) -> JsonObject:
    """Return `pod` without the node that a scheduler chose, unless its creator did, as managedFields state.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go, assignPod
    """
    fields = [documents.field(each, "fieldsV1", "f:spec") for each in listed(pod, "metadata", "managedFields")]
    if any(isinstance(each, dict) and "f:nodeName" in each for each in fields):
        return pod
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}


def _namespace(pod: JsonObject) -> str:
    return str(documents.field(pod, "metadata", "namespace") or DEFAULT_NAMESPACE)


def _owner(pod: JsonObject) -> str:
    """Return the controller as `kind/name`, the Deployment for a pod of its ReplicaSet; empty without one."""
    for each in listed(pod, "metadata", "ownerReferences"):
        if each.get("controller") is True:
            kind, name = str(each.get("kind", "")), str(each.get("name", ""))
            suffix = f"-{documents.field(pod, 'metadata', 'labels', _TEMPLATE_HASH)}"
            if kind == "ReplicaSet" and name.endswith(suffix):
                return f"deployment/{name.removesuffix(suffix)}"
            return f"{kind.lower()}/{name}"
    return ""
