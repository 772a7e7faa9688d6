"""Pending pods with a nominated node, on which room is reserved for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cluster.node_info import RunningPod
from webhook.documents.documents import field
from webhook.kube.reader import Reader


def read_nominated_pod(pod: Mapping[str, Any]) -> RunningPod | None:
    """Return the facts of the pending `pod`, a raw API object, as a running pod on its nominated node.

    Return None for a pod without a nominated node.

    A nominated pod counts even while it is being deleted: kube-scheduler's PodTopologySpread leaves out running pods
    that are being deleted, but not nominated ones.

    Raises:
        InvalidInput: a field that is read is malformed; holds every error.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, updateWithPod
    """
    if not field(pod, "status", "nominatedNodeName"):
        return None
    reader = Reader(pod)
    node_name = reader.object("status").text("nominatedNodeName")
    reader.finish()
    return RunningPod.of(pod)._replace(node_name=node_name, is_terminating=False)


@dataclass(frozen=True, slots=True)
class NominatedPods:
    """The nominated pods by node name, including nodes that do not exist.

    `term_keys` are the label keys in the selectors of their pod affinity terms.
    """

    by_node: Mapping[str, tuple[RunningPod, ...]]
    term_keys: frozenset[str]

    @classmethod
    def of(cls, pods: Iterable[RunningPod]) -> "NominatedPods":
        """Return the table of `pods`, which are distinct."""
        by_node: dict[str, list[RunningPod]] = {}
        for each in sorted(pods, key=lambda pod: (pod.namespace, pod.name)):
            by_node.setdefault(each.node_name, []).append(each)
        keys = {
            requirement.key
            for found in by_node.values()
            for each in found
            for term in each.terms
            for requirement in term.selector or ()
        }
        return cls({name: tuple(found) for name, found in by_node.items()}, frozenset(keys))

    def __bool__(self) -> bool:
        return bool(self.by_node)


NO_NOMINATED_PODS = NominatedPods({}, frozenset())
