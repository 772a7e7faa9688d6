"""The contract of a plugin: what it gets, and what it answers for all nodes at once.

A plugin that filters or scores is given `expired`, too. Where a pod can have any number of something, and each costs a
look at the cluster, it goes through them by `in_time` (webhook/kube/deadline.py), which raises once `expired()`
holds: the answer is then Unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.pod.pod_info import PodInfo

MAX_NODE_SCORE = 100


class Failure(NamedTuple):
    """The nodes, row by row, that a filter rejects for one reason, worded as kube-scheduler words it."""

    reason: str
    rejected: Mask


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """What a plugin knows of the nodes before it has seen one.

    `node_names`: the only nodes in question; None: all are. `reason`: why no node at all is; empty: some may be.
    `is_transient`: the reason goes away without any node's doing, as when a claim of the pod comes to be bound.
    """

    node_names: frozenset[str] | None = None
    reason: str = ""
    is_transient: bool = False


class Plugin(Protocol):
    """Has the name of the kube-scheduler plugin that it follows."""

    name: str


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps pods out of the scheduling queue."""

    def pre_enqueue(self, pod: PodInfo) -> str:
        """Why `pod` does not enter the scheduling queue; empty: it does."""


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Narrows the nodes down before any is looked at."""

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Which of `nodes` are in question for `pod`."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Rejects nodes."""

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Iterable[Failure]:
        """Which of `nodes` cannot take `pod`, by reason; a node may fail for several. Empty where all can.

        Failures are looked at one by one, so a plugin that may have many need not make them all at once.
        """


@runtime_checkable
class CrossNodeFilterPlugin(FilterPlugin, Protocol):
    """A filter that may reject a node for pods that run on another."""

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> bool:
        """Whether it has anything to ask about `pod` and `nodes`: where not, kube-scheduler skips it in Filter.

        Raises:
            DeadlineNearError: `expired()` holds.
        """


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Ranks the nodes that passed every filter."""

    def skips(self, pod: PodInfo) -> bool:
        """Whether it has nothing to say about `pod`, and is absent from the scores."""

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired) -> Column | None:
        """The score of each of the feasible `rows` of `nodes`, normalized to 0–MAX_NODE_SCORE, not yet weighted.

        None where on these nodes it has nothing to say about `pod`, and is absent from the scores.
        """


class Certainty(NamedTuple):
    """Whether the `scores` of a plugin are known; `verdict`: whether kube-scheduler gets as far as to score."""

    scores: bool = True
    verdict: bool = True


@runtime_checkable
class UncertainScorePlugin(ScorePlugin, Protocol):
    """Ranks nodes by something that may not be known."""

    def certainty(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Certainty:
        """Return how certain the scores of `nodes` for `pod` are.

        Raises:
            DeadlineNearError: `expired()` holds.
        """


def default_normalize(scores: Column, *, reverse: bool = False) -> Column:
    """`scores` (none negative, at least one) scaled such that the largest becomes MAX_NODE_SCORE, or 0 in `reverse`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore
    """
    largest = int(scores.max())
    if largest == 0:
        return np.full_like(scores, MAX_NODE_SCORE if reverse else 0)
    scaled = scores * MAX_NODE_SCORE // largest
    return MAX_NODE_SCORE - scaled if reverse else scaled
