"""The interface of a mutation rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from webhook.mutation.edits.edits import Edit
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Skipped:
    """The reason why a rule does not apply to a workload."""

    reason: str


class Rule(Protocol):
    """One rule of the policy for the pods of a workload. It has the name of its class.

    A rule reads the workload and the policy, never the pod or the cluster. The injection thus depends only on the pod
    template and the policy revision, as schedulers that group equal pods require.
    """

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | Skipped:
        """Return the edits of the rule, in the order in which they are applied."""
        ...
