"""Call a plugin or the framework on a few nodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.support.objects.builders import PodBuilder, make_node_object
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.reader import Reader
from webhook.placement.framework.interface import FilterPlugin, ScorePlugin
from webhook.placement.pod.pod_info import PodInfo


def node(name: str, *pods: PodBuilder, images: Mapping[str, int] | None = None, **fields: Any) -> NodeInfo:
    """Return a node with the `fields` of `make_node_object`, running `pods`, and `images` by size in bytes."""
    made = make_node_object(name, **fields)
    made["status"]["images"] = [{"names": [name], "sizeBytes": size} for name, size in (images or {}).items()]
    return NodeInfo.of(Node.of(made), [RunningPod.of(pod.obj()) for pod in pods])


def pod_info(pod: PodBuilder) -> PodInfo:
    """Return the PodInfo of `pod`."""
    reader = Reader(pod.obj())
    info = PodInfo.of(reader)
    reader.finish()
    return info


def rejections(plugin: FilterPlugin, pod: PodBuilder, *nodes: NodeInfo) -> Mapping[str, list[str]]:
    """Return the sorted reasons for each rejected node."""
    snapshot = Snapshot.of(nodes)
    found: dict[str, list[str]] = {}
    for reason, rejected in sorted(plugin.filter(pod_info(pod), snapshot, never), key=lambda failure: failure.reason):
        for row in np.flatnonzero(rejected).tolist():
            found.setdefault(snapshot.nodes[row].node.name, []).append(reason)
    return found


def scores(plugin: ScorePlugin, pod: PodBuilder, *nodes: NodeInfo) -> list[int]:
    """Return the scores of all `nodes`, in the order of their names, before weighting."""
    found = plugin.score(pod_info(pod), Snapshot.of(nodes), np.arange(len(nodes)), never)
    assert found is not None
    return [int(score) for score in found]


def is_scored(plugin: ScorePlugin, pod: PodBuilder) -> bool:
    """Return whether `plugin` scores a node for `pod`."""
    return plugin.score(pod_info(pod), Snapshot.of([node("a")]), np.arange(1), never) is not None
