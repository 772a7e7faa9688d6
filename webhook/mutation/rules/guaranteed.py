"""Guaranteed: set the requests that the QoS class Guaranteed needs."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import Edit
from webhook.mutation.edits.scheduling_edits import SetAmount
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class Guaranteed:
    """Sets missing requests of cpu and memory to the limits, and limits to requests if the policy says so."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return an edit for each amount that follows from another."""
        qos = workload.qos
        if qos is None:
            return "the type asks for no QoS class"
        return [SetAmount(path, value) for path, value in qos.amounts] or "no limit or request to derive from"
