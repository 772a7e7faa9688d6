"""What answer, audit record and metrics say of a verdict: worked out once for the pods of one template."""

from dataclasses import dataclass
from typing import Any

from webhook.admission_counts import Tally
from webhook.audit.record import RecordTemplate
from webhook.byte_cache import ByteCache
from webhook.cluster.snapshot import Snapshot
from webhook.kube.admission import AdmissionRequest, ReviewAnswer
from webhook.placement.scheduler import Placement
from webhook.policy.policy import Policy
from webhook.serving.audit_record import audit_record
from webhook.verdict import Bypassed, Denied, Patched, Unchanged, Verdict


@dataclass(frozen=True, slots=True)
class Rendered:
    """What is told of one verdict, whoever asked."""

    verdict: Verdict
    answer: ReviewAnswer
    record: RecordTemplate
    tally: Tally

    @property
    def size_bytes(self) -> int:
        """The memory that it takes at most: answer and record have the patch in them, once more each."""
        operations = len(self.verdict.operations) if isinstance(self.verdict, Patched) else 0
        return _RENDERED_BYTES + operations * _OPERATION_BYTES + 2 * sum(map(len, self.record))


RENDERINGS_BYTES = 8 * 1024 * 1024
# A rendering but for what its texts take.
_RENDERED_BYTES = 4096
_OPERATION_BYTES = 2048


class Renderings:
    """The last renderings, as many as `cache_bytes` hold, for the verdicts on one snapshot under one policy.

    The pods of one template get one verdict object (`webhook.pipeline.Memory`), and pods that differ in anything that
    is told of a verdict get two. A verdict holds on to the snapshot that it is about: once another comes, all are
    forgotten. An instance is for one thread.
    """

    def __init__(self, cache_bytes: int = RENDERINGS_BYTES) -> None:
        self._snapshot: Snapshot | None = None
        self._policy: Policy | None = None
        self._rendered: ByteCache[int, Rendered] = ByteCache(cache_bytes)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """The caches, to be measured."""
        return (self._rendered,)

    def of(self, request: AdmissionRequest, verdict: Verdict, policy: Policy, snapshot: Snapshot | None) -> Rendered:
        """What is told of `verdict`, the answer to `request`."""
        if isinstance(verdict, Patched | Unchanged) and verdict.pod:
            # No equal pod gets this object: the memory leaves the pod out of what it remembers. It may be of 3 MiB.
            return render(request, verdict, policy)
        if self._snapshot is not snapshot or self._policy is not policy:
            self._rendered.clear()
            self._snapshot, self._policy = snapshot, policy
        rendered = self._rendered.get(id(verdict))
        if rendered is None:
            # It holds the verdict, so that no other gets its id.
            rendered = render(request, verdict, policy)
            self._rendered.put(id(verdict), rendered, rendered.size_bytes)
        return rendered


def render(request: AdmissionRequest, verdict: Verdict, policy: Policy) -> Rendered:
    """Return the rendered answer, record and counts of `verdict` for `request`."""
    common = RecordTemplate.of(audit_record(request, verdict, policy))
    return Rendered(verdict, _answer(verdict, policy), common, _tally(verdict, policy))


def _answer(verdict: Verdict, policy: Policy) -> ReviewAnswer:
    annotations = {"outcome": verdict.outcome, "policy": policy.identity}
    if isinstance(verdict, Bypassed):
        annotations["reason"] = verdict.reason
    elif verdict.placement is not None:
        annotations |= _foretold(verdict.placement)
    return ReviewAnswer.of(
        verdict.operations if isinstance(verdict, Patched) else (),
        verdict.warnings,
        annotations,
        verdict.refusal if isinstance(verdict, Denied) else None,
    )


def _foretold(placement: Placement) -> dict[str, str]:
    counts = {"feasible": str(placement.feasible), "total": str(placement.total)}
    return {"placement": placement.verdict} | counts | ({"node": placement.node} if placement.node else {})


def _tally(verdict: Verdict, policy: Policy) -> Tally:
    rules = () if isinstance(verdict, Bypassed) else verdict.rules
    placement = None if isinstance(verdict, Bypassed) else verdict.placement
    # What users mistype is no label: each of its values would be a series that Prometheus keeps.
    known = verdict.workload_type in policy.spec.workload_types
    return Tally(
        verdict.outcome,
        (verdict.workload_type or "") if known else "",
        tuple((rule.name, len(rule.edits)) for rule in rules if rule.edits),
        placement.verdict if placement is not None else None,
    )
