"""The demands of filters on nodes: for amounts of resources, host ports, claims, and pods within the skew.

A filter rejects a node if its pods use more than it has. Filters that read no pods of the node reject it in any case.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.ports import HostPort
from webhook.kube.release import Change
from webhook.kube.selectors import LabelSelector
from webhook.placement.framework.interface import Failure, FilterPlugin, concerns
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.plugins import inter_pod_affinity, node_ports, node_volume_limits, pod_topology_spread
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, NodeResourcesFit, insufficient
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits, VolumeRoom
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.volume_restrictions import (
    ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT,
    VolumeRestrictions,
)
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.preemption.affinity import is_selected, repulsions, selectors_of
from webhook.placement.preemption.lower_pods import LowerPods
from webhook.placement.profiles.profile import Profile

_HOST_PORTS = attrgetter("rare.host_ports")


class Question:
    """A pod that no node of `snapshot` can take, and the filters of `profile` that apply to it."""

    def __init__(self, profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> None:
        self.pod, self.snapshot, self.expired = pod, snapshot, expired
        self.priority = pod.preemption.priority or 0
        nominated = nodes_with_nominated_pods(pod, snapshot, profile.scheduler_names, expired)
        self.nominated = nominated.pods_by_row if nominated else {}
        skipped = [each for each in profile.cross_node_filters if not each.is_relevant(pod, snapshot, expired)]
        self.uses = cache(lambda plugin: plugin.uses(pod, snapshot))
        self.filters = [each for each in profile.filters if each not in skipped and concerns(each, pod, snapshot)]


class Demand(NamedTuple):
    """The demand for something limited: the pods of each node can use `more` of it with the pending pod on the node.

    Nominated pods count as running. If `more` is negative, the filter rejects the node for `reason`. `used` returns the
    use of each pod of lower priority.
    """

    reason: str
    more: Column
    used: Callable[[], Column]


class Demands:
    """The demands of the filters on the nodes in `rows`, whose pods of lower priority are `lower`.

    `volumes` are the volumes of nodes whose limits can be exceeded, by the number of the node. Only nominated pods can
    make the nodes in `needs_nominated` acceptable: kube-scheduler also filters without these pods.
    """

    def __init__(self, question: Question, rows: Sequence[int], lower: LowerPods) -> None:
        self._question, self._rows, self._lower = question, rows, lower
        self._infos = [question.snapshot.nodes[row] for row in rows]
        self._nominated = [(at, pod) for at, row in enumerate(rows) for pod in question.nominated.get(row, ())]
        self.volumes: dict[int, VolumeRoom] = {}
        self.needs_nominated = np.zeros(len(rows), dtype=np.bool_)

    def of(self, plugin: FilterPlugin) -> Iterator[Failure | Demand]:
        """Yield the nodes that `plugin` rejects in any case and its demands, in the order of its reasons."""
        if isinstance(plugin, NodeResourcesFit):
            return self._amounts(plugin)
        if isinstance(plugin, NodePorts):
            return self._ports() if self._question.pod.host_ports else iter(())
        if isinstance(plugin, VolumeRestrictions):
            return self._claims(plugin)
        if isinstance(plugin, NodeVolumeLimits):
            return self._volumes(plugin)
        if isinstance(plugin, PodTopologySpread):
            return self._spread(plugin)
        return self._affinity(plugin) if isinstance(plugin, InterPodAffinity) else self._facts(plugin)

    def _facts(self, plugin: FilterPlugin) -> Iterator[Failure]:
        question = self._question
        found = plugin.filter(question.pod, question.snapshot, question.expired)
        return (Failure(reason, rejected[self._rows]) for reason, rejected in found)

    def _amounts(self, plugin: NodeResourcesFit) -> Iterator[Demand]:
        snapshot, infos = self._question.snapshot, self._infos
        has_devices = snapshot.release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
        for resource, amount in plugin.counted(self._question.pod):
            offered = [each.node.allocatable.get(resource, 0) for each in infos]
            used = [each.requested.get(resource, 0) for each in infos]
            more = _column(offer - in_use - amount for offer, in_use in zip(offered, used, strict=True))
            if has_devices and snapshot.devices.back(resource):
                # DynamicResources checks it on nodes that do not offer it.
                more[np.array(offered) == 0] = LARGEST_AMOUNT
            more -= self._of_nominated(partial(_requested, resource))
            yield Demand(insufficient(resource), more, partial(self._lower.requested, resource))
        more = _column(each.node.allowed_pods - len(each.pods) - 1 for each in infos) - self._of_nominated(lambda _: 1)
        yield Demand(ERR_REASON_TOO_MANY_PODS, more, lambda: np.ones(len(self._lower.pods), dtype=np.int64))

    def _ports(self) -> Iterator[Demand]:
        """Yield the demand for host ports. As in kube-scheduler, a port is free once one of its pods is gone."""
        lower, load = self._lower, self._question.snapshot.load
        taken: dict[int, set[HostPort]] = {}
        for wanted in self._question.pod.host_ports:
            for port, row in load.host_ports.get((wanted.protocol, wanted.port), ()):
                if wanted.conflicts(port):
                    taken.setdefault(row, set()).add(port)
        left = [taken.get(row, set[HostPort]()) for row in self._rows]
        every = frozenset().union(*left)
        is_free = np.fromiter(map(every.isdisjoint, map(_HOST_PORTS, lower.pods)), np.bool_, len(lower.pods))
        used = (~is_free).astype(np.int64)
        for at in np.flatnonzero(used).tolist():
            left[lower.node_of[at]].difference_update(lower.pods[at].rare.host_ports)
        more = -lower.on_nodes(used) - np.array([len(each) > 0 for each in left])
        wanted_ports = self._question.pod.host_ports
        more -= self._of_nominated(
            lambda each: sum(wanted.conflicts(port) for port in each.rare.host_ports for wanted in wanted_ports)
        )
        yield Demand(node_ports.ERR_REASON, more, lambda: used)

    def _claims(self, plugin: VolumeRestrictions) -> Iterator[Demand]:
        in_use, uses = self._question.uses(plugin)
        more = np.full(len(self._rows), -in_use) - self._of_nominated(uses)
        used = partial(np.fromiter, map(uses, self._lower.pods), np.int64, len(self._lower.pods))
        yield Demand(ERR_REASON_READ_WRITE_ONCE_POD_CONFLICT, more, used)

    def _volumes(self, plugin: NodeVolumeLimits) -> Iterator[Failure]:
        question, pods = self._question, self._lower.pods
        limit = node_volume_limits.ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED
        yield from (each for each in self._facts(plugin) if each.reason != limit)
        exceeded = np.zeros(len(self._rows), dtype=np.bool_)
        lower_on = np.split(np.arange(len(pods)), self._lower.first[1:])
        for at, (info, row) in enumerate(in_time(zip(self._infos, self._rows, strict=True), question.expired)):
            if info.node.name not in (question.snapshot.storage.limits or {}):
                continue
            staying = (each for each in info.pods if each.priority >= question.priority)
            room = VolumeRoom(question.pod, question.snapshot, row, staying, question.nominated.get(row, ()))
            exceeded[at] = room.is_exceeded()
            if room.can_be_exceeded(pods[each] for each in lower_on[at].tolist()):
                self.volumes[at] = room
        yield Failure(limit, exceeded)

    def _spread(self, plugin: PodTopologySpread) -> Iterator[Failure | Demand]:
        question = self._question
        rooms = plugin.rooms(question.pod, question.snapshot, question.expired)
        namespaces = frozenset((question.pod.inter_pod.namespace,))
        for selector, more_in_domain, counted, unlabelled in rooms:
            here, selects = counted[self._rows], partial(is_selected, [(namespaces, selector)])
            more = more_in_domain[self._rows] - self._of_nominated(selects) * here
            yield Failure(pod_topology_spread.ERR_REASON_NODE_LABEL_NOT_MATCH, unlabelled[self._rows])
            yield Demand(
                pod_topology_spread.ERR_REASON_CONSTRAINTS_NOT_MATCH,
                more,
                partial(self._counted, selects, [selector], here),
            )

    def _affinity(self, plugin: InterPodAffinity) -> Iterator[Failure | Demand]:
        pod, snapshot, expired, lower = self._question.pod, self._question.snapshot, self._question.expired, self._lower
        if pod.inter_pod.terms.required:
            terms = in_time(pod.inter_pod.terms.required, expired)
            selections = [plugin.selection(term, snapshot, expired) for term in terms]
            selected = partial(is_selected, selections)
            leaving = np.zeros(len(snapshot.nodes), dtype=np.int64)
            leaving[self._rows] = lower.on_nodes(lower.counted(selected, selectors_of(selections)))
            self.needs_nominated = ~plugin.nodes_near_others(pod, snapshot, leaving, expired)[self._rows]
            is_near_nominated = self._of_nominated(selected) > 0
            yield Failure(inter_pod_affinity.ERR_REASON_AFFINITY, self.needs_nominated & ~is_near_nominated)
        for reason, of, selectors, in_domain, labelled in repulsions(plugin, pod, snapshot, expired):
            here = labelled[self._rows]
            more = -in_domain[self._rows] - self._of_nominated(of) * here
            yield Demand(reason, more, partial(self._counted, of, selectors, here))

    def _counted(
        self, of: Callable[[RunningPod], int], selectors: Iterable[LabelSelector | None] | None, here: Mask
    ) -> Column:
        """Return `of` each lower pod on the nodes `here`, and 0 elsewhere; see `LowerPods.counted`."""
        found: Column = self._lower.counted(of, selectors) * here[self._lower.node_of]
        return found

    def _of_nominated(self, count: Callable[[RunningPod], int]) -> Column:
        found = np.zeros(len(self._rows), dtype=np.int64)
        for at, pod in self._nominated:
            found[at] += count(pod)
        return found


def _column(values: Iterable[int]) -> Column:
    return np.array([max(-LARGEST_AMOUNT, min(each, LARGEST_AMOUNT)) for each in values], dtype=np.int64)


def _requested(resource: str, running: RunningPod) -> int:
    return running.requests.get(resource, 0)
