"""The queues and pod groups of Volcano and KAI, and the pod groups of kube-scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.batch import fields
from webhook.cluster.batch.network_topology import UNKNOWN_DOMAIN, NetworkTopology
from webhook.cluster.batch.topologies import Topology
from webhook.documents.documents import field
from webhook.kube.names import KAI_DEFAULT_SUBGROUP, VOLCANO_PLUGIN
from webhook.kube.pod.amounts import CPU, MEMORY, NVIDIA_GPU, Amounts


class PodGroup(NamedTuple):
    """A PodGroup of any scheduler. `members` is the number of pods that it needs to start, or 0 if it is not set.

    `queue` is the queue of Volcano or KAI. `phase` is only read for Volcano, where it is Pending until the group is
    admitted to its queue. The phases of other schedulers change often and do not affect scheduling. If `topology_key`
    is not empty, the plugin `topology_plugin` of the scheduler places all pods in one domain of this key, which is a
    level of the `topology` of KAI; `network` is the request of Volcano for that. `subgroups` are the names of the parts
    of KAI that pods can name by a label, and `doubt` is the reason why the domains of these are not known, or empty.
    `preferred_key` is the level of `topology` that KAI prefers. The other fields are only set for kube-scheduler:
    `is_basic` is true if it starts the pods one by one. Without a `priority`, that of `priority_class` counts.

    Source: sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1/types.go, PodGroupSpec;
    k8s.io/api/scheduling/v1beta1/types.go, PodGroupSpec
    """

    namespace: str
    name: str
    members: int
    queue: str = ""
    phase: str = ""
    is_basic: bool = False
    priority: int | None = None
    priority_class: str = ""
    topology_key: str = ""
    topology_plugin: str = "TopologyPlacementGenerator"
    topology: str = ""
    preferred_key: str = ""
    network: NetworkTopology | None = None
    subgroups: tuple[str, ...] = ()
    doubt: str = ""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "PodGroup":
        """Return the facts of `content`, a raw API object."""
        return cls(
            fields.text(content, "metadata", "namespace"),
            fields.text(content, "metadata", "name"),
            fields.count(content, "spec", "minMember")
            or fields.count(content, "spec", "schedulingPolicy", "gang", "minCount"),
            fields.text(content, "spec", "queue"),
        )

    @classmethod
    def of_native(cls, content: Mapping[str, Any]) -> "PodGroup":
        """Return the facts for kube-scheduler of `content`; the priority in a CompositePodGroup is not known."""
        policy, priority = field(content, "spec", "schedulingPolicy"), fields.number(content, "spec", "priority")
        is_composed = bool(field(content, "spec", "parentCompositePodGroupName"))
        topology = next(fields.items(content, "spec", "schedulingConstraints", "topology"), None)
        return cls.of(content)._replace(
            is_basic=isinstance(policy, Mapping) and "basic" in policy,
            priority=None if priority is None or is_composed else int(priority),
            priority_class="" if is_composed else fields.text(content, "spec", "priorityClassName"),
            topology_key=fields.text(topology, "key"),
        )

    @classmethod
    def of_volcano(cls, content: Mapping[str, Any]) -> "PodGroup":
        """Return the facts of `content`, a raw API object, with its phase and its network topology."""
        network = NetworkTopology.of(field(content, "spec") or {})
        return cls.of(content)._replace(
            phase=fields.text(content, "status", "phase"),
            topology_key=UNKNOWN_DOMAIN if network is not None and network.is_hard else "",
            topology_plugin=VOLCANO_PLUGIN,
            network=network,
        )

    @classmethod
    def of_kai(cls, content: Mapping[str, Any]) -> "PodGroup":
        """Return the facts of `content`, a raw API object, with its topology. Without its name, KAI ignores the level.

        Only subgroups without children have pods. KAI starts `minMember` pods of each, and ignores that of the group.
        If there is only one of these, all constraints are about the same pods.

        Source: github.com/NVIDIA/KAI-scheduler/pkg/apis/scheduling/v2alpha2/podgroup_types.go, TopologyConstraint;
        pkg/scheduler/api/podgroup_info/subgroup_info/factory.go
        """
        group, parts = cls.of(content), [*fields.items(content, "spec", "subGroups")]
        own, *of_parts = (_kai_constraint(each) for each in (field(content, "spec"), *parts))
        names = {fields.text(each, "name"): each for each in parts}
        parents = {name: fields.text(each, "parent").lower() for name, each in names.items()}
        leaves = [each for name, each in names.items() if name not in parents.values()]
        reached = {""}
        for _ in parts:
            reached.update(name for name, parent in parents.items() if parent in reached)
        stated, doubt = {*filter(None, (own, *of_parts))}, ""
        if len(names) < len(parts) or len(reached) <= len(names) or len(parts) == fields.MOST_ITEMS:
            # KAI ignores the constraints if it cannot read the subgroups.
            own, leaves, doubt = None, [], "their names or parents are not valid, or they are too many"
        elif len(leaves) < 2 and len(stated) < 2:
            own = next(iter(stated), None)
        elif any(of_parts):
            doubt = "its subgroups can have domains of their own (subGroups)"
        name, key, preferred = own or ("", "", "")
        if name and not (key or preferred):
            doubt = "with neither a required nor a preferred level, KAI starts no pods"
        return group._replace(
            members=sum(fields.count(each, "minMember") for each in leaves) if parts else group.members,
            topology_key=key,
            topology_plugin="topology",
            topology=name,
            preferred_key=preferred,
            subgroups=tuple(fields.text(each, "name") for each in leaves) if parts else (KAI_DEFAULT_SUBGROUP,),
            doubt=doubt,
        )


def _kai_constraint(part: Any) -> tuple[str, ...] | None:
    """Return the topology, the required and the preferred level of a PodGroup's spec or a subgroup, or None."""
    names = "topology", "requiredTopologyLevel", "preferredTopologyLevel"
    found = tuple(fields.text(part, "topologyConstraint", each) for each in names)
    return found if found[0] else None


