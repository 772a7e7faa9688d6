"""The real Karpenter next to the control plane, with its provider that makes Node objects without machines."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.client import Client, Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.build import Built
from tests.schedulers.running import Programs, apply_definitions, remove_all
from tests.support.admission import USAGE

NODE_POOLS = "karpenter.sh/v1"
_NODE_CLASSES = "karpenter.kwok.sh/v1alpha1"
_DEFINITIONS = ("pkg/apis/crds", "kwok/apis/crds")
_INSTANCE_TYPES = {"gpu-8": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}}


class Karpenter:
    """A running Karpenter, whose only instance type has 8 cards."""

    def __init__(self, cluster: Cluster) -> None:
        self._client: Client = cluster.client

    def make_node_pool(self, name: str, limits: Mapping[str, str], **labels: str) -> None:
        """Make a NodePool of training nodes, with the taint of their pool."""
        template = {
            "metadata": {"labels": {USAGE: "training", **labels}},
            "spec": {
                "nodeClassRef": {"group": _NODE_CLASSES.partition("/")[0], "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
                "taints": [{"key": USAGE, "value": "training", "effect": "NoSchedule"}],
                # It would be deleted for a cheaper one.
                "expireAfter": "Never",
            },
        }
        disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
        spec = {"template": template, "limits": dict(limits), "disruption": disruption}
        self._create(NODE_POOLS, "NodePool", name, spec)

        def is_ready() -> bool:
            conditions = self._client.get("NodePool", name, api_version=NODE_POOLS).get("status", {})
            return ("Ready", "True") in {(each["type"], each["status"]) for each in conditions.get("conditions", [])}

        wait_for(is_ready, f"the NodePool {name} being ready")

    def make_node_class(self) -> None:
        """Make the node class that NodePools name."""
        self._create(_NODE_CLASSES, "KWOKNodeClass", "default", {})

    def wait_nodes(self, count: int) -> Objects:
        """Return the nodes of Karpenter, once there are that many, which are made ready as their kubelets would."""

        def enough() -> Objects | None:
            found = self._client.list("Node", label_selector="karpenter.sh/nodepool")
            return found if len(found) == count else None

        nodes = wait_for(enough, f"{count} nodes")
        for node in nodes:
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            status = {"status": {"conditions": [ready]}}
            self._client.patch("Node", node["metadata"]["name"], status, subresource="status")
        return nodes

    def wait_counted(self, pool: str, resources: Mapping[str, str]) -> None:
        """Wait until the status of a NodePool has so much of each resource: Karpenter counts its nodes later."""

        def is_counted() -> bool:
            status = self._client.get("NodePool", pool, api_version=NODE_POOLS).get("status", {})
            return {each: status.get("resources", {}).get(each) for each in resources} == dict(resources)

        wait_for(is_counted, f"the NodePool {pool} counting {dict(resources)}")

    def _create(self, api_version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
        self._client.create(obj)


@contextmanager
def running(cluster: Cluster, built: Built, folder: Path) -> Iterator[Karpenter]:
    """Run Karpenter; afterwards, nothing of it is left but the definitions."""
    apply_definitions(cluster.control_plane, *map(built.file, _DEFINITIONS))
    types = folder / "instance_types.json"
    types.write_text(json.dumps([_instance_type(*each) for each in _INSTANCE_TYPES.items()]))
    environment = {
        "KUBECONFIG": str(cluster.control_plane.kubeconfig),
        "INSTANCE_TYPES_FILE_PATH": str(types),
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": "0",
        "HEALTH_PROBE_PORT": "0",
        # A pod is considered without waiting for others.
        "BATCH_IDLE_DURATION": "100ms",
    }
    with Programs(folder) as programs:
        programs.start(built.program("kwok"), ready="Starting workers", environment=environment)
        karpenter = Karpenter(cluster)
        karpenter.make_node_class()
        try:
            yield karpenter
        finally:
            programs.stop()
            for api_version, kind in (
                (NODE_POOLS, "NodePool"),
                (NODE_POOLS, "NodeClaim"),
                (_NODE_CLASSES, "KWOKNodeClass"),
            ):
                remove_all(cluster.client, api_version, kind)


def _instance_type(name: str, resources: Mapping[str, str]) -> Object:
    offering = {"capacityType": "on-demand", "zone": "zone-a", "price": 1.0}
    common = {"architecture": "amd64", "operatingSystems": ["linux"], "offerings": [offering]}
    return {"name": name, **common, "resources": {"pods": "110", "ephemeral-storage": "500Gi", **resources}}
