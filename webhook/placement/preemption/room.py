"""Whether a pod fits on a node without some of the pods that run there.

Amounts and host ports are counted. The other filters that read running pods run on a snapshot without these pods, for
one node at a time: kube-scheduler removes the pods of no other node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import ge, sub

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.ports import HostPort
from webhook.kube.release import Change
from webhook.placement.framework.interface import CrossNodeFilterPlugin, Failure, FilterPlugin, concerns
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods, with_assumed_pods
from webhook.placement.plugins import node_ports
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, NodeResourcesFit, insufficient
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.volume_restrictions import VolumeRestrictions
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile

# The filters that read the pods of the node, or whose state kube-scheduler updates when a pod is removed.
_READ_PODS = (VolumeRestrictions, NodeVolumeLimits, PodTopologySpread, InterPodAffinity)


class Room:
    """The filters of `profile` for `pod` on the nodes of `snapshot`."""

    def __init__(self, profile: Profile, pod: PodInfo, snapshot: Snapshot, expired: Expired) -> None:
        self.pod, self.snapshot, self.expired, self.filters = pod, snapshot, expired, profile.filters
        nominated = nodes_with_nominated_pods(pod, snapshot, profile.scheduler_names, expired)
        self.nominated: Mapping[int, Sequence[RunningPod]] = nominated.pods_by_row if nominated else {}
        self.reading_pods = [each for each in self.filters if isinstance(each, _READ_PODS) and self._applies(each)]
        fit = next((each for each in self.filters if isinstance(each, NodeResourcesFit)), None)
        self.requests = [] if fit is None else [*fit.counted(pod)]
        self.counts_places = fit is not None
        self.host_ports = pod.host_ports if any(isinstance(each, NodePorts) for each in self.filters) else ()
        self._of_facts: dict[str, list[Failure]] = {}

    def _applies(self, plugin: FilterPlugin) -> bool:
        if isinstance(plugin, CrossNodeFilterPlugin):
            return plugin.is_relevant(self.pod, self.snapshot, self.expired)
        return concerns(plugin, self.pod, self.snapshot)

    def on(self, row: int) -> "NodeRoom":
        """Return the room on the node in `row` without its pods of lower priority."""
        return NodeRoom(self, row)

    def of_facts(self, plugin: FilterPlugin, row: int) -> list[str]:
        """Return why `plugin`, which does not read running pods, rejects the node in `row`.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        if plugin.name not in self._of_facts:
            self._of_facts[plugin.name] = [*plugin.filter(self.pod, self.snapshot, self.expired)]
        return [reason for reason, rejected in self._of_facts[plugin.name] if rejected[row]]


