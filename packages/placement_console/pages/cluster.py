"""The page Cluster: the pods of one node. The feed sends the map itself."""

import time
from collections.abc import Sequence
from typing import Any

from placement_console.page import Asked, Endpoint, NotFoundError, Sources
from webhook.cluster.node_info import Node, RunningPod
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.packing.held_cards import held_class


def endpoints(sources: Sources) -> Sequence[Endpoint]:
    """Return the endpoints of the page."""

    def node(asked: Asked) -> object:
        name, snapshot = asked.query.get("name", ""), asked.snapshot
        row = snapshot.rows.get(name)
        if row is None:
            raise NotFoundError(f"there is no node {name}")
        info = snapshot.nodes[row]
        pods = sorted(info.pods, key=lambda each: (each.namespace, each.name))
        return {
            "name": name,
            "labels": dict(sorted(info.node.labels.items())),
            "pods": [_pod(sources, each, info.node) for each in pods],
        }

    return (Endpoint("/api/node", node),)


def _pod(sources: Sources, pod: RunningPod, node: Node) -> dict[str, Any]:
    fact = sources.facts.of(pod.namespace, pod.name)
    others = {resource: amount for resource, amount in pod.requests.items() if resource not in (CPU, MEMORY) and amount}
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "owner": fact.owner,
        "type": fact.workload_type,
        "priority": pod.priority,
        "terminating": pod.is_terminating,
        "cpu": pod.requests.get(CPU, 0),
        "memory": pod.requests.get(MEMORY, 0),
        "others": others,
        "held": held_class(pod, node, int(time.time())) if others else "",
    }
