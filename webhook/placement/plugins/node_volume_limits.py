"""NodeVolumeLimits: a node has so many volumes of a CSI driver attached, and no more."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from webhook.cluster.deadline import Expired, in_time, never
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.storage import Storage
from webhook.kube.volumes import COUNTED_MIGRATIONS
from webhook.placement.plugin import Failure
from webhook.placement.pod_info import PodInfo

ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED = "node(s) exceed max volume count"

_DRIVERS = {each.plugin: each.driver for each in COUNTED_MIGRATIONS.values()}


class NodeVolumeLimits:
    """Counts the volumes that the claims of running pods stand for, on the nodes whose CSINode has limits.

    Volumes that are attached without a running pod are not counted.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits/csi.go
    """

    name = "NodeVolumeLimits"

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """The nodes that would have more volumes of a driver attached than they can."""
        storage = nodes.storage
        wanted = _volumes(storage, pod.volumes.namespace, (use.name for use in pod.volumes.claims))
        if not wanted or not storage.limits:
            return ()
        full = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for row, info in enumerate(in_time(nodes.nodes, expired)):
            limits = storage.limits.get(info.node.name)
            if limits is not None and any(driver in limits.by_driver for driver in wanted.values()):
                full[row] = _is_exceeded(limits.by_driver, wanted, {} if nodes.is_emptied else _attached(nodes, row))
        return (Failure(ERR_REASON_MAX_VOLUME_COUNT_EXCEEDED, full),)


def _attached(nodes: Snapshot, row: int) -> Mapping[str, str]:
    attached: dict[str, str] = {}
    for running in nodes.nodes[row].pods:
        attached |= _volumes(nodes.storage, running.namespace, (use.name for use in running.volumes.claims))
    return attached


def _is_exceeded(limits: Mapping[str, int], wanted: Mapping[str, str], attached: Mapping[str, str]) -> bool:
    counts = Counter({**attached, **wanted}.values())
    added = {driver for volume, driver in wanted.items() if volume not in attached}
    return any(driver in limits and counts[driver] > limits[driver] for driver in added)


def _volumes(storage: Storage, namespace: str, claim_names: Iterable[str]) -> dict[str, str]:
    """The drivers of the volumes that the claims stand for, by what tells one volume from another."""
    found: dict[str, str] = {}
    for name in claim_names:
        claim = (storage.claims or {}).get((namespace, name))
        if claim is None:
            continue
        volume = (storage.volumes or {}).get(claim.volume_name)
        storage_class = (storage.classes or {}).get(claim.storage_class)
        if volume is not None:
            driver, handle = volume.csi_driver, volume.csi_handle
        else:
            provisioner = storage_class.provisioner if storage_class else ""
            driver, handle = _DRIVERS.get(provisioner, provisioner), f"claim {namespace}/{name}"
        if driver and handle:
            found[f"{driver}/{handle}"] = driver
    return found
