"""What a rule is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from webhook.mutation.edits import Edit
from webhook.mutation.workload import Workload
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Skipped:
    """The rule does not concern this workload, and why."""

    reason: str


class Rule(Protocol):
    """One thing that the policy wants of a workload's pods.

    A rule sees the intent and the policy alone, never the pod nor the cluster: what is injected is then a function of
    the pod's template and the policy's revision, as schedulers that group equal pods need it.
    """

    name: ClassVar[str]

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | Skipped:
        """The edits that fulfil the rule, in the order in which they apply."""
        ...
