"""The pre-filter and filter steps of a scheduling cycle."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.interface import Failure, FilterPlugin, PreFilterPlugin
from webhook.placement.framework.nominated_nodes import NodesWithNominatedPods
from webhook.placement.pod.pod_info import PodInfo


class PreFilterOutcome(NamedTuple):
    """The result of all pre-filters.

    `node_names` are the only candidates, None for all nodes, and `plugins` named them. `reason` is that of a plugin
    that rejects every node.
    """

    node_names: frozenset[str] | None
    plugins: Sequence[str]
    reason: str = ""


def run_pre_filters(
    pre_filters: Sequence[PreFilterPlugin], pod: PodInfo, nodes: Snapshot, *, ignore_transient: bool
) -> PreFilterOutcome:
    """Return the nodes that all `pre_filters` name.

    `ignore_transient`: continue after a rejection that can disappear without a change of a node.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunPreFilterPlugins
    """
    names: frozenset[str] | None = None
    plugins: list[str] = []
    for plugin in pre_filters:
        result = plugin.pre_filter(pod, nodes)
        if result.reason and not (ignore_transient and result.is_transient):
            return PreFilterOutcome(names, plugins, result.reason)
        if result.node_names is not None:
            names = result.node_names if names is None else names & result.node_names
            plugins.append(plugin.name)
        if names is not None and not names:
            return PreFilterOutcome(names, plugins, pre_filter_rejection(plugins, is_disjoint=True))
    return PreFilterOutcome(names, plugins)


def pre_filter_rejection(plugins: Collection[str], *, is_disjoint: bool) -> str:
    """Return the reason of a node that the pre-filters of `plugins` exclude.

    `is_disjoint`: the plugins name no node in common. Otherwise `plugins` includes the plugin that rejected the pod's
    nominated node, which kube-scheduler evaluates first.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, findNodesThatFitPod, and framework/runtime/framework.go,
    RunPreFilterPlugins
    """
    listed = f"[{' '.join(sorted(plugins))}]"
    if not is_disjoint:
        return f"node(s) didn't satisfy plugin(s) {listed}"
    if len(plugins) > 1:
        return f"node(s) didn't satisfy plugin(s) {listed} simultaneously"
    return f"node(s) didn't satisfy plugin {next(iter(plugins))}"


def run_filters(
    filters: Sequence[FilterPlugin],
    carry_on: frozenset[str] | None,
    pod: PodInfo,
    nodes: Snapshot,
    with_nominated: NodesWithNominatedPods | None,
    expired: Expired,
    candidates: Mask,
    reasons: Counter[str],
) -> Mask:
    """Return the `candidates` that pass all `filters`; add to `reasons` how many of them fail for each reason.

    The nodes of `with_nominated` must pass with their nominated pods and without them. `carry_on` is that of a profile.

    Raises:
        DeadlineNearError: `expired()` holds.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods
    """
    if carry_on is not None:
        return _adding_up(filters, carry_on, pod, nodes, expired, candidates, reasons)
    feasible = candidates
    if with_nominated:
        for plugin in in_time(filters, expired):
            feasible = _without_rejected(feasible, with_nominated.failures(plugin, feasible), reasons)
    for plugin in in_time(filters, expired):
        if failures := plugin.filter(pod, nodes, expired):
            feasible = _without_rejected(feasible, failures, reasons)
    return feasible


def _without_rejected(feasible: Mask, failures: Iterable[Failure], reasons: Counter[str]) -> Mask:
    left = feasible
    for reason, rejected in failures:
        newly_rejected = rejected & feasible
        if count := int(np.count_nonzero(newly_rejected)):
            reasons[reason] += count
            left = left & ~newly_rejected
    return left


def _adding_up(
    filters: Sequence[FilterPlugin],
    carry_on: frozenset[str],
    pod: PodInfo,
    nodes: Snapshot,
    expired: Expired,
    candidates: Mask,
    reasons: Counter[str],
) -> Mask:
    """Return the `candidates` that pass all `filters`, of a scheduler that can count a node for several of them.

    A node that is rejected for a reason in `carry_on` is given to the next filter all the same.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    feasible = evaluated = candidates
    for plugin in in_time(filters, expired):
        left = evaluated
        for reason, rejected in plugin.filter(pod, nodes, expired):
            newly_rejected = rejected & evaluated
            if count := int(np.count_nonzero(newly_rejected)):
                reasons[reason] += count
                feasible = feasible & ~newly_rejected
                left = left if reason in carry_on else left & ~newly_rejected
        evaluated = left
    return feasible


def named_nodes(names: frozenset[str], snapshot: Snapshot) -> Mask:
    """Return a mask of the nodes of `snapshot` with one of `names`."""
    named = np.zeros(len(snapshot.nodes), dtype=np.bool_)
    named[[snapshot.rows[name] for name in names if name in snapshot.rows]] = True
    return named
