"""Why each node cannot take a pod: every filter asked about every node, off the hot path."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.placement.framework.filtering import pre_filter_rejection
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profile import Profile

NodeToStatus = Mapping[str, tuple[str, ...]]


class Rejection(NamedTuple):
    """The nodes that a plugin rejects for one reason; `step` counts its extension points through the cycle."""

    step: int
    plugin: str
    reason: str
    rejected: Mask


def rejections(profile: Profile, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[Rejection]:
    """Whatever a pre-filter or filter of `profile` has against one of `nodes`.

    Unlike in a scheduling cycle, a node that one plugin rejects is shown to the others too.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    nominated = nodes.rows.get(pod.nomination.node_name)
    named: list[tuple[int, str, frozenset[str]]] = []
    for step, pre_filter in enumerate(profile.pre_filters):
        preselection = pre_filter.pre_filter(pod, nodes)
        if preselection.refusal:
            every = np.ones(len(nodes.nodes), dtype=np.bool_)
            yield Rejection(step, pre_filter.name, preselection.refusal, every)
        elif preselection.node_names is not None:
            named.append((step, pre_filter.name, preselection.node_names))
    against = frozenset[str]()
    if named and nominated is not None:
        against = plugins_against(profile, pod, nodes, nominated, expired)
    for rejection in _outside(named, nodes, against):
        if nominated is not None:
            rejection.rejected[nominated] = False
        yield rejection
    yield from _filter_rejections(profile, pod, nodes, expired)


def _outside(
    named: Sequence[tuple[int, str, frozenset[str]]], nodes: Snapshot, against: frozenset[str]
) -> Iterator[Rejection]:
    """The nodes that are not among those that a pre-filter has `named`, by its step and plugin."""
    if not named:
        return
    leaves_none = not frozenset.intersection(*(names for _, _, names in named))
    plugins = {plugin for _, plugin, _ in named}
    reason = pre_filter_rejection(plugins if leaves_none else plugins | against, leaves_none=leaves_none)
    for step, plugin, names in named:
        rejected = np.ones(len(nodes.nodes), dtype=np.bool_)
        rejected[[nodes.rows[name] for name in names if name in nodes.rows]] = False
        yield Rejection(step, plugin, reason, rejected)


def _filter_rejections(profile: Profile, pod: PodInfo, nodes: Snapshot, expired: Expired) -> Iterator[Rejection]:
    first_pass = len(profile.pre_filters)
    with_nominated = nodes_with_nominated_pods(pod, nodes, profile.scheduler_names, expired)
    if with_nominated:
        for step, plugin in enumerate(in_time(profile.filters, expired), first_pass):
            for reason, rejected in with_nominated.failures(plugin, with_nominated.rows):
                yield Rejection(step, plugin.name, reason, rejected)
    for step, plugin in enumerate(in_time(profile.filters, expired), first_pass + len(profile.filters)):
        for reason, rejected in plugin.filter(pod, nodes, expired):
            yield Rejection(step, plugin.name, reason, rejected)


def plugins_against(profile: Profile, pod: PodInfo, nodes: Snapshot, row: int, expired: Expired) -> frozenset[str]:
    """The first plugin whose filter rejects the node in `row`; none if that can take the pod.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    against = (each.plugin for each in _filter_rejections(profile, pod, nodes, expired) if each.rejected[row])
    return frozenset(itertools.islice(against, 1))


def explain(profile: Profile, pod: PodInfo, nodes: Snapshot) -> NodeToStatus:
    """For each node that cannot take `pod`, why: all reasons of the first plugin that rejects it.

    These are the reasons that kube-scheduler's message counts. A pre-filter's refusal is the reason of every node. If
    the node that the pod is nominated to can take it, that is the reason of all the others.
    """
    first: dict[int, int] = {}
    reasons: dict[int, list[str]] = {}
    for step, _, reason, rejected in rejections(profile, pod, nodes):
        for row in np.flatnonzero(rejected).tolist():
            if first.setdefault(row, step) == step:
                reasons.setdefault(row, []).append(reason)
    nominated = pod.nomination.node_name
    if nominated in nodes.rows and nodes.rows[nominated] not in reasons:
        others = (info.node.name for info in nodes.nodes if info.node.name != nominated)
        return dict.fromkeys(others, (f"not looked at: the pod is nominated to {nominated}",))
    return {nodes.nodes[row].node.name: tuple(reasons[row]) for row in sorted(reasons)}
