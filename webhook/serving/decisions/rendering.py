"""Render a decision as response, audit record and counts. Pods of one template share the largest part."""

from dataclasses import dataclass
from typing import NamedTuple

import orjson

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.verdict import Advised, Allowed, ObjectVerdict, Verdict, placement_of
from webhook.audit.bounds import Truncator
from webhook.audit.lines import RecordTemplate, before_json, owner_json, placement_json, qos_class_json
from webhook.audit.record import Outcome
from webhook.events.report import Report, report_of
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import ReviewAnswer
from webhook.objects.admission import counted_kind
from webhook.placement.framework.result import Placement
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.policy import Policy
from webhook.runtime.admission_counts import AdmissionCount
from webhook.serving.decisions.audit_record import (
    audit_record,
    error_record,
    owner_of,
    placement_entry,
    replaced_values,
    shadowed,
)

# The size of a rendered decision without its texts.
_RENDERED_BYTES = 4096


class Candidate(NamedTuple):
    """An allowed pod for which room is reserved: the fields that a scheduler reads, and the placement.

    Its scheduler starts `least` pods of its gang together. If the placement is not Feasible, the pod belongs to a gang
    that does not start, and none of whose pods has room.
    """

    digest: bytes
    pod: WaitingPod
    placement: Placement
    least: int = 1

    @classmethod
    def of(cls, result: Mutated, placement: Placement) -> "Candidate | None":
        """Return the candidate for the pod in `result`, or None if the pod does not fit, is held, or cannot be read.

        A pod that does not fit is still a candidate if its scheduler starts none of the pods of its gang for this
        reason.
        """
        gang, binding = placement.gang, placement.binding
        least = 1 if gang is None else gang.least
        if binding.verdict != "Feasible" and (least <= 1 or binding.verdict == "Unknown"):
            return None
        waiting = result.waiting
        return None if waiting is None or waiting[1].signature.info.is_held else cls(*waiting, binding, least)


@dataclass(slots=True)
class Rendered:
    """A rendered decision: response, audit record and counts. It holds no reference to the request."""

    outcome: Outcome
    placement: Placement | None
    answer: ReviewAnswer
    record: RecordTemplate
    counted: AdmissionCount
    report: Report | None
    """The content of an Event, or None if there is nothing to report."""
    prediction: Placement | None = None
    """The placement that binds an allowed pod, to compare it with the node of the pod later."""
    candidate: Candidate | None = None
    """The pod, if room is to be reserved for it."""

    @property
    def size_bytes(self) -> int:
        """Return the maximum size in memory, without the scores of the placement and the candidate."""
        # Answer and record contain the patch once each.
        size_bytes = _RENDERED_BYTES + 2 * sum(map(len, self.record)) + 4 * len(self.answer.content)
        return size_bytes + (4 * len(self.report.note) if self.report is not None else 0)

    @property
    def is_unknown(self) -> bool:
        """Return whether the pod is allowed without a prediction."""
        return self.placement is not None and self.placement.verdict == "Unknown"


def render(
    request: AdmissionRequest, verdict: Verdict | ObjectVerdict | str, policy: Policy, *, shadow: str | None = None
) -> Rendered:
    """Return the rendered response, record and counts of `verdict` for `request`.

    If `shadow` is set, it is the reason why the policy is not enforced for the request. Then the response allows the
    request unchanged, and the record contains the verdict that was not enforced. Only in this case can `verdict` be the
    message of an error.
    """
    if isinstance(verdict, str):
        record = error_record(request, verdict, policy)
    else:
        record = audit_record(request, verdict, policy)
    if shadow is not None and not (isinstance(verdict, Bypassed) and not verdict.warnings):
        record, verdict = shadowed(record, shadow), Bypassed(shadow, (), record.workload_type)
    assert not isinstance(verdict, str)  # noqa: S101 - the caller's
    placement = placement_of(verdict)
    answer, counted = _answer(verdict, placement, policy), _counted(request, verdict, placement, policy)
    if record.shadow is not None:
        answer = answer._replace(audit_annotations={**answer.audit_annotations, "shadow": record.shadow.outcome})
        counted = counted._replace(shadow=record.shadow.outcome)
    report: Report | None = None
    if not counted.kind and not isinstance(verdict, Advised):
        report = report_of(verdict)
    prediction = verdict.placement.binding if isinstance(verdict, Allowed) else None
    return Rendered(record.outcome, placement, answer, RecordTemplate.of(record), counted, report, prediction)


def render_like(verdict: Allowed, policy: Policy, like: Rendered, equal: Rendered | None) -> Rendered | None:
    """Return what `render` returns for an allowed pod, or None if a part of its record is too long.

    `like` is the decision on a pod with the same injection, warnings and verdict of the placement check. `equal` is the
    last decision on an equal pod.
    """
    truncator = Truncator()
    if equal is not None and equal.outcome == like.outcome and not equal.record.truncated:
        owner, before, qos_class = equal.record.owner, equal.record.before, equal.record.qos_class
    else:
        pod = verdict.mutated.content.pod
        owner = owner_json(owner_of(pod), truncator)
        before = before_json(replaced_values(pod, verdict.operations), truncator)
        qos_class = qos_class_json(verdict.mutated.qos_class)
    placement = verdict.placement
    of_placement = placement_json(placement_entry(placement), truncator)
    if truncator.truncated:
        return None
    annotations = _annotations(like.outcome, policy, placement)
    return Rendered(
        like.outcome,
        placement,
        ReviewAnswer(like.answer.content, like.answer.patch, annotations),
        RecordTemplate(owner, like.record.decided, of_placement, b"null", before, b"", qos_class),
        like.counted,
        report_of(verdict),
        placement.binding,
    )


def _answer(verdict: Verdict | ObjectVerdict, placement: Placement | None, policy: Policy) -> ReviewAnswer:
    annotations = _annotations(verdict.outcome, policy, placement)
    if isinstance(verdict, Bypassed):
        annotations["reason"] = verdict.reason
    patch = b""
    if isinstance(verdict, Allowed) and verdict.operations:
        patch = verdict.mutated.injection.patch
    elif isinstance(verdict, Advised) and verdict.operations:
        patch = orjson.dumps(verdict.operations)
    return ReviewAnswer.of(
        patch,
        verdict.warnings,
        annotations,
        verdict.denial if isinstance(verdict, Denied) else None,
    )


def _annotations(outcome: Outcome, policy: Policy, placement: Placement | None) -> dict[str, str]:
    found: dict[str, str] = {"outcome": outcome, "policy": policy.identity}
    if placement is not None:
        found["placement"] = placement.verdict
        found["feasible"], found["total"] = str(placement.feasible), str(placement.total)
        if placement.node:
            found["node"] = placement.node
    return found


def _counted(
    request: AdmissionRequest, verdict: Verdict | ObjectVerdict, placement: Placement | None, policy: Policy
) -> AdmissionCount:
    if kind := counted_kind(request, policy):
        return AdmissionCount(verdict.outcome, kind=kind)
    # An unknown type is not a label value: each misspelling would create a series in Prometheus.
    known = verdict.workload_type in policy.spec.workload_types
    return AdmissionCount(
        verdict.outcome,
        (verdict.workload_type or "") if known else "",
        tuple((rule.name, len(rule.edits)) for rule in verdict.rules if rule.edits),
        placement.verdict if placement is not None else None,
        waits_for=placement.waits_for if placement is not None else "",
    )
