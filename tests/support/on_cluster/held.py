"""Nodes and pods of a real API server that hold cards and do not use them, at the present time."""

from datetime import UTC, datetime, timedelta

from tests.controlplane.cluster import Cluster

LONG_AGO = "2026-01-01T00:00:00Z"
UNREACHABLE = "node.kubernetes.io/unreachable"


def ago(seconds: int) -> str:
    """Return the time `seconds` before now, as the API has it."""
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_down(cluster: Cluster, node: str) -> None:
    """Let the kubelet of `node` be silent since long ago, as the node lifecycle controller reports it."""
    ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": LONG_AGO}
    cluster.client.patch("Node", node, {"status": {"conditions": [ready]}}, subresource="status")
    taint = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": LONG_AGO}
    cluster.client.patch("Node", node, {"spec": {"taints": [taint]}})
