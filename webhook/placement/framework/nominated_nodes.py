"""Nodes with their nominated pods, which have precedence over a pending pod.

kube-scheduler filters a node with nominated pods twice: with these pods and without them. So a pod does not take room
that is reserved for another pod, and does not depend on a pod that is not bound yet.

Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.placement.framework.interface import CrossNodeFilterPlugin, Failure, FilterPlugin
from webhook.placement.pod.pod_info import PodInfo


class NodesWithNominatedPods:
    """The nodes in `rows` with the nominated pods that have precedence over `pod`."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: Snapshot,
        pods_by_row: Mapping[int, Sequence[RunningPod]],
        expired: Expired,
    ) -> None:
        self._pod = pod
        self._nodes = nodes
        self.pods_by_row = pods_by_row
        self._expired = expired
        self._alone: dict[int, Snapshot] = {}
        self.rows: Mask = np.zeros(len(nodes.nodes), dtype=np.bool_)
        self.rows[list(pods_by_row)] = True

    @cached_property
    def snapshot(self) -> Snapshot:
        """All nodes, with the nominated pods added to their nodes."""
        return with_assumed_pods(self._nodes, self.pods_by_row)

    def failures(self, plugin: FilterPlugin, candidates: Mask) -> Iterable[Failure]:
        """Return the `candidates` with nominated pods that `plugin` rejects.

        For each node, the plugin sees the other nodes without their nominated pods. A plugin that is not relevant
        without nominated pods is skipped, because kube-scheduler decides this before it adds these pods.
        """
        rows = candidates & self.rows
        if not isinstance(plugin, CrossNodeFilterPlugin):
            failures = plugin.filter(self._pod, self.snapshot, self._expired)
            return (Failure(reason, rejected & rows) for reason, rejected in failures)
        if not plugin.is_relevant(self._pod, self._nodes, self._expired):
            return ()
        found: dict[str, Mask] = {}
        for row in in_time(np.flatnonzero(rows).tolist(), self._expired):
            if row not in self._alone:
                self._alone[row] = with_assumed_pods(self._nodes, {row: self.pods_by_row[row]})
            for reason, rejected in plugin.filter(self._pod, self._alone[row], self._expired):
                if rejected[row]:
                    found.setdefault(reason, np.zeros_like(rows))[row] = True
        return [Failure(reason, rejected) for reason, rejected in found.items()]


def nodes_with_nominated_pods(
    pod: PodInfo, nodes: Snapshot, scheduler_names: frozenset[str], expired: Expired = never
) -> NodesWithNominatedPods | None:
    """Return the nodes with nominated pods that have precedence over `pod`, or None if there are none.

    These are other pods of the same or a higher priority that the same kube-scheduler, with profiles for
    `scheduler_names`, binds.
    """
    if not nodes.nominated:
        return None
    found = {
        nodes.rows[name]: kept
        for name, nominated in nodes.nominated.by_node.items()
        if name in nodes.rows and (kept := _with_precedence(pod, nominated, scheduler_names))
    }
    return NodesWithNominatedPods(pod, nodes, found, expired) if found else None


def _with_precedence(
    pod: PodInfo, nominated: Sequence[RunningPod], scheduler_names: frozenset[str]
) -> tuple[RunningPod, ...]:
    own = pod.nomination.scheduler_name
    names = scheduler_names if own in scheduler_names else {own}
    least = pod.preemption.priority or 0
    return tuple(
        each
        for each in nominated
        if each.priority >= least
        and (each.rare.scheduler or DEFAULT_SCHEDULER) in names
        and not pod.nomination.is_of(each)
    )


def with_assumed_pods(nodes: Snapshot, pods_by_row: Mapping[int, Sequence[RunningPod]]) -> Snapshot:
    """Return `nodes` with these nominated pods shown as running."""
    infos = (nodes.nodes[row].with_pods(pods) for row, pods in pods_by_row.items())
    assumed = tuple((row, pod) for row, pods in pods_by_row.items() for pod in pods)
    return replace(updated(nodes, infos, nodes.generation), assumed=assumed)
