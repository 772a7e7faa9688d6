"""The running pods of a workload object, which an update of its template replaces or keeps at first."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.documents.documents import JsonObject, field
from webhook.kube.deadline import Expired, in_time
from webhook.kube.reader import Reader
from webhook.kube.selectors import (
    LabelSelector,
    exact_selector,
    read_exact_selector,
    read_label_selector,
    selector_matches,
)
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.placement.waiting.assumed_pods import AssumedPods, K

CANNOT_START = "the rolling update cannot start beside the running pods: "
KEEPS_ALL = (
    "maxUnavailable is 0: a new pod starts before an old one ends; with "
    "spec.strategy.rollingUpdate.maxUnavailable: 1 an old one ends first"
)
_NAME = "{name}"
_DEFAULT_UNAVAILABLE = "25%"


@dataclass(frozen=True, slots=True)
class WithoutOwnPods:
    """A snapshot without the pods of an object, and their number."""

    snapshot: Snapshot
    replaced: int = 0


def without_own_pods(
    snapshot: Snapshot, namespace: str, content: JsonObject, kind: WorkloadKind, expired: Expired
) -> WithoutOwnPods:
    """Return `snapshot` without the running pods of the object `content`, as after the end of a rolling update.

    It is also without the Workload by which Kueue has assigned its pods to nodes.
    """
    selector = _selector(content, kind)
    snapshot = _without_workload(snapshot, namespace, (kind.group, kind.kind, field(content, "metadata", "name")))
    if not selector:
        return WithoutOwnPods(snapshot)
    rows = np.unique(snapshot.pods.rows_selected(frozenset((namespace,)), selector, expired))
    changed, replaced = [], 0
    for row in in_time(rows.tolist(), expired):
        info = snapshot.nodes[row]
        staying = [pod for pod in info.pods if not _is_own(pod, namespace, selector)]
        replaced += len(info.pods) - len(staying)
        changed.append(NodeInfo.of(info.node, staying))
    return WithoutOwnPods(updated(snapshot, changed, snapshot.generation + 1) if changed else snapshot, replaced)


def _without_workload(snapshot: Snapshot, namespace: str, owner: tuple[str, str, Any]) -> Snapshot:
    workloads = snapshot.kueue.workloads or {}
    own = [key for key, each in workloads.items() if (each.namespace, each.owner) == (namespace, owner)]
    if not own:
        return snapshot
    left = {key: each for key, each in workloads.items() if key not in own}
    return replace(snapshot, kueue=replace(snapshot.kueue, workloads=left))


def without_pod(snapshot: Snapshot, namespace: str, name: str) -> WithoutOwnPods:
    """Return `snapshot` without the running pod of this name."""
    for info in snapshot.nodes:
        staying = [pod for pod in info.pods if (pod.namespace, pod.name) != (namespace, name)]
        if len(staying) < len(info.pods):
            return WithoutOwnPods(updated(snapshot, [NodeInfo.of(info.node, staying)], snapshot.generation + 1), 1)
    return WithoutOwnPods(snapshot)


def without_own_waiting(
    assumed: AssumedPods[K], namespace: str, content: JsonObject, kind: WorkloadKind
) -> AssumedPods[K]:
    """Return `assumed` without the pods of the object `content`, because they do not wait for each other."""
    selector = _selector(content, kind)
    if not selector:
        return assumed
    own = [key for key, each in assumed.by_key.items() if _is_own(each.pod, namespace, selector)]
    return assumed.without(own)


def _is_own(pod: RunningPod, namespace: str, selector: LabelSelector) -> bool:
    return pod.namespace == namespace and selector_matches(selector, pod.labels)


def _selector(content: JsonObject, kind: WorkloadKind) -> LabelSelector | None:
    """Return the selector of the object's pods: its own, or the labels with its name that the controller sets."""
    own, name = field(content, "spec", "selector"), field(content, "metadata", "name")
    if own is not None:
        is_exact = (kind.group, kind.kind) == ("", "ReplicationController")
        reader = Reader(content["spec"])
        selector = (read_exact_selector if is_exact else read_label_selector)(reader, "selector")
        return None if reader.errors else selector
    labels = {key: name for template in kind.templates for key, value in template.labels if value == _NAME}
    return exact_selector(labels) if isinstance(name, str) and name else None


def keeps_all_pods(content: JsonObject, kind: WorkloadKind) -> bool:
    """Return whether an update of `content` creates a pod before it removes one, because maxUnavailable is 0.

    Percentages are rounded down, so the default of 25 % is 0 for up to three replicas.

    Source: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts
    """
    if (kind.group, kind.kind) != ("apps", "Deployment"):
        return False
    strategy: Any = field(content, "spec", "strategy", "type")
    replicas: Any = field(content, "spec", "replicas")
    rolling = (field(content, "spec", "strategy", "rollingUpdate", name) for name in ("maxUnavailable", "maxSurge"))
    unavailable, surge = (_DEFAULT_UNAVAILABLE if each is None else each for each in rolling)
    number = replicas if isinstance(replicas, int) else 1
    return strategy in (None, "RollingUpdate") and _scaled(unavailable, number) == 0 and _scaled(surge, 100) != 0


def _scaled(value: object, number: int) -> int | None:
    """Return a count, or a percentage of `number`, rounded down, or None for a value that is neither."""
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal():
        return int(value[:-1][:9]) * number // 100
    return None