class NodeRoom:
    """One node without some of its pods, which can be taken back one by one.

    The nominated pods that have precedence count, too. Only resources that are short with all pods are counted.
    """

    def __init__(self, room: Room, row: int) -> None:
        self._room, self._row = room, row
        info = self._info = room.snapshot.nodes[row]
        priority = room.pod.preemption.priority or 0
        lower = self.lower = [each for each in info.pods if each.priority < priority]
        higher = [each for each in info.pods if each.priority >= priority] if len(lower) < len(info.pods) else []
        self._gone = {(each.namespace, each.name) for each in lower} if room.reading_pods else set()
        self._nominated = room.nominated.get(row, ())
        self._free: dict[str, int] = {}
        self._wanted: list[tuple[str, int]] = []
        devices = room.snapshot.devices
        has_devices = room.snapshot.release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
        for resource, amount in room.requests:
            offered = info.node.allocatable.get(resource, 0)
            reserved = sum(each.requests.get(resource, 0) for each in self._nominated)
            free = offered - info.requested.get(resource, 0) - reserved
            if free < amount and (offered or not (has_devices and devices.back(resource))):
                used = sum([each.requests.get(resource, 0) for each in higher])
                self._free[resource] = offered - used - reserved
                self._wanted.append((resource, amount))
        self._places = info.node.allowed_pods - len(higher) - len(self._nominated)
        # As in kube-scheduler, a port is free once one of the pods that use it is gone.
        self._taken: set[HostPort] = set()
        if room.host_ports:
            self._taken.update(port for each in info.pods for port in each.host_ports)
            self._taken.difference_update(port for each in lower for port in each.host_ports)
            self._taken.update(port for each in self._nominated for port in each.host_ports)

    def rejections(self) -> list[str]:
        """Return the reasons of the first filter that rejects the node, or none if the pod fits.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        room = self._room
        for plugin in room.filters:
            if isinstance(plugin, NodeResourcesFit):
                reasons = [insufficient(resource) for resource, amount in self._wanted if self._free[resource] < amount]
                reasons += [ERR_REASON_TOO_MANY_PODS] if self._places < 1 else []
            elif isinstance(plugin, NodePorts):
                reasons = [node_ports.ERR_REASON] if any(map(self._conflicts, self._taken)) else []
            elif plugin in room.reading_pods:
                reasons = self._of_pods((plugin,), self._nominated)
            else:
                reasons = [] if isinstance(plugin, _READ_PODS) else room.of_facts(plugin, self._row)
            if reasons:
                return reasons
        return self._of_pods(room.reading_pods, ()) if self._nominated else []

    def staying(self, ordered: Sequence[RunningPod]) -> list[bool]:
        """Return which of `ordered`, taken back one after the other, fit beside the pending pod.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        if not self._reads_more:
            return self._counted(ordered)
        flags = [self._take_back(each) for each in ordered]
        for each, stays in zip(ordered, flags, strict=True):
            if stays:
                self._move(each, 1)
        return flags

    def decides(self, pod: RunningPod) -> bool:
        """Return whether `pod` takes anything that is short: otherwise it stays in any order."""
        if self._reads_more or self._places <= len(self.lower):
            return True
        return any(pod.requests.get(resource) for resource, _ in self._wanted)

    def are_equal(self, one: RunningPod, other: RunningPod) -> bool:
        """Return whether both pods take the same of what is short."""
        if self._reads_more:
            return one.is_same_load(other)
        return all(one.requests.get(name, 0) == other.requests.get(name, 0) for name, _ in self._wanted)

    @property
    def _reads_more(self) -> bool:
        """Return whether more than amounts and places decides."""
        return bool(self._room.reading_pods or self._room.host_ports)

    def _counted(self, ordered: Sequence[RunningPod]) -> list[bool]:
        """Return the same if only amounts count: a cluster has thousands of pods to try."""
        places = self._places - 1 if self._room.counts_places else len(ordered)
        left = [self._free[resource] - amount for resource, amount in self._wanted]
        resources = [resource for resource, _ in self._wanted]
        # The pods of a template share their requests.
        known: dict[int, list[int]] = {}
        flags = [False] * len(ordered)
        for at, each in enumerate(ordered):
            amounts = known.get(id(each.requests))
            if amounts is None:
                amounts = known[id(each.requests)] = [each.requests.get(resource, 0) for resource in resources]
            if places > 0 and all(map(ge, left, amounts)):
                left = list(map(sub, left, amounts))
                places -= 1
                flags[at] = True
        return flags

    def _take_back(self, pod: RunningPod) -> bool:
        """Take `pod` back if the pending pod fits beside it; return whether it was taken."""
        if not self._counted((pod,))[0] or any(map(self._conflicts, pod.host_ports)):
            return False
        self._move(pod, -1)
        if self._room.reading_pods and self._is_rejected():
            self._move(pod, 1)
            return False
        return True

    def _move(self, pod: RunningPod, sign: int) -> None:
        for resource, _ in self._wanted:
            self._free[resource] += sign * pod.requests.get(resource, 0)
        self._places += sign
        if sign > 0:
            self._gone.add((pod.namespace, pod.name))
            self._taken.difference_update(pod.host_ports)
        else:
            self._gone.discard((pod.namespace, pod.name))
            self._taken.update(pod.host_ports)

    def _is_rejected(self) -> bool:
        plugins = self._room.reading_pods
        return any(self._of_pods(plugins, pods) for pods in ([self._nominated, ()] if self._nominated else [()]))

    def _staying(self) -> Iterator[RunningPod]:
        return (each for each in self._info.pods if (each.namespace, each.name) not in self._gone)

    def _conflicts(self, taken: HostPort) -> bool:
        return any(port.conflicts(taken) for port in self._room.host_ports)

    def _of_pods(self, plugins: Iterable[FilterPlugin], nominated: Sequence[RunningPod]) -> list[str]:
        """Return the reasons of the first of `plugins` that rejects the node, with the `nominated` pods on it."""
        room, row = self._room, self._row
        nodes = updated(room.snapshot, (NodeInfo.of(self._info.node, self._staying()),), room.snapshot.generation)
        if nominated:
            nodes = with_assumed_pods(nodes, {row: nominated})
        for plugin in in_time(plugins, room.expired):
            found = [reason for reason, rejected in plugin.filter(room.pod, nodes, room.expired) if rejected[row]]
            if found:
                return found
        return []
