"""A cluster in raw objects, for the reference implementation of the placement check."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracles.oracle_resources import amount_of, counted_of, requested_by

Object = Mapping[str, Any]


@dataclass
class OracleNode:
    """A node, its allocatable resources, the pods that run there, and those that are nominated to it.

    `assumed` are those of `pods` that are nominated and looked at as if they ran.
    """

    object: Object
    pods: list[Object] = field(default_factory=list)
    nominated: list[Object] = field(default_factory=list)
    assumed: list[Object] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.object["metadata"].get("labels") or {}
        return labels

    @property
    def taints(self) -> list[Object]:
        taints: list[Object] = self.object["spec"].get("taints") or []
        return taints

    def allocatable(self, resource: str) -> int:
        return amount_of(resource, self.object["status"]["allocatable"].get(resource, "0"))

    def images(self) -> list[tuple[str, int]]:
        images = self.object["status"].get("images") or []
        return [(name, image["sizeBytes"]) for image in images for name in image["names"]]

    def requested(self, resource: str) -> int:
        return sum(requested_by(pod).get(resource, 0) for pod in self.pods)

    def counted(self, resource: str) -> int:
        if resource not in ("cpu", "memory"):
            return self.requested(resource)
        return sum(counted_of(pod).get(resource, 0) for pod in self.pods)


@dataclass
class OracleCluster:
    """All nodes, and the other objects. `is_without_pods`: no pod runs, and any other pod may still come."""

    nodes: list[OracleNode]
    others: list[Object]
    is_without_pods: bool = False

    def without_pods(self) -> "OracleCluster":
        return OracleCluster([OracleNode(node.object) for node in self.nodes], self.others, is_without_pods=True)

    def with_node(self, changed: OracleNode) -> "OracleCluster":
        return OracleCluster([changed if each.name == changed.name else each for each in self.nodes], self.others)

    def namespaces(self) -> dict[str, Mapping[str, str]]:
        return {each["metadata"]["name"]: labels_of(each) for each in self.others if each["kind"] == "Namespace"}

    def of_kind(self, kind: str, namespace: str) -> list[Object]:
        return [each for each in self.others if each["kind"] == kind and each["metadata"].get("namespace") == namespace]


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return the labels of `obj`."""
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


def tolerations_of(pod: Object) -> list[Object]:
    """Return the tolerations of `pod`, with those of the API server's admission plugin DefaultTolerationSeconds."""
    found: list[Object] = list(pod["spec"].get("tolerations") or [])
    tolerated = [each.get("key") or "" for each in found if (each.get("effect") or "NoExecute") == "NoExecute"]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute"}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if key not in tolerated and "" not in tolerated
    ]
    return found + added


def namespace_of(pod: Object) -> str:
    """Return the namespace of `pod`."""
    return str(pod["metadata"].get("namespace", "default"))
