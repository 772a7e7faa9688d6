"""An allowed pod that fits, for which room is reserved."""

from typing import NamedTuple

from webhook.cluster.node_info import RunningPod
from webhook.cluster.pending_pods import scheduled_content
from webhook.evaluation import as_created
from webhook.kube.field import InvalidInput
from webhook.placement.framework.result import Placement
from webhook.placement.waiting_pods import WaitingPod
from webhook.verdict import ObjectVerdict, Patched, Unchanged, Verdict

# The facts of the running pod, the reservation and their places in the tables.
_ENTRY_BYTES = 8192
# A label key that no other pod has, in the index of running pods.
_LABEL_BYTES = 1024


class Candidate(NamedTuple):
    """What a scheduler reads of the pod, and its placement, whose verdict is Feasible."""

    content: bytes
    pod: WaitingPod
    placement: Placement

    @property
    def size_bytes(self) -> int:
        """Return the upper bound of its memory while it waits."""
        return self.pod.signature.size_bytes + _ENTRY_BYTES + _LABEL_BYTES * len(self.pod.running.labels)


def candidate_of(verdict: Verdict | ObjectVerdict, namespace: str) -> Candidate | None:
    """Return the pod that `verdict` allows in `namespace`; None if it does not fit or cannot be read."""
    if not isinstance(verdict, Patched | Unchanged):
        return None
    placement = verdict.placement.binding
    if placement.verdict != "Feasible":
        return None
    pod = as_created(verdict.pod, namespace)
    content = scheduled_content(pod)
    if verdict.signature is None or not content:
        return None
    try:
        running = RunningPod.of(pod)
    except InvalidInput:
        return None
    return Candidate(content, WaitingPod(verdict.signature, running), placement)
