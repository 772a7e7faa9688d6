"""Spread: keep the replicas of one owner apart."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import Edit, packing_hint
from webhook.mutation.edits.scheduling_edits import SpreadByAntiAffinity, SpreadByConstraint, WhenUnsatisfiable
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class Spread:
    """Adds podAntiAffinity or a topology spread constraint, and a label if no other selects the replicas."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return the edit for the topology of the annotation or the workload type."""
        spreading = workload.spreading
        if isinstance(spreading, str):
            return spreading
        settings, hint = spreading.settings, packing_hint(policy.spec.bin_packing)
        key, group, is_requested = spreading.topology_key, spreading.group, spreading.is_requested
        is_preferred = settings.mode == "preferred"
        if settings.form == "antiAffinity":
            weight = settings.weight if is_preferred else None
            return (SpreadByAntiAffinity(key, group, hint, is_requested, weight),)
        when: WhenUnsatisfiable = "ScheduleAnyway" if is_preferred else "DoNotSchedule"
        return (SpreadByConstraint(key, group, hint, is_requested, settings.max_skew, when),)
