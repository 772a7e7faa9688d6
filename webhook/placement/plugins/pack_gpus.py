"""PackGpus: prefer the node on which the placement makes the fewest cards unusable for other pods."""

from typing import NamedTuple

import numpy as np

from webhook.cluster.row_log import RowLog
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.framework.interface import MAX_NODE_SCORE
from webhook.placement.packing.fragmentation import Fragmentation, Free, Numbers
from webhook.placement.packing.typical_pods import CardMixes, ExpectedMixes
from webhook.placement.pod.pod_info import PodInfo

# Losses that differ by less are equal: they are sums of floating-point numbers.
_EPSILON = 1e-12


class _Valued(NamedTuple):
    """The cards of one resource: the free cards of each node, and their values."""

    resource: str
    cards: Column
    fragmentation: Fragmentation


class PackGpus:
    """Score by the loss of cards that typical pods can use: fragmentation gradient descent.

    The loss of a node is the expected share, over the mix of typical pods, of the cards that a pod can use before the
    placement but not after it. Cards whose node has too little CPU or memory left are also lost. The loss in the paper
    counts cards; here, cards that only few pods of a kind can still use weigh more. Among equal losses, the node with
    the fewest free cards is best, then the one with the least free CPU.

    This is not a plugin of kube-scheduler. Shares of one card are not modelled.

    Source: Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent,
    USENIX ATC 2023; github.com/hkust-adsl/kubernetes-scheduler-simulator/pkg/simulator/plugin/fgd_score.go and
    pkg/utils/frag.go
    """

    name = "PackGpus"

    def __init__(self, cards: CardMixes) -> None:
        self._mixes = ExpectedMixes(cards)
        # The values for the last snapshot, written in one step: threads share a profile.
        self._last: tuple[tuple[RowLog, int] | None, tuple[_Valued, ...]] = (None, ())

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column | None:
        """Return 100 for the nodes with the smallest loss, up to 99 for others, or None if no node has cards."""
        asked = {name: min(amount, LARGEST_AMOUNT) for name, amount in pod.requests}
        milli_cpu = _free(nodes, CPU)[rows] - asked.get(CPU, 0)
        memory_bytes = _free(nodes, MEMORY)[rows] - asked.get(MEMORY, 0)
        loss = np.zeros(len(rows))
        cards_left = np.zeros(len(rows), dtype=np.int64)
        valued = self._valued(nodes)
        for resource, cards, fragmentation in in_time(valued, expired):
            after = Free(milli_cpu, memory_bytes, cards[rows] - asked.get(resource, 0))
            loss += fragmentation.values[rows] - fragmentation.value(after)
            cards_left += after.cards
        return _scores(loss, cards_left, milli_cpu) if valued else None

    def _valued(self, nodes: Snapshot) -> tuple[_Valued, ...]:
        last, valued = self._last
        state = nodes.state
        if last == state:
            return valued
        found = []
        for resource, mix in self._mixes.of(nodes).items():
            free = Free(_free(nodes, CPU), _free(nodes, MEMORY), _free(nodes, resource))
            found.append(_Valued(resource, free.cards, Fragmentation(mix, free)))
        self._last = (state, tuple(found))
        return self._last[1]


def _free(nodes: Snapshot, resource: str) -> Column:
    free: Column = nodes.allocatable(resource) - nodes.requested(resource)
    return free


def _scores(loss: Numbers, cards_left: Column, milli_cpu_left: Column) -> Column:
    """Return 100 for the nodes with the smallest loss, then the fewest cards left, then the least CPU left."""
    least = loss.min()
    span = max(float(loss.max() - least), _EPSILON)
    # Without the addend, a rounding error would take a point from nodes of equal losses.
    scores: Column = ((MAX_NODE_SCORE - 1) * (1 - (loss - least) / span) + 1e-6).astype(np.int64)
    best = loss - least < _EPSILON
    best &= cards_left == cards_left[best].min()
    best &= milli_cpu_left == milli_cpu_left[best].min()
    scores[best] = MAX_NODE_SCORE
    return scores
