"""Render a decision as response, audit record and counts. Pods of one template share the largest part."""

from dataclasses import dataclass
from typing import NamedTuple

import orjson

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.verdict import Advised, ObjectVerdict, Patched, Unchanged, Verdict, placement_of
from webhook.audit.bounds import Truncator
from webhook.audit.lines import RecordTemplate, before_json, owner_json, placement_json, qos_class_json
from webhook.audit.record import Outcome
from webhook.events.report import Report, report_of
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import ReviewAnswer
from webhook.objects.admission import counted_kind
from webhook.placement.framework.result import Placement, PlacementVerdict
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.policy import Policy
from webhook.runtime.admission_counts import AdmissionCount
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.decisions.audit_record import (
    audit_record,
    owner_of,
    placement_entry,
    replaced_values,
    shadow_entry,
)
from webhook.serving.decisions.decision_keys import ContentKey

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
        return self.prediction is not None and self.prediction.verdict == "Unknown"

    @property
    def prediction(self) -> Placement | None:
        """Return the placement predicted for an allowed pod."""
        is_pod = not self.counted.kind
        return self.placement if is_pod and self.outcome in ("Patched", "Unchanged") else None


class PodParts(NamedTuple):
    """The parts of the audit record that depend only on the pod. They are equal for equal pods."""

    owner: bytes
    before: bytes
    qos_class: bytes


class _SharedParts(NamedTuple):
    """The parts of a response and its record that depend only on the injection, the warnings and the verdict."""

    content: bytes
    patch: bytes
    decided: bytes
    counted: AdmissionCount


class Renderer:
    """Renders decisions on pods. Not thread-safe.

    The parts that decisions with the same injection share are cached in at most `cache_bytes`.

    Equal keys must belong to equal injections.
    """

    def __init__(self, cache_bytes: int) -> None:
        self.cache: ByteCache[tuple[ContentKey, tuple[str, ...], PlacementVerdict], _SharedParts] = ByteCache(
            cache_bytes
        )

    def allowed(
        self,
        request: AdmissionRequest,
        verdict: Patched | Unchanged,
        policy: Policy,
        injection: ContentKey | None,
        pod: PodParts | None,
    ) -> tuple[Rendered, PodParts | None]:
        """Return the rendered `verdict` for `request`, and the parts of its pod.

        `pod` are these parts if they are known.

        `injection` is the key of the injection. If it is None, nothing is cached. The returned parts are None if a part
        is too long for a record.
        """
        placement = verdict.placement
        if injection is None:
            return render(request, verdict, policy), None
        key = injection, verdict.warnings, placement.verdict
        known = self.cache.get(key)
        if known is None:
            rendered = render(request, verdict, policy)
            if not rendered.record.truncated:
                answer = rendered.answer
                decided, counted = rendered.record.decided, rendered.counted
                known = _SharedParts(answer.content, answer.patch, decided, counted)
                self.cache.put(key, known, rendered.size_bytes)
            return rendered, pod
        truncator = Truncator()
        if pod is None:
            pod = PodParts(
                owner_json(owner_of(request.object), truncator),
                before_json(replaced_values(request.object, verdict.mutated.injection.operations), truncator),
                qos_class_json(verdict.mutated.qos_class),
            )
        of_placement = placement_json(placement_entry(placement), truncator)
        if truncator.truncated:
            return render(request, verdict, policy), None
        annotations = _annotations(verdict.outcome, policy, placement)
        return Rendered(
            verdict.outcome,
            placement,
            ReviewAnswer(known.content, known.patch, annotations),
            RecordTemplate(pod.owner, known.decided, of_placement, b"null", pod.before, b"", pod.qos_class),
            known.counted,
            report_of(verdict),
        ), pod


def render(
    request: AdmissionRequest, verdict: Verdict | ObjectVerdict | str, policy: Policy, *, shadow: str | None = None
) -> Rendered:
    """Return the rendered response, record and counts of `verdict` for `request`.

    If `shadow` is set, it is the reason why the policy is not enforced for the request. Then the response allows the
    request unchanged, and the record contains the verdict that was not enforced. Only in this case can `verdict` be the
    message of an error.
    """
    entry = None
    if shadow is not None and not (isinstance(verdict, Bypassed) and not verdict.warnings):
        entry = shadow_entry(verdict)
        verdict = Bypassed(shadow, (), None if isinstance(verdict, str) else verdict.workload_type)
    assert not isinstance(verdict, str)  # noqa: S101 - the caller's
    record = audit_record(request, verdict, policy, shadow=entry)
    placement = placement_of(verdict)
    answer, counted = _answer(verdict, placement, policy), _counted(request, verdict, placement, policy)
    if entry is not None:
        answer = answer._replace(audit_annotations={**answer.audit_annotations, "shadow": entry.outcome})
        counted = counted._replace(shadow=entry.outcome)
    report: Report | None = None
    if not counted.kind and not isinstance(verdict, Advised):
        report = report_of(verdict)
    return Rendered(record.outcome, placement, answer, RecordTemplate.of(record), counted, report)


def _answer(verdict: Verdict | ObjectVerdict, placement: Placement | None, policy: Policy) -> ReviewAnswer:
    annotations = _annotations(verdict.outcome, policy, placement)
    if isinstance(verdict, Bypassed):
        annotations["reason"] = verdict.reason
    patch = b""
    if isinstance(verdict, Patched):
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
