"""The queues and pod groups of KAI."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.batch import fields
from webhook.kube.pod.amounts import CPU, MEMORY, NVIDIA_GPU, Amounts

# The units of a queue: GPUs, thousandths of a core, megabytes.
_UNITS = (("gpu", NVIDIA_GPU, 1.0), ("cpu", CPU, 1.0), ("memory", MEMORY, 1e6))


class KaiQueue(NamedTuple):
    """A Queue. `limits` are by resource, in GPUs, thousandths of a core and bytes; one that is absent is not limited.

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


class KaiPodGroup(NamedTuple):
    """A PodGroup of KAI. `members` is the number of pods from which it starts; 0 if it has none."""

    namespace: str
    name: str
    queue: str
    members: int

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "KaiPodGroup":
        """Return the facts of `content`, a raw API object."""
        return cls(
            fields.text(content, "metadata", "namespace"),
            fields.text(content, "metadata", "name"),
            fields.text(content, "spec", "queue"),
            fields.count(content, "spec", "minMember"),
        )


@dataclass(frozen=True, slots=True)
class KaiObjects:
    """The objects of KAI by name, or by namespace and name; None: they are not known. `parents` have child queues."""

    queues: Mapping[str, KaiQueue] | None = None
    groups: Mapping[tuple[str, str], KaiPodGroup] | None = None
    parents: frozenset[str] = frozenset()


NO_KAI = KaiObjects()
