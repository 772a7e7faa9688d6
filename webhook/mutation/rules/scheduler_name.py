"""SchedulerName: the pod goes to the scheduler of its type, or to the one that it asks for."""

from collections.abc import Sequence
from typing import ClassVar

from webhook.mutation.edits import ChooseScheduler, Edit
from webhook.mutation.rule import Skipped
from webhook.mutation.workload import Workload
from webhook.policy.policy import Policy


class SchedulerName:
    """Sets `schedulerName` where the pod still has the default one."""

    name: ClassVar[str] = "SchedulerName"

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | Skipped:  # noqa: ARG004 - the rules' signature
        """The scheduler, if the type or the pod names one."""
        if workload.scheduler is None:
            return Skipped("the type names no scheduler")
        return (ChooseScheduler(workload.scheduler, workload.scheduler_is_asked),)
