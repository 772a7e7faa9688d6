"""Scores of nodes by the storage that the unbound claims of a pod would get there."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.cluster.storage.csi import whole_bytes
from webhook.cluster.storage.volumes import PersistentVolumeClaim
from webhook.kube.deadline import Expired, in_time, never
from webhook.placement.framework.scoring import UtilizationScore
from webhook.placement.framework.volume_claims import WaitingClaims, enough_capacities


class _Use(NamedTuple):
    """The requests of the claims of one StorageClass, and the capacity, by node.

    `counts` marks nodes with such claims.
    """

    counts: Mask
    requested: Column
    capacity: Column


def storage_scores(
    claims: Iterable[PersistentVolumeClaim], nodes: Snapshot, rows: Rows, score: UtilizationScore, expired: Expired
) -> Column:
    """Return the mean score of the StorageClasses of `claims` on each of `rows`.

    On a node where a claim has an existing volume, only existing volumes count.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, Score, and scorer.go
    """
    waiting = WaitingClaims.of(claims, nodes, expired)
    if not waiting.matched and not waiting.selected:
        return np.zeros(len(rows), dtype=np.int64)
    volumes: dict[str, _Use] = {}
    for claim, size_bytes in waiting.matched:
        of_rows = size_bytes[rows]
        _add(volumes, claim, of_rows >= 0, of_rows, is_shared=False)
    has_volume = np.zeros(len(rows), dtype=np.bool_)
    for use in volumes.values():
        has_volume |= use.counts
    provisioned: dict[str, _Use] = {}
    for claim, wanted in waiting.to_provision(len(nodes.nodes)):
        reported = _Reported.of(claim, nodes, rows, expired)
        _add(provisioned, claim, wanted[rows] & ~has_volume & reported.is_known, reported.most, is_shared=True)
    total = np.zeros(len(rows), dtype=np.int64)
    classes = np.zeros(len(rows), dtype=np.int64)
    for use in (*volumes.values(), *provisioned.values()):
        # A volume or a provisioner without capacity scores as if all of it were requested.
        requested = np.where(use.capacity == 0, 1, use.requested)
        total += np.where(use.counts, score(requested, np.maximum(use.capacity, 1)), 0)
        classes += use.counts
    classes = np.maximum(classes, 1)
    return (2 * total + classes) // (2 * classes)


def is_capacity_ambiguous(claims: Iterable[PersistentVolumeClaim], nodes: Snapshot, expired: Expired = never) -> bool:
    """Return whether a node has different capacities for a claim, of which kube-scheduler uses a random one.

    A capacity that only has a maximum volume size is also ambiguous, because kube-scheduler fails with an error.
    """
    every = np.arange(len(nodes.nodes))
    for claim, _ in WaitingClaims.of(claims, nodes, expired).to_provision(len(nodes.nodes)):
        reported = _Reported.of(claim, nodes, every, expired)
        if np.any(reported.is_known & (reported.least != reported.most)):
            return True
    return False


def _add(
    uses: dict[str, _Use], claim: PersistentVolumeClaim, counts: Mask, capacity: Column, *, is_shared: bool
) -> None:
    """Add a claim to the use of its class. `is_shared` is true if all claims of the class use the same `capacity`."""
    amount = min(whole_bytes(claim.storage_milli), LARGEST_AMOUNT)
    requested, offered = np.where(counts, amount, 0), np.where(counts, capacity, 0)
    before = uses.get(claim.storage_class)
    if before is not None:
        requested = requested + before.requested
        offered = np.where(counts, offered, before.capacity) if is_shared else offered + before.capacity
        counts = counts | before.counts
    uses[claim.storage_class] = _Use(counts, requested, offered)


class _Reported(NamedTuple):
    """For each node, the smallest and the largest reported capacity, in bytes, that is enough for a claim."""

    least: Column
    most: Column

    @property
    def is_known(self) -> Mask:
        """A mask of the nodes for which a capacity is reported."""
        known: Mask = self.most >= 0
        return known

    @classmethod
    def of(cls, claim: PersistentVolumeClaim, nodes: Snapshot, rows: Rows, expired: Expired) -> "_Reported":
        """Return the capacities for the nodes in `rows`."""
        least = np.full(len(rows), LARGEST_AMOUNT, dtype=np.int64)
        most = np.full(len(rows), -1, dtype=np.int64)
        for places, low, high in _capacities(claim, nodes, rows, expired):
            least[places] = np.minimum(least[places], low)
            most[places] = np.maximum(most[places], high)
        return cls(least, most)


def _capacities(
    claim: PersistentVolumeClaim, nodes: Snapshot, rows: Rows, expired: Expired
) -> Iterator[tuple[Mask | list[int], int, int]]:
    """Yield positions in `rows` with the smallest and the largest capacity that is reported for them.

    Local storage has a topology for each node, so topologies with one label are looked up by its value.
    """
    by_label: dict[str, dict[str, list[int | None]]] = {}
    for each in in_time(enough_capacities(claim, nodes) or (), expired):
        topology = each.topology or ()
        if len(topology) == 1 and topology[0].operator == "In":
            of_value = by_label.setdefault(topology[0].key, {})
            for value in topology[0].values:
                of_value.setdefault(value, []).append(each.capacity_bytes)
            continue
        every = np.ones(len(nodes.nodes), dtype=np.bool_)
        for requirement in topology:
            every &= nodes.labels.matches(*requirement)
        yield every[rows], *_bounds([each.capacity_bytes])
    for key, of_value in by_label.items():
        for place, row in enumerate(in_time(rows.tolist(), expired)):
            found = of_value.get(nodes.nodes[row].node.labels.get(key, ""))
            if found:
                yield [place], *_bounds(found)


def _bounds(capacities: Iterable[int | None]) -> tuple[int, int]:
    """Return the minimum and the maximum of `capacities`. A capacity that is not reported can have any value."""
    known = [(0, LARGEST_AMOUNT) if each is None else (min(each, LARGEST_AMOUNT),) * 2 for each in capacities]
    return min(low for low, _ in known), max(high for _, high in known)
