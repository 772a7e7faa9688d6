"""The pre-filter and filter steps of a scheduling cycle."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.placement.framework.interface import (
    ALL_NODES,
    Failure,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from webhook.placement.framework.nominated_nodes import NodesWithNominatedPods
from webhook.placement.pod.pod_info import PodInfo


def run_pre_filters(
    pre_filters: Sequence[PreFilterPlugin], pod: PodInfo, nodes: Snapshot, *, ignore_transient: bool
) -> PreFilterResult:
    """Return the nodes that all `pre_filters` name, or the first rejection.

    With `ignore_transient`, continue after a rejection that can disappear without a change of a node.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunPreFilterPlugins
    """
    names: frozenset[str] | None = None
    plugins: list[str] = []
    for plugin in pre_filters:
        result = plugin.pre_filter(pod, nodes)
        if result.reason and not (ignore_transient and result.is_transient):
            return result
        if result.node_names is not None:
            names = result.node_names if names is None else names & result.node_names
            plugins.append(plugin.name)
        if names is not None and not names:
            return PreFilterResult(names, pre_filter_rejection(plugins, is_disjoint=True))
    return ALL_NODES if names is None else PreFilterResult(names, plugins=tuple(plugins))


def pre_filter_rejection(plugins: Collection[str], *, is_disjoint: bool) -> str:
    """Return the reason of a node that the pre-filters of `plugins` exclude.

    `is_disjoint` is true if the plugins name no node in common. Otherwise `plugins` includes the plugin that rejected
    the pod's nominated node, which kube-scheduler evaluates first.

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
    """Return the `candidates` that pass all `filters`, and add the number of failures by reason to `reasons`.

    `carry_on` is the field of the profile: a node that is rejected for one of these reasons is still passed to the next
    filter, and can be counted again. It is None for kube-scheduler. Then the nodes of `with_nominated` must pass both
    with and without their nominated pods.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods
    """
    left = candidates
    carried: Mask | None = None

    def reject(failures: Iterable[Failure]) -> None:
        nonlocal left, carried
        evaluated = left
        for reason, rejected in failures:
            newly_rejected = rejected & evaluated
            if count := int(np.count_nonzero(newly_rejected)):
                reasons[reason] += count
                if carry_on and reason in carry_on:
                    carried = newly_rejected if carried is None else carried | newly_rejected
                else:
                    left = left & ~newly_rejected

    if with_nominated and carry_on is None:
        for plugin in in_time(filters, expired):
            reject(with_nominated.failures(plugin, left))
    for plugin in in_time(filters, expired):
        if failures := plugin.filter(pod, nodes, expired):
            reject(failures)
    return left if carried is None else left & ~carried


def named_nodes(names: frozenset[str], snapshot: Snapshot) -> Mask:
    """Return a mask of the nodes of `snapshot` with one of `names`."""
    named = np.zeros(len(snapshot.nodes), dtype=np.bool_)
    named[[snapshot.rows[name] for name in names if name in snapshot.rows]] = True
    return named
