"""Why each node cannot take a pod: every filter asked about every node, off the hot path."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from webhook.cluster.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.placement.pod_info import PodInfo
from webhook.placement.profile import Profile

Reasons = Mapping[str, tuple[str, ...]]


class Rejection(NamedTuple):
    """The nodes that a plugin rejects for one reason; `step` counts its extension points through the cycle."""

    step: int
    plugin: str
    reason: str
    rejected: Mask


def rejections(profile: Profile, pod: PodInfo, nodes: Snapshot) -> Iterator[Rejection]:
    """Whatever a pre-filter or filter of `profile` has against one of `nodes`.

    Unlike in a scheduling cycle, a node that one plugin rejects is shown to the others too.
    """
    for step, pre_filter in enumerate(profile.pre_filters):
        preselection = pre_filter.pre_filter(pod, nodes)
        rejected = np.ones(len(nodes.nodes), dtype=np.bool_)
        if preselection.refusal:
            yield Rejection(step, pre_filter.name, preselection.refusal, rejected)
        elif preselection.node_names is not None:
            rejected[[nodes.rows[name] for name in preselection.node_names if name in nodes.rows]] = False
            yield Rejection(step, pre_filter.name, not_preselected(pre_filter.name), rejected)
    for step, plugin in enumerate(profile.filters, len(profile.pre_filters)):
        for reason, rejected in plugin.filter(pod, nodes):
            yield Rejection(step, plugin.name, reason, rejected)


def not_preselected(plugin: str) -> str:
    """The reason of a node that the pre-filter of `plugin` left out.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, findNodesThatFitPod
    """
    return f"node(s) didn't satisfy plugin(s) [{plugin}]"


def explain(profile: Profile, pod: PodInfo, nodes: Snapshot) -> Reasons:
    """For each node that cannot take `pod`, why: all reasons of the first plugin that rejects it.

    These are the reasons that kube-scheduler's message counts. A pre-filter's refusal is the reason of every node.
    """
    first: dict[int, int] = {}
    reasons: dict[int, list[str]] = {}
    for step, _, reason, rejected in rejections(profile, pod, nodes):
        for row in np.flatnonzero(rejected).tolist():
            if first.setdefault(row, step) == step:
                reasons.setdefault(row, []).append(reason)
    return {nodes.nodes[row].node.name: tuple(reasons[row]) for row in sorted(reasons)}
