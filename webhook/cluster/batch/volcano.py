"""The queues and pod groups of Volcano."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.batch import fields
from webhook.kube.names import VOLCANO_DEFAULT_QUEUE
from webhook.kube.pod.amounts import Amounts


class VolcanoQueue(NamedTuple):
    """A Queue. `state` is empty before the controller has set it; `capability` limits the resources that it names.

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


class VolcanoPodGroup(NamedTuple):
    """A PodGroup. `phase` is Pending until the scheduler admits it to its queue.

    `members` is the number of pods from which it starts; 0 if it has none.
    """

    namespace: str
    name: str
    queue: str
    phase: str
    members: int

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "VolcanoPodGroup":
        """Return the facts of `content`, a raw API object."""
        return cls(
            fields.text(content, "metadata", "namespace"),
            fields.text(content, "metadata", "name"),
            fields.text(content, "spec", "queue") or VOLCANO_DEFAULT_QUEUE,
            fields.text(content, "status", "phase"),
            fields.count(content, "spec", "minMember"),
        )


@dataclass(frozen=True, slots=True)
class VolcanoObjects:
    """The objects of Volcano by name, or by namespace and name; None: they are not known."""

    queues: Mapping[str, VolcanoQueue] | None = None
    groups: Mapping[tuple[str, str], VolcanoPodGroup] | None = None


NO_VOLCANO = VolcanoObjects()
