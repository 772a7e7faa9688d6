"""The nodes that pass the pre-filters and filters of a profile, and the reasons of the others."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.framework.filtering import named_nodes, pre_filter_rejection, run_filters, run_pre_filters
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile
from webhook.placement.reasons.diagnosis import rejecting_plugins


@dataclass(frozen=True, slots=True)
class NodesThatFit:
    """The nodes that pass every filter, those rejected by reason, and `pre_filter_msg` if that rejects all."""

    feasible: Mask
    reasons: Mapping[str, int]
    pre_filter_msg: str = ""


def find_nodes_that_fit(
    profile: Profile, info: PodInfo, snapshot: Snapshot, expired: Expired, *, ignore_transient: bool = False
) -> NodesThatFit:
    """Return the nodes that pass every filter. A rejected node is counted for the first filter that rejects it.

    With `ignore_transient`, transient rejections of pre-filters are ignored. The nominated node is evaluated first. If
    it passes, no other node is evaluated. If it does not pass, its filter results count even if a pre-filter excludes
    it.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, findNodesThatFitPod and evaluateNominatedNode
    """
    reasons: Counter[str] = Counter()
    feasible = np.ones(len(snapshot.nodes), dtype=np.bool_)
    pre_filtered = run_pre_filters(profile.pre_filters, info, snapshot, ignore_transient=ignore_transient)
    if pre_filtered.reason:
        return NodesThatFit(np.zeros_like(feasible), {}, pre_filtered.reason)
    nominated = snapshot.rows.get(info.nomination.node_name) if info.nomination.node_name else None
    if pre_filtered.node_names is not None:
        feasible = named_nodes(pre_filtered.node_names, snapshot)
        left_out, plugins = ~feasible, frozenset(pre_filtered.plugins)
        if nominated is not None:
            left_out[nominated] = False
            plugins |= rejecting_plugins(profile, info, snapshot, nominated, expired)
        reasons[pre_filter_rejection(plugins, is_disjoint=False)] = int(np.count_nonzero(left_out))
    with_nominated = nodes_with_nominated_pods(info, snapshot, profile.scheduler_names, expired)
    run = partial(run_filters, profile.filters, profile.carry_on, info, snapshot, with_nominated, expired)
    if nominated is not None:
        own = named_nodes(frozenset((info.nomination.node_name,)), snapshot)
        if (alone := run(own, reasons)).any():
            return NodesThatFit(alone, {})
        feasible = feasible & ~own
    feasible = run(feasible, reasons)
    return NodesThatFit(feasible, {reason: count for reason, count in reasons.items() if count})
