"""BatchScheduler: request queue, gang, share of a card and preemptibility in the terms of the pod's scheduler."""

from collections.abc import Sequence

from webhook.documents.text import cut
from webhook.mutation.edits.edits import Edit
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.edits.scheduling_edits import SetField
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class BatchScheduler:
    """Sets the labels, annotations and fields that the backend of the scheduler reads."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return an edit for each field."""
        batch = workload.batch
        if batch.request.is_empty:
            return "no queue, gang or share of a card is requested"
        if not batch.fields:
            return f"scheduler {cut(batch.scheduler, LONGEST_SHOWN)} cannot express what is requested"
        return [SetField(field) for field in batch.fields]
