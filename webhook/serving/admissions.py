"""The body of an AdmissionReview into the body of its answer, counted and audited on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from webhook.admission_counts import Tally
from webhook.audit.record import Draft, RecordTemplate
from webhook.byte_cache import value_count
from webhook.kube.admission import AdmissionRequest, parse_review
from webhook.kube.field import InvalidInput
from webhook.metrics import Metrics
from webhook.pipeline import ClusterView
from webhook.placement.framework.result import Placement
from webhook.policy.policy import Policy
from webhook.serving.audit_record import audit_record
from webhook.serving.lanes import Lane
from webhook.serving.rendering import Rendered
from webhook.serving.work_budget import TimeSliceEndedError, WorkBudget

# Parsed, a value takes about 72 bytes, however short it is in JSON. A pod of 3 MiB that somebody needs has a tenth.
MAX_VALUES = 600_000


class Answer(NamedTuple):
    """An HTTP answer: JSON where the status is 200, else text that says what is wrong."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a decision needs from outside the core."""

    audit: Callable[[Draft], None]
    """Has a record written before the answer leaves."""
    monotonic_seconds: Callable[[], float]
    new_decision: Callable[[], str]
    """An identifier that no other decision has."""
    replica: str
    predicted: Callable[[AdmissionRequest, Placement, ClusterView | None, Policy], None] = lambda *_: None
    """Records the prediction for an allowed pod and the view that it was made on."""


class TooManyValuesError(Exception):
    """Parsed, the review would take more memory than one may."""


def _parsed(body: bytes) -> AdmissionRequest:
    if len(body) > MAX_VALUES and value_count(body) > MAX_VALUES:
        raise TooManyValuesError
    return parse_review(body)


class Decision(NamedTuple):
    """The decision on one review; `result` is an exception where there is none."""

    request: AdmissionRequest | None
    policy: Policy
    cluster: ClusterView | None
    result: Rendered | Exception
    records_predictions: bool = True


class _Asked(NamedTuple):
    """One admission: what was asked, when and of whom."""

    request: AdmissionRequest
    policy: Policy
    time: str
    decision: str
    arrived_seconds: float


class Admissions:
    """Answers admission requests: `decide` in whichever thread a lane is for, `finish` in that of the event loop."""

    def __init__(self, surroundings: Dependencies, metrics: Metrics) -> None:
        self._dependencies = surroundings
        self._refused = metrics.refused_requests
        self._counts = metrics.admissions
        self._seconds = metrics.admission_seconds
        self._log = structlog.get_logger()

    def decide(
        self, lane: Lane, body: bytes, policy: Policy, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Decision:
        """Return the decision on the review in `body` within `work_budget`.

        Raises:
            TimeSliceEndedError: the work stops before there is a verdict.
        """
        request = None
        try:
            request = _parsed(body)
            rendered = lane.rendered(request, policy, cluster, work_budget)
            return Decision(request, policy, cluster, rendered, lane.records_predictions)
        except TimeSliceEndedError:
            raise
        except Exception as error:
            return Decision(request, policy, cluster, error)

    def finish(self, decision: Decision, time: str, arrived_seconds: float) -> Answer:
        """Return the answer, once it is counted and its record is on its way.

        `time` is when the request came, in RFC 3339; `arrived_seconds` the same on the monotonic clock.
        """
        request, result = decision.request, decision.result
        if isinstance(result, TooManyValuesError):
            self.refused(413)
            return Answer(413, f"the review has more than {MAX_VALUES} JSON values\n".encode())
        if request is None:
            if isinstance(result, InvalidInput):
                return self._unreadable(result)
            raise result if isinstance(result, Exception) else AssertionError
        asked = _Asked(request, decision.policy, time, self._dependencies.new_decision(), arrived_seconds)
        if isinstance(result, InvalidInput):
            return self._no_pod(asked, result)
        if isinstance(result, Exception):
            return self._failed(asked, result)
        try:
            response = result.answer.to(request.uid, asked.decision)
            self._dependencies.audit(self._draft(asked, result.record))
            self._counts.count(result.tally)
            self._seconds.observe(self._dependencies.monotonic_seconds() - arrived_seconds)
            if decision.records_predictions and (prediction := result.prediction) is not None:
                self._dependencies.predicted(request, prediction, decision.cluster, asked.policy)
        except Exception as error:
            return self._failed(asked, error)
        return Answer(200, response)

    def refused(self, status: int) -> None:
        """Count a request that never became an admission."""
        self._refused.labels(str(status)).inc()

    def _no_pod(self, asked: "_Asked", error: InvalidInput) -> Answer:
        """Answer who can be told apart by uid, but did not send a pod: refused, and on record like every admission."""
        try:
            self._audit_fault(asked, str(error))
        except Exception as fault:
            return self._failed(asked, fault)
        return self._unreadable(error)

    def _failed(self, asked: "_Asked", error: Exception) -> Answer:
        """Answer that we are at fault: never a refusal, and on record unless the record is the fault."""
        request, decision = asked.request, asked.decision
        place = {"decision": decision, "uid": request.uid, "namespace": request.namespace}
        self._log.error("admission failed", exc_info=error, **place)
        try:
            self._audit_fault(asked, f"{type(error).__name__}: {error}")
        except Exception:
            self._log.exception("admission is not on record", **place)
        self._counts.count(Tally("Error"))
        self._seconds.observe(self._dependencies.monotonic_seconds() - asked.arrived_seconds)
        text = f"placement-webhook: internal fault, decision {decision}; the audit log and the server's log say more"
        return Answer(500, text.encode())

    def _draft(self, asked: "_Asked", common: RecordTemplate) -> Draft:
        request = asked.request
        return Draft(
            asked.time,
            asked.decision,
            request.uid,
            request.dry_run,
            request.operation,
            request.namespace,
            request.name,
            request.user,
            (self._dependencies.monotonic_seconds() - asked.arrived_seconds) * 1000,
            self._dependencies.replica,
            common,
        )

    def _audit_fault(self, asked: "_Asked", fault: str) -> None:
        common = RecordTemplate.of(audit_record(asked.request, fault, asked.policy))
        self._dependencies.audit(self._draft(asked, common))

    def _unreadable(self, error: InvalidInput) -> Answer:
        self.refused(400)
        return Answer(400, f"{error}\n".encode("utf-8", "replace"))
