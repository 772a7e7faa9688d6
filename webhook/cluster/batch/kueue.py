"""The queues and flavors of Kueue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.batch import fields
from webhook.cluster.batch.topologies import Topology

_STOPPING = ("Hold", "HoldAndDrain")


class LocalQueue(NamedTuple):
    """A LocalQueue. `is_stopped` is true if its stopPolicy keeps it from admitting pods."""

    namespace: str
    name: str
    cluster_queue: str
    is_stopped: bool

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "LocalQueue":
        """Return the facts of `content`, a raw API object."""
        return cls(
            fields.text(content, "metadata", "namespace"),
            fields.text(content, "metadata", "name"),
            fields.text(content, "spec", "clusterQueue"),
            fields.text(content, "spec", "stopPolicy") in _STOPPING,
        )


class FlavorQuota(NamedTuple):
    """The maximum amounts of a flavor for a ClusterQueue, by resource. None: borrowing is not limited."""

    flavor: str
    most: Mapping[str, int | None]


class ResourceGroup(NamedTuple):
    """A resource group: resources that always get the same flavor, and their quotas by flavor."""

    resources: frozenset[str]
    flavors: tuple[FlavorQuota, ...]


class ClusterQueue(NamedTuple):
    """A ClusterQueue. `is_stopped` is true if it admits no pods.

    Source: sigs.k8s.io/kueue/apis/kueue/v1beta1/clusterqueue_types.go; v1beta2 calls the cohort `cohortName`.
    """

    name: str
    is_stopped: bool
    groups: tuple[ResourceGroup, ...]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "ClusterQueue":
        """Return the facts of `content`, a raw API object."""
        can_borrow = bool(fields.text(content, "spec", "cohort") or fields.text(content, "spec", "cohortName"))
        return cls(
            fields.text(content, "metadata", "name"),
            fields.text(content, "spec", "stopPolicy") in _STOPPING,
            tuple(_group(each, can_borrow=can_borrow) for each in fields.items(content, "spec", "resourceGroups")),
        )


def _group(content: Any, *, can_borrow: bool) -> ResourceGroup:
    names = frozenset(each for each in fields.items(content, "coveredResources") if isinstance(each, str))
    flavors = tuple(
        FlavorQuota(
            fields.text(each, "name"),
            {fields.text(quota, "name"): _most(quota, can_borrow) for quota in fields.items(each, "resources")},
        )
        for each in fields.items(content, "flavors")
    )
    return ResourceGroup(names, flavors)


def _most(quota: Any, can_borrow: bool) -> int | None:
    name = fields.text(quota, "name")
    nominal = fields.amount(quota, name, "nominalQuota")
    if nominal is None or not can_borrow:
        return nominal
    borrowed = fields.amount(quota, name, "borrowingLimit")
    return None if borrowed is None else nominal + borrowed


class ResourceFlavor(NamedTuple):
    """A ResourceFlavor, and the labels of its nodes. With a `topology`, Kueue also checks the room on these nodes."""

    name: str
    node_labels: Mapping[str, str]
    topology: str = ""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "ResourceFlavor":
        """Return the facts of `content`, a raw API object."""
        return cls(
            fields.text(content, "metadata", "name"),
            fields.texts(content, "spec", "nodeLabels"),
            fields.text(content, "spec", "topologyName"),
        )


@dataclass(frozen=True, slots=True)
class KueueObjects:
    """The objects of Kueue by name, or by namespace and name. None means that they are not known."""

    local_queues: Mapping[tuple[str, str], LocalQueue] | None = None
    cluster_queues: Mapping[str, ClusterQueue] | None = None
    flavors: Mapping[str, ResourceFlavor] | None = None
    topologies: Mapping[str, Topology] | None = None

    def looks_at_nodes(self, namespace: str, local_queue: str) -> bool:
        """Return whether the queue also checks the room on nodes, because all of its flavors have a topology.

        Source: sigs.k8s.io/kueue/pkg/cache/scheduler/clusterqueue.go, isTASOnly
        """
        local = (self.local_queues or {}).get((namespace, local_queue))
        queue = (self.cluster_queues or {}).get(local.cluster_queue) if local else None
        found = [
            (self.flavors or {}).get(quota.flavor)
            for group in (queue.groups if queue else ())
            for quota in group.flavors
        ]
        return bool(found) and all(each is not None and each.topology for each in found)


NO_KUEUE = KueueObjects()
