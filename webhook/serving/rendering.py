"""Renders a decision: the answer, audit record and counts, which are equal for pods of one template."""

from dataclasses import dataclass

from webhook.admission_counts import Tally
from webhook.audit.entries import ShadowEntry
from webhook.audit.record import Outcome, RecordTemplate
from webhook.events.report import Report, report_of
from webhook.kube.admission import AdmissionRequest, ReviewAnswer
from webhook.objects.admission import counted_kind
from webhook.placement.scheduler import Placement
from webhook.policy.policy import Policy
from webhook.serving.audit_record import audit_record, shadow_entry
from webhook.serving.candidate import Candidate
from webhook.verdict import Advised, Bypassed, Denied, ObjectVerdict, Patched, Verdict

# The size of a rendered decision without its texts.
_RENDERED_BYTES = 4096
_OPERATION_BYTES = 2048


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered decision: answer, audit record and counts. It references nothing of the request."""

    outcome: Outcome
    placement: Placement | None
    answer: ReviewAnswer
    record: RecordTemplate
    tally: Tally
    report: Report | None
    """What an Event reports; None if there is nothing to report."""
    size_bytes: int
    """The maximum size in memory, without the scores of the placement and the candidate."""
    candidate: Candidate | None = None
    """The pod, if room is to be reserved for it."""

    @property
    def is_final(self) -> bool:
        """Return whether an equal pod gets the same decision on the same snapshot."""
        return self.placement is None or self.placement.is_final

    @property
    def is_unknown(self) -> bool:
        """Return whether the pod is allowed without a prediction."""
        return self.prediction is not None and self.prediction.verdict == "Unknown"

    @property
    def prediction(self) -> Placement | None:
        """Return the placement predicted for an allowed pod."""
        is_pod = not self.tally.kind
        return self.placement if is_pod and self.outcome in ("Patched", "Unchanged") else None


def render(
    request: AdmissionRequest,
    verdict: Verdict | ObjectVerdict,
    policy: Policy,
    *,
    scores: bool = True,
    shadow: str | None = None,
) -> Rendered:
    """Return the rendered answer, record and counts of `verdict` for `request`; without `scores` these are omitted.

    `shadow` is why the policy is not enforced for the request: the answer is to leave the object alone, and the record
    has the verdict as an answer that is not given.
    """
    if shadow is not None and not _is_silent(verdict):
        return _rendered(request, Bypassed(shadow, (), verdict.workload_type), policy, shadow=shadow_entry(verdict))
    return _rendered(request, verdict, policy, scores=scores)


def render_failure(request: AdmissionRequest, error: Exception, policy: Policy, shadow: str) -> Rendered:
    """Return the rendered answer to a request whose decision failed, if the policy is not enforced for it."""
    entry = shadow_entry(f"{type(error).__name__}: {error}")
    return _rendered(request, Bypassed(shadow), policy, shadow=entry)


def _is_silent(verdict: Verdict | ObjectVerdict) -> bool:
    return isinstance(verdict, Bypassed) and not verdict.warnings


def _rendered(
    request: AdmissionRequest,
    verdict: Verdict | ObjectVerdict,
    policy: Policy,
    *,
    scores: bool = False,
    shadow: ShadowEntry | None = None,
) -> Rendered:
    placement = None if isinstance(verdict, Bypassed) else verdict.placement
    if placement is not None and not scores:
        placement = placement.without_scores()
    record = RecordTemplate.of(audit_record(request, verdict, policy, shadow=shadow))
    # Answer and record contain the patch once each.
    operations = len(verdict.operations) if isinstance(verdict, Patched | Advised) else 0
    size_bytes = _RENDERED_BYTES + operations * _OPERATION_BYTES + 2 * sum(map(len, record))
    answer, tally = _answer(verdict, policy), _tally(request, verdict, policy)
    if shadow is not None:
        answer = answer._replace(audit_annotations={**answer.audit_annotations, "shadow": shadow.outcome})
        tally = tally._replace(shadow=shadow.outcome)
    report: Report | None = None
    if not tally.kind and not isinstance(verdict, Advised):
        report = report_of(verdict)
    if report is not None:
        size_bytes += 4 * len(report.note)
    return Rendered(verdict.outcome, placement, answer, record, tally, report, size_bytes)


def _answer(verdict: Verdict | ObjectVerdict, policy: Policy) -> ReviewAnswer:
    annotations = {"outcome": verdict.outcome, "policy": policy.identity}
    if isinstance(verdict, Bypassed):
        annotations["reason"] = verdict.reason
    elif verdict.placement is not None:
        annotations |= _predicted(verdict.placement)
    return ReviewAnswer.of(
        verdict.operations if isinstance(verdict, Patched | Advised) else (),
        verdict.warnings,
        annotations,
        verdict.denial if isinstance(verdict, Denied) else None,
    )


def _predicted(placement: Placement) -> dict[str, str]:
    counts = {"feasible": str(placement.feasible), "total": str(placement.total)}
    return {"placement": placement.verdict} | counts | ({"node": placement.node} if placement.node else {})


def _tally(request: AdmissionRequest, verdict: Verdict | ObjectVerdict, policy: Policy) -> Tally:
    if kind := counted_kind(request, policy):
        return Tally(verdict.outcome, kind=kind)
    rules = () if isinstance(verdict, Bypassed) else verdict.rules
    placement = None if isinstance(verdict, Bypassed) else verdict.placement
    # An unknown type is not a label value: each misspelling would create a series in Prometheus.
    known = verdict.workload_type in policy.spec.workload_types
    return Tally(
        verdict.outcome,
        (verdict.workload_type or "") if known else "",
        tuple((rule.name, len(rule.edits)) for rule in rules if rule.edits),
        placement.verdict if placement is not None else None,
    )
