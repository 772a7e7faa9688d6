"""SchedulerName: assign the pod to the scheduler of its workload type or annotation."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import Edit, SetScheduler
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class SchedulerName:
    """Sets `schedulerName` if the pod has the default one."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return the scheduler, if the workload type or the pod names one."""
        if workload.scheduler is None:
            return "the type names no scheduler"
        return (SetScheduler(workload.scheduler, workload.scheduler_is_requested),)
