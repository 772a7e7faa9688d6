"""The body of an AdmissionReview into the body of its answer, counted and audited on the way."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from webhook.audit.record import AuditRecord
from webhook.kube.admission import AdmissionRequest, parse_review, review_response
from webhook.kube.field import InvalidInput
from webhook.metrics import Metrics
from webhook.pipeline import Cluster, Memory, admit
from webhook.placement.framework import Placement
from webhook.policy.policy import Policy
from webhook.serving.journal import audit_record
from webhook.verdict import Bypassed, Denied, Patched, Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: JSON where the status is 200, else text that says what is wrong."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a decision needs from outside the core."""

    policy: Callable[[], Policy]
    """The policy in force now."""
    cluster: Callable[[], Cluster | None]
    """The view of the cluster as it is now, if there is one."""
    audit: Callable[[AuditRecord], None]
    """Writes a record before it returns; never raises."""
    monotonic_seconds: Callable[[], float]
    now: Callable[[], str]
    """The time as RFC 3339 in UTC with microseconds."""
    new_decision: Callable[[], str]
    """An identifier that no other decision has."""
    replica: str
    foretold: Callable[[AdmissionRequest, Verdict, Cluster | None, Policy], None] = lambda *_: None
    """Is told every verdict and the view that it was given on."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One admission: what was asked, when and of whom."""

    request: AdmissionRequest
    policy: Policy
    time: str
    decision: str
    arrived_seconds: float


class Admissions:
    """Answers admission requests, one after the other."""

    def __init__(self, surroundings: Surroundings, metrics: Metrics) -> None:
        self._world = surroundings
        self._metrics = metrics
        self._memory = Memory()
        self._log = structlog.get_logger()

    def answer(self, body: bytes, arrived_seconds: float, deadline_seconds: float | None) -> Answer:
        """The answer to the review in `body`.

        `arrived_seconds` and `deadline_seconds` are on the monotonic clock; after the deadline the placement check is
        given up and the static patch goes out.
        """
        try:
            request = parse_review(body)
        except InvalidInput as error:
            return self._unreadable(error)
        world = self._world
        asked = _Asked(request, world.policy(), world.now(), world.new_decision(), arrived_seconds)
        try:
            cluster = world.cluster()
            verdict = admit(request, asked.policy, cluster, self._expired(deadline_seconds), self._memory)
            response = _response(request, verdict, asked.policy, asked.decision)
            self._count(self._audited(asked, verdict), asked)
            world.foretold(request, verdict, cluster, asked.policy)
        except InvalidInput as error:
            return self._no_pod(asked, error)
        except Exception as error:
            return self._failed(asked, error)
        return Answer(200, response)

    def refused(self, status: int) -> None:
        """Count a request that never became an admission."""
        self._metrics.refused_requests.labels(str(status)).inc()

    def _no_pod(self, asked: "_Asked", error: InvalidInput) -> Answer:
        """Answer who can be told apart by uid, but did not send a pod: refused, and on record like every admission."""
        try:
            self._audited(asked, str(error))
        except Exception as fault:
            return self._failed(asked, fault)
        return self._unreadable(error)

    def _failed(self, asked: "_Asked", error: Exception) -> Answer:
        """Answer that we are at fault: never a refusal, and on record unless the record is the fault."""
        request, decision = asked.request, asked.decision
        place = {"decision": decision, "uid": request.uid, "namespace": request.namespace}
        self._log.error("admission failed", exc_info=error, **place)
        try:
            self._audited(asked, f"{type(error).__name__}: {error}")
        except Exception:
            self._log.exception("admission is not on record", **place)
        self._metrics.count_admission("Error", "")
        self._metrics.admission_seconds.observe(self._world.monotonic_seconds() - asked.arrived_seconds)
        text = f"placement-webhook: internal fault, decision {decision}; the audit log and the server's log say more"
        return Answer(500, text.encode())

    def _audited(self, asked: "_Asked", verdict: Verdict | str) -> AuditRecord:
        record = audit_record(
            asked.request,
            verdict,
            asked.policy,
            time=asked.time,
            decision=asked.decision,
            duration_seconds=self._world.monotonic_seconds() - asked.arrived_seconds,
            replica=self._world.replica,
        )
        self._world.audit(record)
        return record

    def _unreadable(self, error: InvalidInput) -> Answer:
        self.refused(400)
        return Answer(400, f"{error}\n".encode("utf-8", "replace"))

    def _expired(self, deadline_seconds: float | None) -> Callable[[], bool]:
        if deadline_seconds is None:
            return lambda: False
        clock = self._world.monotonic_seconds
        return lambda: clock() >= deadline_seconds

    def _count(self, record: AuditRecord, asked: "_Asked") -> None:
        metrics = self._metrics
        # What users mistype is no label: each of its values would be a series that Prometheus keeps.
        known = record.workload_type in asked.policy.spec.workload_types
        metrics.count_admission(record.outcome, record.workload_type or "" if known else "")
        metrics.admission_seconds.observe(self._world.monotonic_seconds() - asked.arrived_seconds)
        for rule in record.rules:
            if rule.edits:
                metrics.count_edits(rule.name, len(rule.edits))
        if record.placement is not None:
            metrics.count_verdict(record.placement.verdict)


def _foretold(placement: Placement) -> dict[str, str]:
    counts = {"feasible": str(placement.feasible), "total": str(placement.total)}
    return {"placement": placement.verdict} | counts | ({"node": placement.node} if placement.node else {})


def _response(request: AdmissionRequest, verdict: Verdict, policy: Policy, decision: str) -> bytes:
    annotations = {"decision": decision, "outcome": verdict.outcome, "policy": policy.identity}
    if isinstance(verdict, Bypassed):
        annotations["reason"] = verdict.reason
    elif verdict.placement is not None:
        annotations |= _foretold(verdict.placement)
    return review_response(
        request.uid,
        verdict.operations if isinstance(verdict, Patched) else (),
        verdict.warnings,
        annotations,
        verdict.refusal if isinstance(verdict, Denied) else None,
    )
