"""Nodes, and pods with affinity terms."""

from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.index.shown_pods import ShownPods
from webhook.cluster.node_info import Node, NodeInfo, RunningPod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def info_of(name: str, *pods: PodBuilder) -> NodeInfo:
    return NodeInfo.of(Node.of(make_node_object(name)), [RunningPod.of(pod.obj()) for pod in pods])


def show(table: ShownPods, row: int, before: NodeInfo | None, after: NodeInfo) -> None:
    """Show the pods of `after` in place of those of `before`, unless there is no such row."""
    if before is not None:
        for pod in before.pods:
            table.remove(pod, row)
        for pod in after.pods:
            table.add(pod, row)


def anti_affinity(kind: str = REQUIRED, **term: Any) -> PodBuilder:
    term = {"topologyKey": "zone", **term}
    terms = [{"weight": 1, "podAffinityTerm": term}] if kind == PREFERRED else [term]
    return make_pod().namespace("x").affinity({"podAntiAffinity": {kind: terms}})
