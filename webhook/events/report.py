"""The part of a verdict that an Event reports: a reason and a note. Pods of one template have equal reports."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Allowed, Verdict
from webhook.documents.text import cut, printable
from webhook.placement.framework.result import Placement
from webhook.placement.reasons.cluster_warnings import NO_SIGN
from webhook.placement.reasons.evictions import OF_NAMESPACE, eviction_warning
from webhook.placement.waiting.pending_placement import MANY_WAIT, ONE_WAITS

DENIED = "PlacementDenied"
INFEASIBLE = "PlacementInfeasible"
WAITING = "PlacementWaiting"
SCHEDULER_MISSING = "PlacementSchedulerMissing"
POLICY_REJECTED = "PlacementPolicyRejected"

NOTE_BYTES = 1024
"""The limit of the API server for the note of an Event (events.k8s.io/v1)."""

_NUMBERS = re.compile(r"\d+", re.ASCII)


class Report(NamedTuple):
    """The reason and the note of an Event."""

    reason: str
    note: str

    @property
    def is_on_pod(self) -> bool:
        """Return whether the pod exists, so that the Event belongs on it."""
        return self.reason != DENIED

    @property
    def is_on_owner(self) -> bool:
        """Return whether the Event also belongs on the owner of the pod, because all its pods have the problem."""
        return self.reason == SCHEDULER_MISSING

    @property
    def topic(self) -> str:
        """Return the note without numbers. Reports with one topic become one Event."""
        note, *_ = self.note.split(OF_NAMESPACE)
        return _NUMBERS.sub("#", note.replace(ONE_WAITS, MANY_WAIT.format(1)))


def report_of(verdict: Verdict) -> Report | None:
    """Return the report of `verdict`, or None if the pod was allowed and can run, or was not checked."""
    if isinstance(verdict, Bypassed):
        return None
    if isinstance(verdict, Denied):
        return Report(DENIED, _note(f"a pod is refused: {verdict.denial.message}"))
    placement = verdict.placement
    for warning in verdict.warnings:
        # No scheduler writes an Event about such a pod, with any verdict.
        if NO_SIGN in warning and warning.startswith("scheduler "):
            return Report(SCHEDULER_MISSING, _note(warning))
    if placement.verdict == "Infeasible" and not placement.deny_exemption:
        return Report(
            INFEASIBLE, _note(f"no node of this cluster can take the pod as it is: {_reasons(verdict, placement)}")
        )
    if placement.verdict in ("Infeasible", "Waiting"):
        return Report(WAITING, _note(f"no node can take the pod now: {_reasons(verdict, placement)}"))
    return None


def rejection_of(errors: Iterable[str]) -> Report:
    """Return the report of a PlacementPolicy that is rejected because of `errors`."""
    return Report(POLICY_REJECTED, _note(f"this generation is not put into force: {'; '.join(errors)}"))


def _reasons(verdict: Allowed, placement: Placement) -> str:
    message = placement.message
    if placement.deny_exemption:
        message = f"{message.removesuffix('.')}. Not sure: {placement.deny_exemption}."
    evicted = eviction_warning(placement, verdict.mutated.content.request.identity.namespace)
    suggested = (
        [] if placement.waits_for == "preemption" else [f"Suggestion: {text}" for text in placement.suggestions[:1]]
    )
    for text in (*suggested, *([evicted] if evicted else [])):
        # A plugin's own message, such as that of a scheduling gate, ends without a full stop.
        message = f"{message.removesuffix('.')}. {text}."
    return message


def _note(text: str) -> str:
    # A character takes at least one byte, so later characters are never shown.
    note = printable(" ".join(text[: 2 * NOTE_BYTES].split()))
    while len(note.encode()) > NOTE_BYTES:
        note = cut(note, len(note) - max(1, (len(note.encode()) - NOTE_BYTES) // 4))
    return note
