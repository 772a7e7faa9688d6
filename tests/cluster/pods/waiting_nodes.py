"""Nodes, and pods that wait for them."""

from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object
from webhook.cluster.node_info import Node, NodeInfo, RunningPod


def info_of(name: str, *pods: PodBuilder, **node: Any) -> NodeInfo:
    return NodeInfo.of(Node.of(make_node_object(name, **node)), [RunningPod.of(pod.obj()) for pod in pods])
