"""The plugin interface. A method evaluates all nodes at once.

Filter and score methods get `expired`. They iterate over user-controlled lists with `in_time`
(webhook/kube/deadline.py) if each item reads the cluster. `in_time` raises once `expired()` returns true, and the
verdict is then Unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.pod.pod_info import PodInfo

MAX_NODE_SCORE = 100
# kube-scheduler's scores are integers; those of batch schedulers are not.
ScoreColumn: TypeAlias = Column | NDArray[np.float64]


class Failure(NamedTuple):
    """The nodes, as a mask of rows, that a filter rejects for one reason. The reason is kube-scheduler's message."""

    reason: str
    rejected: Mask


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The result of a pre-filter, or of all pre-filters of a profile.

    `node_names` are the only candidates, or None for all nodes. `reason` is the reason why the plugin rejects all
    nodes, or empty if it does not. `is_transient` is true if the rejection can end without a change of a node, such as
    when a claim is bound. `is_summary` is true if the scheduler prints `reason` but the filters have the reason of each
    node. `plugins` are the plugins that named the nodes, if it is the result of all.
    """

    node_names: frozenset[str] | None = None
    reason: str = ""
    is_transient: bool = False
    is_summary: bool = False
    plugins: tuple[str, ...] = ()


ALL_NODES = PreFilterResult()
"""The result of a pre-filter that restricts nothing."""


class Scope(IntEnum):
    """The inputs, besides the pending pod, of a plugin's result for one node.

    For scores, this is the result before normalization.
    """

    FACTS = 0
    """The facts of nodes and of objects other than pods."""
    NODE = 1
    """Also the pods of that node."""
    CLUSTER = 2
    """Also the pods of other nodes."""


class Plugin(Protocol):
    """A plugin with the name of the kube-scheduler plugin that it models.

    A plugin with a narrower `scope` than CLUSTER does not read `inter_pod` of the pending pod. Its results are cached.
    """

    name: str


def scope_of(plugin: Plugin) -> Scope:
    """Return the scope of `plugin`."""
    found: Scope = getattr(plugin, "scope", Scope.CLUSTER)
    return found


def concerns(plugin: Plugin, pod: "PodInfo", nodes: Snapshot) -> bool:
    """Return whether `plugin` can filter or score for `pod`, by its method of this name if it has one."""
    own = getattr(plugin, "concerns", None)
    return own is None or bool(own(pod, nodes))


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """A plugin that restricts the candidates before nodes are filtered."""

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Return the candidates for `pod` among `nodes`."""


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """A plugin that rejects nodes."""

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Iterable[Failure]:
        """Return the `nodes` that cannot take `pod`, by reason. A node may fail for several reasons.

        The caller reads failures one by one, so a plugin with many failures can yield them.
        """


@runtime_checkable
class CrossNodeFilterPlugin(FilterPlugin, Protocol):
    """A filter that may reject a node because of pods on other nodes."""

    def is_relevant(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> bool:
        """Return whether the filter applies to `pod` and `nodes`. If it does not, kube-scheduler skips it."""


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """A plugin that scores the feasible nodes."""

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired) -> ScoreColumn | None:
        """Return the score of each of the feasible `rows` of `nodes`, normalized to 0–MAX_NODE_SCORE, not weighted.

        The result is None if the plugin does not score `pod` on these nodes. Then the plugin is absent from the scores.
        """


class Certainty(NamedTuple):
    """`scores` is true if the scores of a plugin are known, `verdict` if it certainly scores without an error."""

    scores: bool = True
    verdict: bool = True


@runtime_checkable
class UncertainScorePlugin(ScorePlugin, Protocol):
    """A score plugin that reads objects that may not be known."""

    def certainty(self, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Certainty:
        """Return the certainty of the scores of `nodes` for `pod`."""


def default_normalize(scores: Column, *, reverse: bool = False) -> Column:
    """Scale `scores` (at least one, none negative) so that the largest becomes MAX_NODE_SCORE, or 0 with `reverse`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore
    """
    largest = int(scores.max())
    if largest == 0:
        return np.full_like(scores, MAX_NODE_SCORE if reverse else 0)
    scaled = scores * MAX_NODE_SCORE // largest
    return MAX_NODE_SCORE - scaled if reverse else scaled
