"""Which devices of a slice selectors take, within a budget of steps, and which nodes reach them."""

from collections.abc import Sequence
from dataclasses import dataclass

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

# The most steps that selectors make for one pod, over all devices that no earlier pod has asked about.
_MOST_STEPS = 3_000_000


@dataclass(slots=True)
class Selection:
    """Asks slices which of their devices selectors take, for one pod."""

    expired: Expired
    steps: int = 0

    def taken(self, resource_slice: ResourceSlice, selectors: Selectors) -> Sequence[bool | None]:
        """Return for each device whether `selectors` take it; None: not known. The first that does not decides.

        Raises:
            SearchAbortedError: the selectors take too long.
            DeadlineNearError: `expired()` holds.
        """
        selected: Sequence[bool | None] = [True] * len(resource_slice.devices)
        for expression in selectors:
            if expression is None:
                return [each and None for each in selected]
            if not resource_slice.has_cached(expression):
                # Anybody may write selectors, each of which is to be parsed, and asked about a hundred devices.
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
    """Return those of `nodes` from which devices are reached: their rows or, where there may be many, a mask."""
    if access.node_name:
        row = nodes.rows.get(access.node_name)
        return [] if row is None else [row]
    if access.terms is None or access.all_nodes:
        return np.full(len(nodes.nodes), access.all_nodes)
    return any_matches(access.terms, nodes.labels, nodes.rows)
