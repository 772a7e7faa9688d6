"""The devices of a slice that selectors select, within a budget of steps, and the nodes that can access them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, TypeVar

import numpy as np

from webhook.cluster.dra.device import NodeAccess
from webhook.cluster.dra.device_class import Selectors
from webhook.cluster.dra.resource_slice import ResourceSlice
from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import Snapshot
from webhook.kube.cel.expression import compiled
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.placement.dra.step_budget import SearchAbortedError

# The most steps of selectors for one pod, over all devices without a cached result.
_MOST_STEPS = 3_000_000
# The number of cached answers; a change of the device objects clears them.
_MOST_ANSWERS = 64

T = TypeVar("T")


@dataclass(slots=True)
class Selection:
    """Evaluate selectors for one pod."""

    expired: Expired
    steps: int = 0

    def taken(self, resource_slice: ResourceSlice, selectors: Selectors) -> Sequence[bool | None]:
        """Return for each device whether all `selectors` select it, or None if not known. The first mismatch decides.

        Raises:
            SearchAbortedError: the selectors take too long.
        """
        selected: Sequence[bool | None] = [True] * len(resource_slice.devices)
        for expression in selectors:
            if expression is None:
                return [each and None for each in selected]
            if not resource_slice.has_cached(expression):
                # Selectors are user-controlled: each is parsed and evaluated for all devices of the slice.
                if self.expired():
                    raise DeadlineNearError
                self.steps += (1 + compiled(expression).size) * len(resource_slice.devices)
                if self.steps > _MOST_STEPS:
                    raise SearchAbortedError
            answers = resource_slice.matches(expression)
            if all(selected):
                selected = answers
            else:
                selected = [answer if each else each for each, answer in zip(selected, answers, strict=True)]
        return selected


def accessible_nodes(access: NodeAccess, nodes: Snapshot) -> Mask | list[int]:
    """Return the `nodes` that can access the devices: their rows or, if there may be many, a mask."""
    if access.node_name:
        row = nodes.rows.get(access.node_name)
        return [] if row is None else [row]
    if access.terms is None or access.all_nodes:
        return np.full(len(nodes.nodes), access.all_nodes)
    return any_matches(access.terms, nodes.labels, nodes.rows)


def remembered(nodes: Snapshot, key: object, inputs: tuple[object, ...], make: Callable[[], T]) -> T:
    """Return the result of `make`, cached by `key`, the device objects of `nodes` and the objects `inputs`."""
    answers: dict[Any, tuple[tuple[object, ...], T]] = nodes.devices.answers
    answer = answers.get(key)
    if answer is None or not all(map(is_, answer[0], inputs)):
        if len(answers) >= _MOST_ANSWERS:
            answers.clear()
        answer = answers[key] = inputs, make()
    return answer[1]
