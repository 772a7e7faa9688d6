"""The free accelerators of a cluster: the largest free block in each pool, and free cards that pods cannot use."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.kube.pod.taints import TEMPORARY_TAINTS
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.packing.fragmentation import Free, fitting_shares
from webhook.placement.packing.typical_pods import ExpectedMixes
from webhook.policy.spec.accelerators import Accelerator


@dataclass(frozen=True, slots=True)
class FreeBlock:
    """The largest free number of `resource` on one node of `pool` with `product`, and the number of `nodes` with it.

    `pool` and `product` are None for nodes without the label.
    """

    pool: str | None
    resource: str
    product: str | None
    cards: int
    nodes: int


def largest_free_blocks(
    snapshot: Snapshot,
    pool_label: str,
    accelerators: Iterable[Accelerator],
    temporary_taints: Collection[str] = TEMPORARY_TAINTS,
) -> tuple[FreeBlock, ...]:
    """Return the largest free block of each resource and product of `accelerators` in each pool, in order.

    The pool of a node is its label `pool_label`. Nodes that are cordoned, not ready, temporarily tainted or at their
    maximum number of pods have nothing free.
    """
    accelerators, is_open = tuple(accelerators), open_nodes(snapshot, temporary_taints)
    found: dict[tuple[str | None, str, str | None], Counter[int]] = {}
    for resource in snapshot.allocatable_columns:
        accelerator = accelerator_of(resource, accelerators)
        if accelerator is None:
            continue
        offered, free = snapshot.allocatable(resource), free_amounts(snapshot, resource, is_open)
        for row in offered.nonzero()[0].tolist():
            labels = snapshot.nodes[row].node.labels
            kind = (labels.get(pool_label), resource, accelerator.product_of(labels))
            found.setdefault(kind, Counter())[int(free[row])] += 1
    blocks = [FreeBlock(*kind, max(sizes), sizes[max(sizes)]) for kind, sizes in found.items()]
    return tuple(sorted(blocks, key=lambda each: (each.pool or "", each.resource, each.product or "")))


def free_amounts(snapshot: Snapshot, resource: str, is_open: Mask) -> Column:
    """Return the free amount of `resource` on each node, or 0 on a node that is not open or accepts no more pods."""
    free: Column = (snapshot.allocatable(resource) - snapshot.requested(resource)).clip(min=0)
    free[~is_open | (snapshot.load.pods >= snapshot.allowed_pods)] = 0
    return free


def accelerator_of(resource: str, accelerators: Iterable[Accelerator]) -> Accelerator | None:
    """Return the first accelerator that `resource` requests, or None if it is another resource."""
    for accelerator in accelerators:
        if any(fnmatchcase(resource, pattern) for pattern in accelerator.resources):
            return accelerator
    return None


NONE = "none"
"""The pool or the product of nodes without the label."""

OTHER = "other"
"""The pool and the product of all that are beyond the limit."""


@dataclass(frozen=True, slots=True)
class FreeCards:
    """The free cards of one `product` in one `pool`.

    `nodes` is the number of nodes by their number of free cards. `unusable` is the mean number of free cards that a
    typical pod of the mix cannot use. `offered` is the number of all cards, free or not. `most` is the largest number
    of cards on one node. `usable` of the `offered` cards are on nodes that accept pods.
    """

    pool: str
    product: str
    nodes: Mapping[int, int]
    unusable: float
    offered: int
    most: int
    usable: int = 0

    @property
    def free(self) -> int:
        """Return the number of free cards."""
        return sum(cards * nodes for cards, nodes in self.nodes.items())

    @property
    def unusable_share(self) -> float:
        """Return the share of the free cards that typical pods cannot use, or 0 if no card is free."""
        # The shares of a mix add up to 1 but for rounding.
        return max(self.unusable / self.free, 0.0) if self.free else 0.0


class FreeCardsByProduct:
    """Counts the free cards of a snapshot.

    `pool_label` is the node label with the pool. `mixes` are the typical pods of each resource. `most` is the maximum
    number of (pool, product); further ones, with the fewest cards, are counted together.

    A typical pod can use all free cards of a node that has enough free CPU, memory and cards for it, and no cards of
    other nodes. This is the definition of fragmentation in Fragmentation Gradient Descent.

    Source: Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent,
    USENIX ATC 2023
    """

    def __init__(
        self,
        pool_label: str,
        accelerators: Iterable[Accelerator],
        mixes: ExpectedMixes,
        most: int = 64,
        temporary_taints: Collection[str] = TEMPORARY_TAINTS,
    ) -> None:
        self._pool_label = pool_label
        self._accelerators = tuple(accelerators)
        self._mixes = mixes
        self._most = most
        self._temporary_taints = temporary_taints

    def of(self, snapshot: Snapshot) -> Sequence[FreeCards]:
        """Return the free cards of each pool and product, in the order of their names.

        For a resource other than the first one of its accelerator, the product is followed by the resource. Nodes that
        are cordoned, not ready, temporarily tainted or at their maximum number of pods have nothing free.
        """
        is_open = open_nodes(snapshot, self._temporary_taints)
        found: dict[tuple[str, str], list[FreeCards]] = {}
        for resource, mix in self._mixes.of(snapshot).items():
            accelerator = accelerator_of(resource, self._accelerators)
            if accelerator is None:
                continue
            milli_cpu, memory_bytes = (snapshot.allocatable(each) - snapshot.requested(each) for each in (CPU, MEMORY))
            free, offered = free_amounts(snapshot, resource, is_open), snapshot.allocatable(resource)
            unusable = free * (1 - fitting_shares(mix, Free(milli_cpu, memory_bytes, free)))
            for kind, rows in self._rows(snapshot, resource, accelerator).items():
                nodes, unused = Counter(free[rows].tolist()), float(unusable[rows].sum())
                of_kind, usable = offered[rows], int(offered[rows][is_open[rows]].sum())
                cards = FreeCards(*kind, nodes, unused, int(of_kind.sum()), int(of_kind.max()), usable)
                found.setdefault(kind, []).append(cards)
        return self._bounded([_joined(kind, parts) for kind, parts in found.items()])

    def _rows(self, snapshot: Snapshot, resource: str, accelerator: Accelerator) -> Mapping[tuple[str, str], list[int]]:
        suffix = "" if fnmatchcase(resource, accelerator.resources[0]) else f" {resource}"
        rows: dict[tuple[str, str], list[int]] = {}
        for row in np.flatnonzero(snapshot.allocatable(resource)).tolist():
            labels = snapshot.nodes[row].node.labels
            kind = (labels.get(self._pool_label) or NONE, (accelerator.product_of(labels) or NONE) + suffix)
            rows.setdefault(kind, []).append(row)
        return rows

    def _bounded(self, found: list[FreeCards]) -> Sequence[FreeCards]:
        if len(found) > self._most:
            found.sort(key=lambda each: (-each.offered, each.pool, each.product))
            kept, rest = found[: self._most], found[self._most :]
            found = [*kept, _joined((OTHER, OTHER), rest)]
        return sorted(found, key=lambda each: (each.pool, each.product))


def _joined(kind: tuple[str, str], parts: Sequence[FreeCards]) -> FreeCards:
    nodes: Counter[int] = Counter()
    for part in parts:
        nodes.update(part.nodes)
    unusable = sum(part.unusable for part in parts)
    offered, usable = sum(part.offered for part in parts), sum(part.usable for part in parts)
    return FreeCards(*kind, nodes, unusable, offered, max(part.most for part in parts), usable)
