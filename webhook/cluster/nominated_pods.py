"""The pods that wait for a node which is kept for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.cluster.node_info import RunningPod
from webhook.kube.documents import field
from webhook.kube.reader import Reader
from webhook.kube.wellknown import DEFAULT_SCHEDULER, ENDED_PHASES


@dataclass(frozen=True, slots=True)
class NominatedPod:
    """What a pod will take of the node that it is nominated to, `pod.node_name`, and which scheduler is to bind it."""

    pod: RunningPod
    scheduler_name: str

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "NominatedPod":
        """What `pod`, a raw object of the API of which `is_nominated` holds, will take.

        It counts as staying even while it is being deleted: kube-scheduler's PodTopologySpread leaves out running pods
        that are being deleted, but no nominated ones.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/filtering.go, updateWithPod
        """
        reader = Reader()
        spec, status = reader.object(pod.get("spec"), "spec"), reader.object(pod.get("status"), "status")
        node_name = reader.text(status.get("nominatedNodeName"), "status.nominatedNodeName")
        scheduler_name = reader.text(spec.get("schedulerName"), "spec.schedulerName") or DEFAULT_SCHEDULER
        reader.finish()
        return cls(replace(RunningPod.of(pod), node_name=node_name, is_terminating=False), scheduler_name)


@dataclass(frozen=True, slots=True)
class NominatedPods:
    """The nominated pods by the name of the node, whether or not there is such a node.

    `term_keys` are the labels that the selectors of their own pod affinity terms read.
    """

    by_node: Mapping[str, tuple[NominatedPod, ...]]
    term_keys: frozenset[str]

    @classmethod
    def of(cls, pods: Iterable[NominatedPod]) -> "NominatedPods":
        """Those pods, which are distinct."""
        by_node: dict[str, list[NominatedPod]] = {}
        for each in sorted(pods, key=lambda nominated: (nominated.pod.namespace, nominated.pod.name)):
            by_node.setdefault(each.pod.node_name, []).append(each)
        keys = {
            requirement.key
            for found in by_node.values()
            for each in found
            for term in each.pod.terms
            for requirement in term.selector or ()
        }
        return cls({name: tuple(found) for name, found in by_node.items()}, frozenset(keys))

    def __bool__(self) -> bool:
        return bool(self.by_node)


NO_NOMINATED_PODS = NominatedPods({}, frozenset())


def is_nominated(pod: Mapping[str, Any]) -> bool:
    """Whether `pod`, a raw object of the API, waits for a node and names the one that is kept for it."""
    if not field(pod, "status", "nominatedNodeName") or field(pod, "spec", "nodeName"):
        return False
    return field(pod, "status", "phase") not in ENDED_PHASES
