"""The reasons why each node cannot take a pod. Every filter runs for every node, so this is not for the hot path."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import Requirement
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.pod.amounts import PODS
from webhook.kube.pod.taints import keeps_away
from webhook.placement.framework.amount_text import amount_text
from webhook.placement.framework.filtering import pre_filter_rejection
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, missing_resource
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile

_MOST_VALUES = 5

NodeToStatus = Mapping[str, tuple[str, ...]]


class Rejection(NamedTuple):
    """The nodes that a plugin rejects for one reason. `step` is the number of the extension point call in the cycle."""

    step: int
    plugin: str
    reason: str
    rejected: Mask


# Returns a more detailed reason for the node in a row, or None if there are no more details.
Describe = Callable[[Rejection, int], str | None]


def rejections(
    profile: Profile, pod: PodInfo, nodes: Snapshot, expired: Expired = never, *, ignore_transient: bool = False
) -> Iterator[Rejection]:
    """Yield all rejections of `nodes` by the pre-filters and filters of `profile`.

    Unlike in a scheduling cycle, a node that one plugin rejects is also evaluated by the other plugins. With
    `ignore_transient`, rejections of pre-filters that can disappear without a change of a node are left out.
    """
    nominated = nodes.rows.get(pod.nomination.node_name)
    named: list[tuple[int, str, frozenset[str]]] = []
    for step, pre_filter in enumerate(profile.pre_filters):
        result = pre_filter.pre_filter(pod, nodes)
        if result.reason and (result.is_summary or (ignore_transient and result.is_transient)):
            continue
        if result.reason:
            every = np.ones(len(nodes.nodes), dtype=np.bool_)
            yield Rejection(step, pre_filter.name, result.reason, every)
        elif result.node_names is not None:
            named.append((step, pre_filter.name, result.node_names))
    rejecting = frozenset[str]()
    if named and nominated is not None:
        rejecting = rejecting_plugins(profile, pod, nodes, nominated, expired)
    for rejection in _pre_filter_rejections(named, nodes, rejecting):
        if nominated is not None:
            rejection.rejected[nominated] = False
        yield rejection
    yield from _filter_rejections(profile, pod, nodes, expired)


def _pre_filter_rejections(
    named: Sequence[tuple[int, str, frozenset[str]]], nodes: Snapshot, rejecting: frozenset[str]
) -> Iterator[Rejection]:
    """Yield the nodes that each pre-filter excludes. `named` are (step, plugin, named nodes) of the pre-filters."""
    if not named:
        return
    is_disjoint = not frozenset.intersection(*(names for _, _, names in named))
    plugins = {plugin for _, plugin, _ in named}
    reason = pre_filter_rejection(plugins if is_disjoint else plugins | rejecting, is_disjoint=is_disjoint)
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


def rejecting_plugins(profile: Profile, pod: PodInfo, nodes: Snapshot, row: int, expired: Expired) -> frozenset[str]:
    """Return the first plugin whose filter rejects the node in `row`, or an empty set if the node can take the pod."""
    names = (each.plugin for each in _filter_rejections(profile, pod, nodes, expired) if each.rejected[row])
    return frozenset(itertools.islice(names, 1))


def explain(profile: Profile, pod: PodInfo, nodes: Snapshot, describe: Describe | None = None) -> NodeToStatus:
    """Return, for each node that cannot take `pod`, all reasons of the first plugin that rejects the node.

    These are the reasons that the scheduler's message counts. `describe` can replace their texts. For a batch
    scheduler, a node can have reasons of several plugins. The reason of a pre-filter that rejects all nodes applies to
    every node. If the pod's nominated node can take it, the nomination is the reason for all other nodes.
    """
    first: dict[int, int] = {}
    reasons: dict[int, list[str]] = {}
    carry_on = profile.carry_on or frozenset()
    for rejection in rejections(profile, pod, nodes):
        text = profile.wording.reason(rejection.reason)
        for row in np.flatnonzero(rejection.rejected).tolist():
            if first.get(row, rejection.step) == rejection.step:
                reasons.setdefault(row, []).append((describe and describe(rejection, row)) or text)
                if rejection.reason not in carry_on:
                    first[row] = rejection.step
    nominated = pod.nomination.node_name
    if nominated in nodes.rows and nodes.rows[nominated] not in reasons:
        others = (info.node.name for info in nodes.nodes if info.node.name != nominated)
        return dict.fromkeys(others, (f"not looked at: the pod is nominated to {nominated}",))
    return {nodes.nodes[row].node.name: tuple(reasons[row]) for row in sorted(reasons)}


def explain_in_detail(profile: Profile, pod: PodInfo, nodes: Snapshot) -> NodeToStatus:
    """Return the reasons of `explain` with details: the taint, the amounts or the label values."""
    return explain(profile, pod, nodes, _NodeDetails(pod, nodes))


class _NodeDetails:
    """Describes the rejections of `pod` by `nodes` in detail, without a change of the decision."""

    def __init__(self, pod: PodInfo, nodes: Snapshot) -> None:
        self._pod, self._nodes = pod, nodes
        self._requests = dict(pod.requests)
        self._matches = cache(nodes.labels.matches)
        self._required = [Requirement(key, "In", (value,)) for key, value in pod.node_selector]
        first, *others = pod.required or (None,)
        if first is not None:
            # A node needs to match only one of several terms, but what all of them contain.
            known = [frozenset(term.expressions) for term in others]
            self._required += [each for each in first.expressions if all(each in term for term in known)]

    def __call__(self, rejection: Rejection, row: int) -> str | None:
        """Return the reason of the node in `row` with its details, or None if there is nothing to add."""
        if rejection.plugin == TaintToleration.name:
            taints = self._nodes.nodes[row].node.taints
            taint = next((each for each in taints if keeps_away(each, self._pod.tolerations)), None)
            return taint and f"untolerated taint {taint.key}{taint.value and f'={taint.value}'}:{taint.effect}"
        if rejection.plugin == NodeAffinity.name:
            return "; ".join(self._unmet(row)) or None
        if rejection.reason == ERR_REASON_TOO_MANY_PODS:
            return self._amounts(PODS, 1, int(self._nodes.load.pods[row]), int(self._nodes.allowed_pods[row]))
        resource = missing_resource(rejection.reason)
        if resource is None or resource not in self._requests:
            return None
        used, offered = (int(each(resource)[row]) for each in (self._nodes.requested, self._nodes.allocatable))
        return self._amounts(resource, self._requests[resource], used, offered)

    @staticmethod
    def _amounts(resource: str, wanted: int, used: int, offered: int) -> str | None:
        """Return a text with the amounts, or None if they do not explain the rejection, such as with nominated pods."""
        free = max(offered - used, 0)
        if free >= wanted:
            return None
        shown = [amount_text(resource, each) for each in (free, offered)]
        held = f"free {shown[0]} of {shown[1]}" if offered else "the node has none"
        return f"wants {amount_text(resource, wanted)} {resource}, {held}"

    def _unmet(self, row: int) -> Iterator[str]:
        """Yield the labels of the node that do not match the requirements that are in all terms of the pod."""
        labels = self._nodes.nodes[row].node.labels
        for each in self._required:
            if not self._matches(*each)[row]:
                values = ", ".join(each.values[:_MOST_VALUES]) + (", …" if len(each.values) > _MOST_VALUES else "")
                wanted = f"{each.key} {each.operator} [{values}]" if each.values else f"{each.key} {each.operator}"
                yield f"wants {wanted}, has {labels.get(each.key) or 'none'}"
