"""NodeVolumeLimits: the number of attached volumes of a CSI driver is limited on each node."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from copy import copy

import numpy as np

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.volumes import NO_VOLUMES, AttachedVolume, PodVolumes
from webhook.kube.release import Change
from webhook.placement.framework.interface import Failure
from webhook.placement.framework.volume_claims import (
    Migrated,
    VolumePlugin,
    attached_volumes,
    is_missing,
    not_found,
    owner_error,
)
from webhook.placement.pod.pod_info import PodInfo

NOT_INSTALLED = " CSI driver is not installed on the node"
ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED = "node(s) exceed max volume count"


class NodeVolumeLimits(VolumePlugin):
    """Count the volumes of running pods, and volumes attached without a pod, on nodes whose CSINode has limits.

    Volumes of migrated in-tree plugins count for the CSI driver on every node with a CSINode; before 1.36, only if the
    CSINode names the plugin. On nodes without pods, no volume is attached, missing drivers are ignored because their
    own pods can still start, and claims that are missing or belong to another pod are ignored.

    With `needs_drivers` (since 1.37), a node is rejected if its CSINode does not list a driver that must be installed.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits/csi.go
    """

    name = "NodeVolumeLimits"

    def __init__(self, *, needs_drivers: bool = True) -> None:
        self._needs_drivers = needs_drivers

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes that lack a driver or whose limit would be exceeded; all nodes if a claim is invalid."""
        storage = nodes.storage
        if not nodes.is_without_pods and (reason := _claim_rejection(pod.volumes, nodes)):
            return (Failure(reason, np.ones(len(nodes.nodes), dtype=np.bool_)),)
        missing = list(self._without_driver(pod.volumes, nodes)) if self._needs_drivers else []
        if not storage.limits or not any(attached_volumes(pod.volumes, storage)):
            return missing
        full = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for row, info in enumerate(in_time(nodes.nodes, expired)):
            if info.node.name in storage.limits:
                full[row] = VolumeRoom(pod, nodes, row, () if nodes.is_without_pods else info.pods).is_exceeded()
        return (*missing, Failure(ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED, full))

    @staticmethod
    def _without_driver(volumes: PodVolumes, nodes: Snapshot) -> Iterator[Failure]:
        """Yield the nodes that lack a driver, driver by driver.

        If a node lacks several, kube-scheduler names a random one.
        """
        limits = nodes.storage.limits
        if limits is None or nodes.is_without_pods:
            return
        for driver in needed_drivers(volumes, nodes):
            missing = np.ones(len(nodes.nodes), dtype=np.bool_)
            installed = [name for name, each in limits.items() if driver in each.drivers]
            missing[[nodes.rows[name] for name in installed if name in nodes.rows]] = False
            yield Failure(driver + NOT_INSTALLED, missing)


def needed_drivers(volumes: PodVolumes, nodes: Snapshot) -> Sequence[str]:
    """Return the drivers of the pod's volumes that must be installed on a node, sorted."""
    known = nodes.csi.drivers
    if not known or not nodes.release.has(Change.DRIVER_IS_INSTALLED):
        return ()
    used = {volume.driver for volume in attached_volumes(volumes, nodes.storage)}
    return sorted([driver for driver in used if driver in known and known[driver].must_be_installed])


def _claim_rejection(volumes: PodVolumes, nodes: Snapshot) -> str:
    """Return the reason why a claim rejects all nodes, or "".

    If VolumeBinding is enabled, it rejects such a pod first.
    """
    storage = nodes.storage
    for use in volumes.claims if storage.claims is not None else ():
        claim = (storage.claims or {}).get((volumes.namespace, use.name))
        if is_missing(use, volumes.namespace, nodes):
            return f"looking up PVC {volumes.namespace}/{use.name}: {not_found(use.name)}"
        if use.is_ephemeral and (reason := owner_error(claim, volumes)):
            return reason
    return ""


class VolumeRoom:
    """The volumes on the node in `row`, which has CSI limits, without those of `pod`.

    Pods in `staying` and added pods use them. They are counted with and without the `nominated` pods.
    """

    def __init__(
        self,
        pod: PodInfo,
        nodes: Snapshot,
        row: int,
        staying: Iterable[RunningPod],
        nominated: Collection[RunningPod] = (),
    ) -> None:
        name = nodes.nodes[row].node.name
        limits = (nodes.storage.limits or {})[name]
        migrates_all = nodes.release.has(Change.EVERY_IN_TREE_VOLUME_IS_MIGRATED)
        self._storage, self._limits = nodes.storage, limits.by_driver
        self._migrated: Migrated = None if migrates_all else limits.migrated_plugins
        self._wanted = {each for each in self._of(pod.volumes) if each.driver in self._limits}
        self._attached = _attached(nodes, row) if self._wanted and not nodes.is_without_pods else set()
        self._in_use = [self._used_by(staying if self._wanted else ())]
        if nominated:
            self._in_use.append(self._in_use[0] | self._used_by(nominated))

    def _of(self, volumes: PodVolumes) -> Iterator[AttachedVolume]:
        return attached_volumes(volumes, self._storage, self._migrated)

    def _used_by(self, running: Iterable[RunningPod]) -> set[AttachedVolume]:
        return {each for pod in running if pod.volumes is not NO_VOLUMES for each in self._of(pod.volumes)}

    def copy(self) -> "VolumeRoom":
        """Return a copy, to which other pods can be added."""
        other = copy(self)
        vars(other)["_in_use"] = [{*each} for each in self._in_use]
        return other

    def is_exceeded(self, added: Iterable[RunningPod] = ()) -> bool:
        """Return whether a limit is exceeded with the pods `added`."""
        new = self._used_by(added)
        return any(self._exceeds(each | new) for each in self._in_use if self._wanted)

    def add(self, running: RunningPod) -> None:
        """Add the pod `running`."""
        for each in self._in_use:
            each |= self._used_by((running,))

    def is_shared_by(self, running: RunningPod) -> bool:
        """Return whether the pod `running` uses a volume of the pending pod, which is then no new one on the node."""
        return not self._wanted.isdisjoint(self._used_by((running,)))

    def can_be_exceeded(self, added: Iterable[RunningPod]) -> bool:
        """Return whether a limit can be exceeded with some of the pods `added`."""
        every = Counter(each.driver for each in self._used_by(added).union(self._in_use[-1], self._attached))
        wanted = Counter(each.driver for each in self._wanted)
        return any(count + every[driver] > self._limits[driver] for driver, count in wanted.items())

    def _exceeds(self, in_use: AbstractSet[AttachedVolume]) -> bool:
        new = Counter(volume.driver for volume in self._wanted if volume not in in_use)
        every = Counter(volume.driver for volume in in_use | self._attached) if new else Counter[str]()
        return any(count + every[driver] > self._limits[driver] for driver, count in new.items())


def _attached(nodes: Snapshot, row: int) -> set[AttachedVolume]:
    """Return the volumes with a VolumeAttachment to the node, used by a pod or not."""
    found = set()
    for each in (nodes.csi.attachments or {}).get(nodes.nodes[row].node.name, ()):
        volume = (nodes.storage.volumes or {}).get(each.volume_name)
        if each.driver and volume is not None and volume.csi is not None:
            found.add(AttachedVolume(each.driver, volume.csi.handle))
    return found
