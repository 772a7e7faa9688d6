"""Priority: give the pod the PriorityClass of its workload type."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import Edit
from webhook.mutation.edits.scheduling_edits import SetPriorityClass
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class Priority:
    """Sets `priorityClassName` if the pod names no class."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return the class, if the workload type names one."""
        name = workload.type.priority_class_name
        if name is None:
            return "the type names no priority class"
        return (SetPriorityClass(name, policy.spec.default_priority_class),)
