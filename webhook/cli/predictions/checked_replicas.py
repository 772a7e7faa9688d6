"""The result of `check` for the pods of one template, as text and as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from webhook.backends.references import GangRequest
from webhook.cli.inputs.pending import NOTHING_RESERVED, Reserved
from webhook.cli.inputs.workloads import Workload
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError
from webhook.documents.listing import some
from webhook.kube.pod.qos import qos_class
from webhook.placement.framework.result import Placement, to_check_json
from webhook.placement.reasons.diagnosis import NodeToStatus
from webhook.placement.reasons.gang_request import partial_start, partial_start_of_object
from webhook.placement.replicas.replicas import Replicas


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for the pods of one template. It is that of the first pod that does not fit, or else of the first pod.

    `refusal` is the message of a denied pod, and `bypass` the reason why the webhook bypasses a pod. `faults` are the
    errors of a pod that the API server would reject. `replicas` is None for a pod that was not evaluated. `reasons` are
    the reasons of each node that cannot take the pod. `reserved` are the pending pods before the pod. `without_pods`
    are the nodes that could take a waiting pod if no pod were running, and `without_pending` those that could take it
    without the pending pods before it. `replaced` is the number of running pods of the object, which count as gone.
    `gang` is the gang of pods that must run together. `first` is the first pod as it was placed. `evictions` are lines
    about the pods that kube-scheduler would evict for it; `preemption_note` is a note about evictions that are not
    predicted. `overdue` are lines about pods that should have ended. `completed_by` are the objects from which the API
    server adds fields to the pod.
    """

    workload: Workload
    placement: Placement
    replicas: Replicas | None = None
    reasons: NodeToStatus = field(default_factory=dict)
    without_pods: tuple[str, ...] = ()
    without_pending: tuple[str, ...] = ()
    reserved: Reserved = NOTHING_RESERVED
    refusal: str = ""
    bypass: str = ""
    faults: tuple[FieldError, ...] = ()
    replaced: int = 0
    gang: GangRequest | None = None
    first: JsonObject | None = None
    evictions: tuple[str, ...] = ()
    preemption_note: str = ""
    overdue: tuple[str, ...] = ()
    completed_by: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return the verdict, Refused or Invalid."""
        if self.faults:
            return "Invalid"
        return "Refused" if self.refusal else self.placement.verdict

    @property
    def replicas_text(self) -> str:
        """Return a text with the object, the number of its pods that fit, and their nodes, or "" for a Pod."""
        title, pods, found = self.workload.title, self.workload.pods, self.replicas
        if not title or found is None:
            return title
        if pods and pods.replicas is None:
            return f"{title}: a pod on each node"
        nodes = sorted(found.nodes.items(), key=lambda item: (-item[1], item[0]))
        shown = some([f"{count} on {node}" for node, count in nodes], noun="nodes")
        remarks = [f"no pods are created while {pods.suspended} is set"] if pods and pods.suspended else []
        if self.replaced:
            noun = "pod of the object counts" if self.replaced == 1 else "pods of the object count"
            remarks.append(f"the {self.replaced} running {noun} as gone")
        return "; ".join([f"{title}: {found.text}" + (f" ({shown})" if shown else ""), *remarks])

    @property
    def nodes_by_reasons(self) -> dict[str, list[str]]:
        """Return the nodes that cannot take the pod by their joined reasons. The reasons of most nodes come first."""
        return _inverted((name, "; ".join(every)) for name, every in self.reasons.items())

    @property
    def nodes_for(self) -> str:
        """Return a text that names the replica for which the scores and reasons were computed, or "" for a Pod."""
        found = self.replicas
        if found is None or found.asked == 1 or not (self.placement.scores or self.reasons):
            return ""
        is_first = found.stopped is None or not found.placed
        return "nodes for the first replica:" if is_first else f"nodes for the next replica, after {found.placed}:"

    @property
    def qos_class(self) -> str | None:
        """Return the QoS class of the first pod, or None if it was not evaluated."""
        return None if self.first is None else qos_class(self.first)

    @property
    def gang_lines(self) -> list[str]:
        """Return lines about the gang: the count of pods that fit, unless the message has it, and the consequence."""
        gang, fit = self.gang, self.placement.gang
        if gang is None or fit is None:
            return []
        is_object = bool(self.workload.owner)
        partial = partial_start_of_object(gang, fit) if is_object else "".join(partial_start(gang, self.placement))
        count = [] if fit.next_message else [f"{fit.text[:1].upper()}{fit.text[1:]}"]
        return [*count, partial] if partial else count

    def to_json(self) -> dict[str, Any]:
        """Return the line of the pods in `check -o json`; for an object with its name and the count of replicas."""
        line = to_check_json(self.workload.name, self.placement)
        reasons = ((node, each) for node, every in self.reasons.items() for each in every)
        line["nodes"]["reasons"] = _inverted(reasons)
        line |= {"verdict": self.verdict, "qosClass": self.qos_class, **self.workload.policy_json}
        if self.reserved:
            line |= {"reserved": self.reserved.to_json()}
        if self.preemption_note:
            line |= {"preemptionNote": self.preemption_note}
        if self.overdue:
            line |= {"overdue": [*self.overdue]}
        if self.completed_by:
            line |= {"added": [*self.completed_by]}
        if not self.workload.owner:
            return line
        pods, found = self.workload.pods, self.replicas
        return line | {
            "object": self.workload.owner,
            "role": pods.role if pods else "",
            "replicas": pods.replicas if pods else None,
            "fits": found.placed if found and pods and pods.replicas is not None else None,
            "isComplete": found is not None and found.is_complete,
            "suspended": pods is not None and bool(pods.suspended),
            "replaced": self.replaced,
            "replicasByNode": dict(found.nodes) if found else {},
        }


def _inverted(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the nodes by reason, the reason with the most nodes first. `pairs` are (node, reason)."""
    found: dict[str, list[str]] = {}
    for node, reason in sorted(pairs):
        found.setdefault(reason, []).append(node)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))
