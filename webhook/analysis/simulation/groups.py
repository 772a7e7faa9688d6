"""The waiting units that find a node, or not, together: pods that the scheduler does not tell apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from webhook.analysis.simulation.backlog import Unit
from webhook.analysis.simulation.templates import Template
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Column, Snapshot
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit
from webhook.placement.profiles.profile import Profile
from webhook.placement.scorer import PodSignature

Requests = Sequence[tuple[str, int]]


@dataclass(slots=True, eq=False)
class Group:
    """Units of pods with one signature, which need at least `least` of their pods placed; a gang is one by itself.

    `requests` must be free on a node. `reads_pods`: pods on other nodes decide about a node, too.
    """

    template: Template
    least: int
    requests: Requests
    reads_pods: bool = False
    units: list[Unit] = field(default_factory=list)

    @property
    def waits_for_pods(self) -> bool:
        """Return whether a pod that is placed can make room for these."""
        return bool(self.template.signature.info.inter_pod.terms.required)

    def may_fit(self, snapshot: Snapshot, freed: Iterable[NodeInfo]) -> bool:
        """Return false if the units, which did not fit before, cannot fit after pods have left the `freed` nodes."""
        if not self.reads_pods and not any(_has_room(info, self.requests) for info in freed):
            return False
        if self.least <= 1 and not self.reads_pods:
            return True
        most: Column = snapshot.allowed_pods - snapshot.load.pods
        for resource, amount in self.requests:
            most = np.minimum(most, (snapshot.allocatable(resource) - snapshot.requested(resource)) // amount)
        return int(np.maximum(most, 0).sum()) >= self.least


def _has_room(info: NodeInfo, requests: Requests) -> bool:
    offered, used = info.node.allocatable, info.requested
    return all(offered.get(name, 0) - used.get(name, 0) >= amount for name, amount in requests)


class Groups:
    """The groups of the units that wait, or have waited."""

    def __init__(self) -> None:
        self._by_signature: dict[tuple[int, PodSignature], Group] = {}
        self._by_template: dict[Template, Group] = {}
        self._waiting: dict[Group, None] = {}

    @property
    def waiting(self) -> list[Group]:
        """Return the groups with a unit that waits."""
        return [*self._waiting]

    def of(self, unit: Unit) -> Group:
        """Return the group of `unit`."""
        template = unit.pods[0].template
        if unit.least > 1:
            return _group(template, unit.least)
        group = self._by_template.get(template)
        if group is None:
            key = id(template.scheduler), template.signature
            group = self._by_signature.get(key)
            if group is None:
                group = self._by_signature[key] = _group(template, 1)
            self._by_template[template] = group
        return group

    def wait(self, group: Group, unit: Unit, snapshot: Snapshot) -> None:
        """Add a unit to its group, which did not fit on `snapshot`."""
        if not group.units:
            # Once a pod with anti-affinity runs, others read the pods of other nodes, too.
            group.reads_pods = group.template.scheduler.scheduler.reads_other_nodes(group.template.signature, snapshot)
        group.units.append(unit)
        self._waiting[group] = None

    def settle(self, group: Group) -> None:
        """Drop the units of a group that wait no more."""
        group.units = [unit for unit in group.units if unit.is_waiting]
        if not group.units:
            self._waiting.pop(group, None)


def _group(template: Template, least: int) -> Group:
    return Group(template, least, _filtered_requests(template.scheduler.scheduler.profile, template.signature))


def _filtered_requests(profile: Profile, signature: PodSignature) -> Requests:
    """Return the requests by which the scheduler filters nodes."""
    args = profile.args
    if not any(isinstance(each, NodeResourcesFit) for each in profile.filters):
        return ()
    return [
        (name, amount)
        for name, amount in signature.info.requests
        if amount and name not in args.ignored_resources and name.partition("/")[0] not in args.ignored_resource_groups
    ]
