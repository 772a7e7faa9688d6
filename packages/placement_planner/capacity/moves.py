"""Changes of a snapshot: cordoned nodes, and pods that leave a node and are placed again."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.pods.bound_pods import BoundPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import DeadlineNearError
from webhook.kube.pod.taints import UNSCHEDULABLE, Taint
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import Placement
from webhook.placement.replicas.replicas import with_chosen_volumes
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

_CORDON = Taint(UNSCHEDULABLE, "", "NoSchedule")
Progress = Callable[[int, int], object]


def silent(*_: int) -> None:
    """Ignore the progress of a search."""


class Placer(Protocol):
    """The schedulers of the pods. A raw `pod` names its scheduler."""

    def answer(self, signature: PodSignature, pod: Mapping[str, Any], snapshot: Snapshot) -> Placement:
        """Return the placement of the pod."""

    def scheduler_of(self, pod: Mapping[str, Any]) -> Scheduler | None:
        """Return the scheduler of the pod, or None if the profile of its scheduler is not known."""


class PodToPlace(NamedTuple):
    """A pod without a node, as the scheduler reads it. `content` is the raw object."""

    content: Mapping[str, Any]
    signature: PodSignature
    running: RunningPod

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "PodToPlace":
        """Return the pod `content`.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        return cls(content, PodSignature.of(content), RunningPod.of(content))

    def answer(self, placer: Placer, snapshot: Snapshot) -> Placement:
        """Return the placement of the pod."""
        return placer.answer(self.signature, self.content, snapshot)

    def feasible(self, placer: Placer, snapshot: Snapshot) -> Mask:
        """Return a mask of the nodes that pass every filter, which is false for all nodes if they are not known."""
        scheduler = placer.scheduler_of(self.content)
        with suppress(DeadlineNearError):
            if scheduler is not None:
                return scheduler.feasible(self.signature, snapshot)
        return np.zeros(len(snapshot.nodes), dtype=np.bool_)

    def preemption(self, placer: Placer, snapshot: Snapshot) -> PredictedPreemption | None:
        """Return the predicted evictions for the pod, or None if its scheduler evicts no pods or this is not known."""
        scheduler = placer.scheduler_of(self.content)
        with suppress(DeadlineNearError):
            if scheduler is not None:
                return scheduler.preemption(self.signature, snapshot)
        return None

    def fits(self, placer: Placer, snapshot: Snapshot, node: str) -> bool:
        """Return true if `node` passes every filter."""
        return bool(self.feasible(placer, snapshot)[snapshot.rows[node]])

    def reads_other_nodes(self, placer: Placer, snapshot: Snapshot) -> bool:
        """Return true if pods on other nodes or claims affect whether a node can take the pod."""
        scheduler = placer.scheduler_of(self.content)
        return scheduler is None or scheduler.reads_other_nodes(self.signature, snapshot)


def replacement_of(pod: BoundPod) -> PodToPlace:
    """Return the pod that the controller creates in place of `pod`.

    Raises:
        InvalidInput: a field that is read is malformed; holds every error, with the name of `pod`.
    """
    try:
        return PodToPlace.of(pod.replacement())
    except InvalidInput as error:
        raise InvalidInput(each.prefixed(f"Pod {pod.full_name}") for each in error.errors) from error


def cordoned(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Return `snapshot` with these nodes cordoned: unschedulable, with the taint that a controller adds.

    Source: k8s.io/kubernetes/pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass
    """
    infos = []
    for name in names:
        info = snapshot.nodes[snapshot.rows[name]]
        taints = info.node.taints if _CORDON in info.node.taints else (*info.node.taints, _CORDON)
        infos.append(info._replace(node=replace(info.node, unschedulable=True, taints=taints)))
    return updated(snapshot, infos, snapshot.generation + 1)


def with_facts_of(snapshot: Snapshot, original: Snapshot, name: str) -> Snapshot:
    """Return `snapshot` with the facts of the node `name` as in `original`, but with the node's current pods."""
    info = snapshot.nodes[snapshot.rows[name]]
    node = original.nodes[original.rows[name]].node
    return updated(snapshot, (info._replace(node=node),), snapshot.generation + 1)


def without_pods(snapshot: Snapshot, pods: Mapping[str, Collection[tuple[str, str]]]) -> Snapshot:
    """Return `snapshot` without `pods`, given as (namespace, name) by node."""
    infos = []
    for node, keys in pods.items():
        info = snapshot.nodes[snapshot.rows[node]]
        staying = [pod for pod in info.pods if (pod.namespace, pod.name) not in keys]
        infos.append(NodeInfo.of(info.node, staying))
    return updated(snapshot, infos, snapshot.generation + 1)


def with_pod(snapshot: Snapshot, pod: PodToPlace, node: str) -> Snapshot:
    """Return `snapshot` with `pod` bound to `node`."""
    info = snapshot.nodes[snapshot.rows[node]].with_pods((pod.running._replace(node_name=node),))
    placed = updated(snapshot, (info,), snapshot.generation + 1)
    return with_chosen_volumes(placed, pod.signature.info, node)[0]
