"""The objects of the cluster and of the scheduler that an admitted pod names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from webhook.backends.backend import BatchNames
from webhook.cluster.batch.queues import PodGroup
from webhook.policy.spec.accelerators import Accelerator, Fact


@dataclass(frozen=True, slots=True)
class PodReferences:
    """The names in an admitted pod: products of `accelerator`, scheduler and PriorityClass."""

    accelerator: Accelerator | None
    """The accelerator that the annotations mean, or None for a pod without a workload."""
    products: tuple[str, ...]
    scheduler: str
    tolerated_products: tuple[str, ...] | None = None
    """The only products that a pod without `gpu-product` tolerates, or None if it names one or tolerates all."""
    priority_class: str = ""
    batch: tuple[BatchNames, ...] = ()
    """The queues and groups of batch schedulers."""
    amounts: tuple[Fact, ...] = ()
    """The facts of cards for which the pod requests an amount: memory, count, driver."""


TEMPLATES_DIFFER = "its templates differ"


class Within(NamedTuple):
    """The request that the pods of a gang run together: on nodes with one value of the label `key`.

    If `is_required` is false, it is a preference. `parents` are the labels of wider domains, the widest first, in which
    a value of `key` can occur again as another domain. `below` are those of narrower domains: a node without one of
    them is in no domain. `doubt` is the reason why it is not known whether the scheduler finds the room that the nodes
    have, or empty. `is_native` is true if kube-scheduler looks for the domain. `is_of_least` is true if the scheduler
    can choose a domain that only has room for the least number of pods that start the gang. If `part` is not 0, parts
    of so many pods run in a domain each, not the whole gang. `alias` is the short name of the policy for the label, and
    `topology` the name of the Topology of KAI with this level; both can be empty.
    """

    key: str
    is_required: bool = True
    parents: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    doubt: str = ""
    is_native: bool = False
    is_of_least: bool = False
    part: int = 0
    alias: str = ""
    topology: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """Return the labels whose values together name one domain."""
        return (*self.parents, self.key)

    def most(self, rooms: Iterable[int]) -> int:
        """Return how many pods of the gang fit; `rooms` are the numbers of pods that each domain has room for."""
        return sum(each // self.part * self.part for each in rooms) if self.part else max(rooms, default=0)

    def named(self, aliases: Mapping[str, str]) -> "Within":
        """Return the request with the first of the `aliases` of topology keys that stands for the key."""
        return self._replace(alias=next((alias for alias, key in aliases.items() if key == self.key), ""))


def strictest(requests: Iterable[Within | None]) -> Within | None:
    """Return the first of the `requests` of several templates that is required, or else the first, or None.

    If they are not all equal, the result has a doubt.
    """
    asked = [*requests]
    found = max(filter(None, asked), key=lambda each: each.is_required, default=None)
    return found._replace(doubt=TEMPLATES_DIFFER) if found and any(each != found for each in asked) else found


class GangRequest(NamedTuple):
    """The gang that a pod requests to be in. `name` is empty if the gang has no name; `size` is 0 if it is not stated.

    `starts_whole` is true if `scheduler` binds the pods together or not at all. `members` is the number of pods from
    which it starts the gang (minMember or minCount of the PodGroup), or 0 if that is not known. `is_stated` is
    false if the size is that number, because the pod states none. `ends_after` is the time after which Kueue evicts a
    gang that has started only in part, such as `5m`, or empty if it does not. `groups` is the number of equal gangs in
    an object. `group` is the PodGroup, or None if it is not known. `missing` is the annotation without which
    `scheduler` does not know the gang, or empty if none would help. `within` is the request of the pod that its gang
    runs together, or None if it has none.
    """

    name: str
    size: int
    scheduler: str
    starts_whole: bool
    members: int = 0
    is_stated: bool = True
    ends_after: str = ""
    groups: int = 1
    group: PodGroup | None = None
    missing: str = ""
    within: Within | None = None

    @property
    def least(self) -> int:
        """Return the number of pods that must fit before the scheduler binds any; 1 if it binds them one by one."""
        if self.members:
            return min(self.members, self.size)
        return self.size if self.starts_whole else 1
