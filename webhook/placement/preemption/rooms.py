"""Check whether a pod fits on nodes without some of the pods that run there.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Rows
from webhook.kube.deadline import in_time
from webhook.kube.pod.volumes import NO_VOLUMES
from webhook.placement.framework.interface import Failure
from webhook.placement.plugins.inter_pod_affinity import ERR_REASON_AFFINITY
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit
from webhook.placement.preemption.demands import Demand, Demands, Question
from webhook.placement.preemption.lower_pods import LowerPods


class Rooms:
    """The nodes in `rows` without their `lower` pods, which can be put back one by one.

    `fits` are the nodes that can take the pod then; `reasons` counts the reasons of the others.
    """

    def __init__(
        self, question: Question, rows: Sequence[int], shuffle: Callable[[list[Any]], None] | None = None
    ) -> None:
        self.expired = question.expired
        self.lower = LowerPods(question.snapshot, rows, question.priority, shuffle)
        self.names = [question.snapshot.nodes[row].node.name for row in rows]
        self.fits, self.reasons = np.ones(len(rows), dtype=np.bool_), Counter[str]()
        self._left: list[Column] = []
        self._used: list[Column] = []
        demands = Demands(question, rows, self.lower)
        for plugin in in_time(question.filters, question.expired):
            before = self.fits.copy()
            for each in demands.of(plugin):
                rejected = self._demand(each) if isinstance(each, Demand) else each.rejected
                # kube-scheduler names all amounts that are missing, but only the first reason of other filters.
                self._reject(
                    Failure(each.reason, rejected), before if isinstance(plugin, NodeResourcesFit) else self.fits
                )
        self._reject(Failure(ERR_REASON_AFFINITY, demands.needs_nominated), self.fits)
        # For each demand, a value for each node or pod.
        self.left: Column = np.array(self._left, dtype=np.int64).reshape(-1, len(rows))
        self.used: Column = np.array(self._used, dtype=np.int64).reshape(-1, len(self.lower.pods))
        self._volumes = demands.volumes
        # The pods whose volumes can exceed a limit of their node, and those that share one with the pending pod.
        self.has_volumes = np.zeros(len(self.lower.pods), dtype=np.bool_)
        self.shares_volumes = self.has_volumes.copy()
        for node, room in in_time(self._volumes.items(), self.expired):
            for at in np.flatnonzero(self.lower.node_of == node).tolist():
                self.has_volumes[at] = self.lower.pods[at].volumes is not NO_VOLUMES
                self.shares_volumes[at] = room.is_shared_by(self.lower.pods[at])

    def _demand(self, demand: Demand) -> Mask:
        """Return the nodes that reject the pod even without the lower pods, and keep the demand of the others."""
        is_short: Mask = demand.more < 0
        if not is_short.any():
            return is_short
        lower = self.lower
        # On other nodes, all pods can stay.
        used = np.where(is_short[lower.node_of], demand.used(), 0)
        left = np.where(is_short, demand.more + lower.on_nodes(used), LARGEST_AMOUNT)
        self._left.append(left)
        self._used.append(used)
        rejected: Mask = left < 0
        return rejected

    def _reject(self, failure: Failure, among: Mask) -> None:
        rejected = failure.rejected & among
        if count := int(np.count_nonzero(rejected)):
            self.reasons[failure.reason] += count
            self.fits = self.fits & ~rejected

    def staying(self, places: Rows, order_of: Rows, nodes: Rows, left: Column) -> Mask:
        """Return whether each pod stays: it is put back, and the pending pod still fits.

        `places` are the places of the pods among the lower ones, order by order; `order_of` is the number of the order
        for each. For each order, `nodes` is the number of the node, and `left` what is left of each demand.
        """
        used = self.used.take(places, axis=1)
        # The others never stay.
        fits_alone: Mask = np.all(used <= left.take(order_of, axis=1), axis=0)
        used *= fits_alone
        bounds = np.searchsorted(order_of, np.arange(len(nodes) + 1))
        if self._volumes:
            stays = np.zeros_like(fits_alone)
        else:
            # All pods before the first that does not fit stay, which are most.
            before = total(used)
            limit = (left + before[:, bounds[:-1]]).take(order_of, axis=1)
            stays = fits_alone & np.all(before[:, 1:] <= limit, axis=0)
            kept = total(used * stays)
            left = left - kept[:, bounds[1:]] + kept[:, bounds[:-1]]
        others = np.flatnonzero(fits_alone & ~stays)
        fits_alone = np.all(used.take(others, axis=1) <= left.take(order_of[others], axis=1), axis=0)
        others = others[fits_alone]
        if len(others):
            stays[others] = self._staying_in_turn(places[others], order_of[others], nodes, left)
        return stays

    def _staying_in_turn(self, places: Rows, order_of: Rows, nodes: Rows, left: Column) -> Mask:
        sizes = np.bincount(order_of, minlength=len(nodes))
        position = np.arange(len(places)) - (np.cumsum(sizes) - sizes)[order_of]
        used = np.zeros((int(sizes.max()), len(self.used), len(nodes)), dtype=np.int64)
        used[position, :, order_of] = self.used.take(places, axis=1).T
        with_volumes = np.flatnonzero(self.has_volumes[places])
        rooms = {order: self._volumes[int(nodes[order])].copy() for order in np.unique(order_of[with_volumes]).tolist()}
        pods_at: dict[int, list[tuple[int, RunningPod]]] = {}
        for at in with_volumes.tolist():
            pods_at.setdefault(int(position[at]), []).append((int(order_of[at]), self.lower.pods[places[at]]))
        fits = np.empty((len(used), len(nodes)), dtype=np.bool_)
        for at in in_time(range(len(fits)), self.expired):
            fitting: Mask = (used[at] <= left).all(axis=0)
            for order, pod in pods_at.get(at, ()):
                if fitting[order] and rooms[order].is_exceeded((pod,)):
                    fitting[order] = False
                elif fitting[order]:
                    rooms[order].add(pod)
            left = left - used[at] * fitting
            fits[at] = fitting
        found: Mask = fits[position, order_of]
        return found

    def deciding(self) -> Mask:
        """Return the pods that stay only if other lower pods leave room.

        The other pods stay in every order, or in none.
        """
        left = self.left.take(self.lower.node_of, axis=1)
        decides: Mask = np.any(self.used > 0, axis=0) & np.all(self.used <= left, axis=0)
        return decides | self.has_volumes


def total(used: Column) -> Column:
    """Return the sum of each row of `used` before each pod, and that of all pods."""
    found = np.zeros((len(used), used.shape[1] + 1), dtype=np.int64)
    np.cumsum(used, axis=1, out=found[:, 1:])
    return found
