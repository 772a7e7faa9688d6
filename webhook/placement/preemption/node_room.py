"""Check whether a pod fits on a node without some of the pods that run there.

Amounts and host ports are counted. The other filters that read running pods run on a snapshot without these pods, for
one node at a time, because kube-scheduler only removes pods of this node. Pods that cannot change the result of a
filter, as most, are not tried.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from operator import attrgetter, gt, le, not_, sub

from webhook.cluster.node_info import NodeInfo, RunningPod, key_of
from webhook.cluster.update import updated
from webhook.kube.deadline import in_time
from webhook.kube.pod.amounts import Amounts
from webhook.kube.pod.ports import HostPort
from webhook.kube.release import Change
from webhook.placement.framework.interface import FilterPlugin
from webhook.placement.framework.nominated_nodes import with_assumed_pods
from webhook.placement.plugins import node_ports
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, NodeResourcesFit, insufficient
from webhook.placement.preemption.room import READ_PODS, Room

_REQUESTS_OF = attrgetter("requests")


class NodeRoom:
    """One node, with nominated pods that have precedence, whose lower pods can be put back one by one."""

    def __init__(self, room: Room, row: int) -> None:
        self._room, self._row = room, row
        info = self._info = room.snapshot.nodes[row]
        priority = room.pod.preemption.priority or 0
        lower = self.lower = [each for each in info.pods if each.priority < priority]
        higher = [each for each in info.pods if each.priority >= priority] if len(lower) < len(info.pods) else []
        self._nominated = room.nominated.get(row, ())
        self._free: dict[str, int] = {}
        self._of_lower: dict[str, int] = {}
        self._wanted: list[tuple[str, int]] = []
        devices = room.snapshot.devices
        has_devices = room.snapshot.release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
        for resource, amount in room.requests:
            offered = info.node.allocatable.get(resource, 0)
            reserved = sum([each.requests.get(resource, 0) for each in self._nominated])
            free = offered - info.requested.get(resource, 0) - reserved
            if free < amount and (offered or not (has_devices and devices.back(resource))):
                used = sum([each.requests.get(resource, 0) for each in higher])
                self._free[resource] = offered - used - reserved
                self._of_lower[resource] = info.requested.get(resource, 0) - used
                self._wanted.append((resource, amount))
        self._places = info.node.allowed_pods - len(higher) - len(self._nominated)
        self._reads_pods = bool(room.reading_pods) and (bool(self._nominated) or any(map(room.reads, lower)))
        # More than amounts and places decides.
        self._reads_more = self._reads_pods or bool(room.host_ports)
        self._known: dict[tuple[str, int, int], bool] = {}
        self._gone = {*map(key_of, lower)} if self._reads_more else set()
        # As in kube-scheduler, a port is free once one of the pods that use it is gone.
        self._taken: set[HostPort] = set()
        if room.host_ports:
            self._taken.update(port for each in info.pods for port in each.rare.host_ports)
            self._taken.difference_update(port for each in lower for port in each.rare.host_ports)
            self._taken.update(port for each in self._nominated for port in each.rare.host_ports)

    def rejections(self) -> list[str]:
        """Return the reasons of the first filter that rejects the node, or none if the pod fits.

        Raises:
            WorkSpentError: the filters that read pods have run too often.
        """
        room = self._room
        for plugin in room.filters:
            if isinstance(plugin, NodeResourcesFit):
                reasons = [insufficient(resource) for resource, amount in self._wanted if self._free[resource] < amount]
                reasons += [ERR_REASON_TOO_MANY_PODS] if self._places < 1 else []
            elif isinstance(plugin, NodePorts):
                reasons = [node_ports.ERR_REASON] if any(map(self._conflicts, self._taken)) else []
            elif self._reads_pods and isinstance(plugin, READ_PODS):
                reasons = self._of_pods((plugin,), self._nominated)
            else:
                reasons = room.of_facts(plugin, self._row)
            if reasons:
                return reasons
        return self._of_pods(room.reading_pods, ()) if self._nominated else []

    def staying(self, ordered: Sequence[RunningPod]) -> list[bool]:
        """Return, for each of `ordered`, whether it fits with the pending pod when it is put back in this order.

        Raises:
            WorkSpentError: the filters that read pods have run too often.
        """
        if not self._reads_more:
            return self._counted(ordered)
        if not self._reads_pods:
            is_gone = [any(map(self._conflicts, each.rare.host_ports)) for each in ordered]
            kept = iter(self._counted([*compress(ordered, map(not_, is_gone))], [*compress(ordered, is_gone)]))
            return [not gone and next(kept) for gone in is_gone]
        flags = [self._take_back(each) for each in ordered]
        for each, stays in zip(ordered, flags, strict=True):
            if stays:
                self._move(each, 1)
        return flags

    def deciding(self, pods: Sequence[RunningPod]) -> Sequence[RunningPod]:
        """Return those of `pods` that use an insufficient resource. The others stay in any order."""
        if self._reads_more or self._places <= len(self.lower):
            return pods
        resources = [resource for resource, _ in self._wanted]
        if all(any(map(requests.get, resources)) for requests in _distinct_requests(pods)):
            return pods
        return [each for each in pods if any(map(each.requests.get, resources))]

    def are_equal(self, pods: Sequence[RunningPod]) -> bool:
        """Return whether all `pods` use equal amounts of the insufficient resources."""
        if self._reads_more:
            return all(map(pods[0].is_same_load, pods))
        kinds = _distinct_requests(pods)
        return all(len({requests.get(resource, 0) for requests in kinds}) == 1 for resource, _ in self._wanted)

    def _counted(self, ordered: Sequence[RunningPod], gone: Sequence[RunningPod] = ()) -> list[bool]:
        """Return the result of `staying` if only amounts and the number of pods decide. It is fast for many pods.

        The other pods of lower priority, `gone`, cannot stay.
        """
        places = self._places - 1 if self._room.counts_places else len(ordered)
        left = [self._free[resource] - amount for resource, amount in self._wanted]
        resources = [resource for resource, _ in self._wanted]
        # All before the first that does not fit stay. Most pods do, so it is searched from the end.
        used, first = [self._of_lower[resource] for resource in resources], len(ordered)
        for each in gone:
            used = list(map(sub, used, _amounts(each, resources)))
        while first > places or any(map(gt, used, left)):
            first -= 1
            used = list(map(sub, used, _amounts(ordered[first], resources)))
        flags = [True] * first + [False] * (len(ordered) - first)
        left, places = list(map(sub, left, used)), places - first
        for at in range(first + 1, len(ordered)):
            if places < 1:
                break
            amounts = _amounts(ordered[at], resources)
            if all(map(le, amounts, left)):
                left = list(map(sub, left, amounts))
                places -= 1
                flags[at] = True
        return flags

    def _has_place_for(self, pod: RunningPod) -> bool:
        """Return whether the amounts and the number of pods allow `pod` in addition to the pending pod."""
        is_place_left = self._places > 1 or not self._room.counts_places
        return is_place_left and all(
            pod.requests.get(resource, 0) <= self._free[resource] - amount for resource, amount in self._wanted
        )

    def _take_back(self, pod: RunningPod) -> bool:
        """Put `pod` back if the pending pod still fits then. Return whether it was put back."""
        if not self._has_place_for(pod) or any(map(self._conflicts, pod.rare.host_ports)):
            return False
        self._move(pod, -1)
        if self._reads_pods and self._room.reads(pod) and self._is_rejected_with(pod):
            self._move(pod, 1)
            return False
        return True

    def _is_rejected_with(self, pod: RunningPod) -> bool:
        """Return whether a filter rejects the node after `pod` was put back. Without `pod`, no filter rejects it."""
        room, kind = self._room, (pod.namespace, id(pod.labels), id(pod.terms))
        known = self._known.get(kind) if room.reads_presence else None
        # A required term that no pod matched may be matched by now.
        if known is None or (known and room.pod.inter_pod.terms.required):
            known = self._known[kind] = self._is_rejected()
        return known

    def _move(self, pod: RunningPod, sign: int) -> None:
        for resource, _ in self._wanted:
            self._free[resource] += sign * pod.requests.get(resource, 0)
        self._places += sign
        if sign > 0:
            self._gone.add(key_of(pod))
            self._taken.difference_update(pod.rare.host_ports)
        else:
            self._gone.discard(key_of(pod))
            self._taken.update(pod.rare.host_ports)

    def _is_rejected(self) -> bool:
        plugins = self._room.reading_pods
        return any(self._of_pods(plugins, pods) for pods in ([self._nominated, ()] if self._nominated else [()]))

    def _staying(self) -> Iterator[RunningPod]:
        return (each for each in self._info.pods if key_of(each) not in self._gone)

    def _conflicts(self, taken: HostPort) -> bool:
        return any(port.conflicts(taken) for port in self._room.host_ports)

    def _of_pods(self, plugins: Iterable[FilterPlugin], nominated: Sequence[RunningPod]) -> list[str]:
        """Return the reasons of the first of `plugins` that rejects the node, with the `nominated` pods on it."""
        room, row = self._room, self._row
        room.count_run()
        if nominated or room.reads_volumes:
            info = NodeInfo.of(self._info.node, self._staying())
            nodes = updated(room.snapshot, (info,), room.snapshot.generation)
            nodes = with_assumed_pods(nodes, {row: nominated}) if nominated else nodes
        else:
            # Only this table of the pods is read.
            staying = self._info._replace(pods=tuple(self._staying()))
            nodes = replace(room.snapshot, pods=room.snapshot.pods.with_rows({row: staying}))
        for plugin in in_time(plugins, room.expired):
            found = [reason for reason, rejected in plugin.filter(room.pod, nodes, room.expired) if rejected[row]]
            if found:
                return found
        return []


def _distinct_requests(pods: Sequence[RunningPod]) -> list[Amounts]:
    """Return the requests of each of `pods`, or only one if all pods share it, as those of one template."""
    requests = [*map(_REQUESTS_OF, pods)]
    return requests[:1] if len({*map(id, requests)}) == 1 else requests


def _amounts(pod: RunningPod, resources: Iterable[str]) -> list[int]:
    requests = pod.requests
    return [requests.get(each, 0) for each in resources]
