"""The largest free blocks: how many accelerators of one product are free on one node of a pool."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from webhook.cluster.snapshot import Column, Snapshot
from webhook.policy.spec.workloads import Accelerator


@dataclass(frozen=True, slots=True)
class FreeBlock:
    """The largest number of `resource` that is free on one node of `pool` with `product`, and how many `nodes` have it.

    `pool` and `product` are None for nodes without the label.
    """

    pool: str | None
    resource: str
    product: str | None
    cards: int
    nodes: int


def largest_free_blocks(
    snapshot: Snapshot, pool_label: str, accelerators: Iterable[Accelerator]
) -> tuple[FreeBlock, ...]:
    """Return the largest free block of each resource and product of `accelerators` in each pool, in order.

    The pool of a node is its label `pool_label`. Nodes that are unschedulable or that run as many pods as they may have
    nothing free.
    """
    accelerators = tuple(accelerators)
    found: dict[tuple[str | None, str, str | None], Counter[int]] = {}
    for resource in snapshot.allocatable_columns:
        accelerator = accelerator_of(resource, accelerators)
        if accelerator is None:
            continue
        offered, free = snapshot.allocatable(resource), free_amounts(snapshot, resource)
        for row in offered.nonzero()[0].tolist():
            labels = snapshot.nodes[row].node.labels
            kind = (labels.get(pool_label), resource, labels.get(f"{accelerator.card}.product"))
            found.setdefault(kind, Counter())[int(free[row])] += 1
    blocks = [FreeBlock(*kind, max(sizes), sizes[max(sizes)]) for kind, sizes in found.items()]
    return tuple(sorted(blocks, key=lambda each: (each.pool or "", each.resource, each.product or "")))


def free_amounts(snapshot: Snapshot, resource: str) -> Column:
    """Return the free amount of `resource` on each node; none on a node that takes no more pods."""
    free: Column = (snapshot.allocatable(resource) - snapshot.requested(resource)).clip(min=0)
    free[snapshot.unschedulable | (snapshot.load.pods >= snapshot.allowed_pods)] = 0
    return free


def accelerator_of(resource: str, accelerators: Iterable[Accelerator]) -> Accelerator | None:
    """Return the first accelerator that `resource` requests; None if it is another resource."""
    for accelerator in accelerators:
        if any(fnmatchcase(resource, pattern) for pattern in accelerator.resources):
            return accelerator
    return None
