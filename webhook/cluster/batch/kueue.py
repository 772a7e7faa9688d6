"""The queues, flavors and Workloads of Kueue."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, NamedTuple

from webhook.cluster.batch import fields
from webhook.cluster.batch.topologies import Topology
from webhook.documents.documents import field
from webhook.documents.parts import items_at
from webhook.kube.pod.amounts import Amounts, is_schedulable_resource
from webhook.kube.pod.resources import read_pod_resources
from webhook.kube.reader import Reader
from webhook.kube.workloads.pod_template_path import group_of

_STOPPING = ("Hold", "HoldAndDrain")
# More nodes than a cluster has.
_MOST_DOMAINS = 10_000


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


class TopologyAssignment(NamedTuple):
    """The domains to which Kueue has assigned the pods of one pod set, which each have `requests`.

    `levels` are the node labels of a domain, and `domains` the values of these labels, each with a number of pods.
    """

    pod_set: str
    requests: Amounts
    levels: tuple[str, ...]
    domains: tuple[tuple[tuple[str, ...], int], ...]


class Workload(NamedTuple):
    """A Workload. `assigned` is empty unless it has quota, has not finished, and is of topology-aware scheduling.

    `owner` is the API group, the kind and the name of the object that it admits, or empty.

    Source: sigs.k8s.io/kueue/apis/kueue/v1beta2/workload_types.go, TopologyAssignment;
    pkg/workload/workload.go, totalRequestsFromAdmission
    """

    namespace: str
    name: str
    assigned: tuple[TopologyAssignment, ...]
    owner: tuple[str, str, str] = ("", "", "")

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Workload":
        """Return the facts of `content`, a raw API object."""
        conditions = fields.items(content, "status", "conditions")
        has_finished = any((field(each, "type"), field(each, "status")) == ("Finished", "True") for each in conditions)
        pod_sets = {
            fields.text(each, "name"): field(each, "template", "spec")
            for each in fields.items(content, "spec", "podSets")
        }
        assigned = [
            TopologyAssignment(
                name,
                _requests(pod_sets.get(name)),
                levels,
                _summed(islice(_domains(field(each, "topologyAssignment")), _MOST_DOMAINS)),
            )
            for each in fields.items(content, "status", "admission", "podSetAssignments")
            if (name := fields.text(each, "name")) and not has_finished
            if (levels := tuple(map(str, fields.items(each, "topologyAssignment", "levels"))))
        ]
        owners = fields.items(content, "metadata", "ownerReferences")
        owner = next((each for each in owners if field(each, "controller") is True), None)
        return cls(
            fields.text(content, "metadata", "namespace"),
            fields.text(content, "metadata", "name"),
            tuple(assigned),
            (group_of(fields.text(owner, "apiVersion")), fields.text(owner, "kind"), fields.text(owner, "name")),
        )


def _requests(spec: Any) -> Amounts:
    requests = read_pod_resources(Reader({"spec": spec if isinstance(spec, Mapping) else {}})).requests
    return {name: amount for name, amount in requests.items() if is_schedulable_resource(name)}


def _summed(domains: Iterable[tuple[tuple[str, ...], int]]) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return `domains`, each of them once, with the sum of its pods."""
    found = Counter[tuple[str, ...]]()
    for values, number in domains:
        found[values] += number
    return tuple(found.items())


def _domains(assignment: Any) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the domains of an assignment: those of the list of v1beta1, or those of the slices of v1beta2."""
    for each in _list(assignment, "domains"):
        yield tuple(map(str, _list(each, "values"))), fields.count(each, "count")
    for each in _list(assignment, "slices"):
        number, counts = fields.count(each, "domainCount"), field(each, "podCounts")
        values = [_values(level, number) for level in _list(each, "valuesPerLevel")]
        individual = [fields.count({"count": count}, "count") for count in _list(counts, "individual")]
        yield from zip(
            zip(*values, strict=False), individual or repeat(fields.count(counts, "universal")), strict=False
        )


def _values(level: Any, number: int) -> Iterator[str]:
    individual = field(level, "individual")
    if individual is None:
        return repeat(fields.text(level, "universal"), number)
    prefix, suffix = fields.text(individual, "prefix"), fields.text(individual, "suffix")
    return (f"{prefix}{root}{suffix}" for root in _list(individual, "roots"))


def _list(content: Any, *path: str) -> list[Any]:
    return items_at(content, *path)[:_MOST_DOMAINS]


@dataclass(frozen=True, slots=True)
class KueueObjects:
    """The objects of Kueue by name, or by namespace and name. None means that they are not known."""

    local_queues: Mapping[tuple[str, str], LocalQueue] | None = None
    cluster_queues: Mapping[str, ClusterQueue] | None = None
    flavors: Mapping[str, ResourceFlavor] | None = None
    topologies: Mapping[str, Topology] | None = None
    workloads: Mapping[tuple[str, str], Workload] | None = None

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
