"""Which nodes pass every filter, and why others do not."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.interface import Failure, FilterPlugin
from webhook.placement.framework.nominated_nodes import NodesWithNominatedPods
from webhook.placement.pod.pod_info import PodInfo


class Passing(NamedTuple):
    """The `filters` to ask about `pod` on `nodes`; with a `with_nominated`, about its nodes with and without it."""

    filters: Sequence[FilterPlugin]
    pod: PodInfo
    nodes: Snapshot
    with_nominated: NodesWithNominatedPods | None
    expired: Expired

    def among(self, asked: Mask, reasons: Counter[str]) -> Mask:
        """Which of the nodes `asked` for pass every filter; to `reasons` is added why others do not.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        feasible = asked
        if self.with_nominated:
            for plugin in in_time(self.filters, self.expired):
                feasible = _narrowed(feasible, self.with_nominated.failures(plugin, feasible), reasons)
        for plugin in in_time(self.filters, self.expired):
            feasible = _narrowed(feasible, plugin.filter(self.pod, self.nodes, self.expired), reasons)
        return feasible


def _narrowed(feasible: Mask, failures: Iterable[Failure], reasons: Counter[str]) -> Mask:
    left = feasible
    for reason, rejected in failures:
        reasons[reason] += int(np.count_nonzero(rejected & feasible))
        left = left & ~rejected
    return left
