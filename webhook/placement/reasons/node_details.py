"""The reason of a node that rejects a pod, with the taint, the amounts or the label values. Not on the hot path."""

from collections.abc import Iterator
from functools import cache

from webhook.cluster.index.node_selector import Requirement
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.amounts import PODS
from webhook.kube.pod.taints import NO_EXECUTE, NO_SCHEDULE, Taint, any_tolerates
from webhook.placement.framework.amount_text import amount_text, rounded_down
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_resources_fit import ERR_REASON_TOO_MANY_PODS, missing_resource
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile
from webhook.placement.reasons.diagnosis import NodeToStatus, Rejection, explain

_MOST_VALUES = 5


def explain_in_detail(profile: Profile, pod: PodInfo, nodes: Snapshot) -> NodeToStatus:
    """Return what `explain` returns, with the taint, the amounts or the label values in place of its words."""
    return explain(profile, pod, nodes, _NodeDetails(pod, nodes))


class _NodeDetails:
    """The details of the rejections of `pod` by `nodes`. Only the text is new: the plugins have decided."""

    def __init__(self, pod: PodInfo, nodes: Snapshot) -> None:
        self._pod, self._nodes = pod, nodes
        self._requests = dict(pod.requests)
        self._matches = cache(nodes.labels.matches)

    def __call__(self, rejection: Rejection, row: int) -> str | None:
        """Return the reason of the node in `row` with its details; None if there is nothing to add."""
        if rejection.plugin == TaintToleration.name:
            taint = next(self._untolerated(row), None)
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

    def _untolerated(self, row: int) -> Iterator[Taint]:
        for taint in self._nodes.nodes[row].node.taints:
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any_tolerates(self._pod.tolerations, taint):
                yield taint

    @staticmethod
    def _amounts(resource: str, wanted: int, used: int, offered: int) -> str | None:
        """Return the amounts; None if they are no reason by themselves, such as beside nominated pods."""
        free = max(offered - used, 0)
        if free >= wanted:
            return None
        shown = [amount_text(resource, rounded_down(resource, each)) for each in (free, offered)]
        held = f"free {shown[0]} of {shown[1]}" if offered else "the node has none"
        return f"wants {amount_text(resource, wanted)} {resource}, {held}"

    def _unmet(self, row: int) -> Iterator[str]:
        """Yield the labels of the node that the pod does not want; none if it has several terms to choose from."""
        required = [Requirement(key, "In", (value,)) for key, value in self._pod.node_selector]
        terms = self._pod.required or ()
        required += terms[0].expressions if len(terms) == 1 else ()
        labels = self._nodes.nodes[row].node.labels
        for each in required:
            if not self._matches(*each)[row]:
                values = ", ".join(each.values[:_MOST_VALUES]) + (", …" if len(each.values) > _MOST_VALUES else "")
                wanted = f"{each.key} {each.operator} [{values}]" if each.values else f"{each.key} {each.operator}"
                yield f"wants {wanted}, has {labels.get(each.key) or 'none'}"
