"""Sets of pods of one node whose requests add up to what a pending pod lacks there."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement_planner.capacity.moves import PodToPlace
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.pods.bound_pods import BoundPod
from webhook.kube.pod.amounts import PODS
from webhook.placement.pod.pod_info import PodInfo

Amounts = Mapping[str, int]


class Candidate(NamedTuple):
    """A pod that may be moved, with its replacement.

    `amounts` are the amounts that it frees. `kind` is equal for interchangeable pods.
    """

    move: tuple[BoundPod, PodToPlace]
    amounts: Amounts
    kind: Hashable


def shortage(pod: PodInfo, info: NodeInfo) -> dict[str, int]:
    """Return the amounts that must become free on the node so that `pod` has room, or none if it already has room."""
    allocatable, requested = info.node.allocatable, info.requested
    missing = {
        resource: amount + requested.get(resource, 0) - allocatable.get(resource, 0)
        for resource, amount in pod.requests
    }
    missing[PODS] = len(info.pods) + 1 - info.node.allowed_pods
    return {resource: amount for resource, amount in missing.items() if amount > 0}


def fewest(freeable: Sequence[Amounts], missing: Amounts) -> int | None:
    """Return a lower bound of the pods that free the `missing` amounts, or None if all pods together do not.

    `freeable` are the amounts that each pod frees.
    """
    least = 1
    for resource, amount in missing.items():
        freed = sorted((_freed(each, resource) for each in freeable), reverse=True)
        count = 0
        while amount > 0 and count < len(freed):
            amount -= freed[count]
            count += 1
        if amount > 0:
            return None
        least = max(least, count)
    return least if freeable else None


def sets_of(
    candidates: Sequence[Candidate], missing: Amounts, size: int, step: Callable[[], bool]
) -> Iterator[tuple[Candidate, ...]]:
    """Yield the sets of `size` candidates that free the `missing` amounts, in the order of `candidates`.

    Of sets that differ only in interchangeable pods, only one is yielded. `step()` is called for each partial set; the
    search ends once it returns false.
    """
    resources = tuple(missing)
    most = _largest_from(candidates, resources)

    def extend(start: int, chosen: tuple[Candidate, ...], left: tuple[int, ...]) -> Iterator[tuple[Candidate, ...]]:
        if len(chosen) == size:
            if all(amount <= 0 for amount in left):
                yield chosen
            return
        rest = size - len(chosen)
        tried: set[Hashable] = set()
        for index in range(start, len(candidates) - rest + 1):
            if any(amount > rest * largest for amount, largest in zip(left, most[index], strict=True)):
                return
            each = candidates[index]
            if each.kind in tried:
                continue
            tried.add(each.kind)
            if not step():
                return
            freed = tuple(amount - _freed(each.amounts, name) for amount, name in zip(left, resources, strict=True))
            yield from extend(index + 1, (*chosen, each), freed)

    yield from extend(0, (), tuple(missing.values()))


def _largest_from(candidates: Sequence[Candidate], resources: Sequence[str]) -> list[tuple[int, ...]]:
    """Return, for each position, the largest amount of each resource that any candidate from this position on frees."""
    largest = [0] * len(resources)
    found = []
    for each in reversed(candidates):
        largest = [max(known, _freed(each.amounts, name)) for known, name in zip(largest, resources, strict=True)]
        found.append(tuple(largest))
    return found[::-1]


def _freed(amounts: Amounts, resource: str) -> int:
    return 1 if resource == PODS else amounts.get(resource, 0)