class VolcanoQueue(NamedTuple):
    """A Queue. `state` is empty until the controller has set it. `capability` limits the resources that it names.

    Source: volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go
    """

    name: str
    state: str
    capability: Amounts
    allocated: Amounts

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "VolcanoQueue":
        """Return the facts of `content`, a raw API object."""
        return cls(
            fields.text(content, "metadata", "name"),
            fields.text(content, "status", "state"),
            fields.amounts(content, "spec", "capability"),
            fields.amounts(content, "status", "allocated"),
        )


# The units of a queue: GPUs, thousandths of a core, megabytes.
_UNITS = (("gpu", NVIDIA_GPU, 1.0), ("cpu", CPU, 1.0), ("memory", MEMORY, 1e6))


class KaiQueue(NamedTuple):
    """A Queue. `limits` are in GPUs, thousandths of a core and bytes. A resource without an entry is not limited.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/apis/scheduling/v2/queue_types.go, resources.go;
    pkg/scheduler/plugins/proportion/proportion.go
    """

    name: str
    parent: str
    limits: Mapping[str, float]
    allocated: Amounts

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "KaiQueue":
        """Return the facts of `content`, a raw API object."""
        limits = {}
        for name, resource, unit in _UNITS:
            limit = fields.number(content, "spec", "resources", name, "limit")
            if limit is not None and limit >= 0:
                limits[resource] = limit * unit
        return cls(
            fields.text(content, "metadata", "name"),
            fields.text(content, "spec", "parentQueue"),
            limits,
            fields.amounts(content, "status", "allocated"),
        )


@dataclass(frozen=True, slots=True)
class KaiObjects:
    """The objects of KAI by name, or by namespace and name, or None if unknown. `parents` have child queues."""

    queues: Mapping[str, KaiQueue] | None = None
    groups: Mapping[tuple[str, str], PodGroup] | None = None
    parents: frozenset[str] = frozenset()
    topologies: Mapping[str, Topology] | None = None


NO_KAI = KaiObjects()


@dataclass(frozen=True, slots=True)
class PodGroups:
    """The pod groups of Coscheduling and of kube-scheduler, by namespace and name, or None if the kind is not known."""

    coscheduling: Mapping[tuple[str, str], PodGroup] | None = None
    native: Mapping[tuple[str, str], PodGroup] | None = None


NO_POD_GROUPS = PodGroups()
