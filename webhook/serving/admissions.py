"""The body of an AdmissionReview into the body of its answer, counted and audited on the way."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from webhook.audit.record import AuditRecord
from webhook.kube.admission import AdmissionRequest, parse_review, review_response
from webhook.kube.field import InvalidInput
from webhook.metrics import Metrics
from webhook.pipeline import Cluster, Memory, admit
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
        world, time, decision = self._world, self._world.now(), self._world.new_decision()
        policy = world.policy()
        verdict: Verdict | str
        try:
            verdict = admit(request, policy, world.cluster(), self._expired(deadline_seconds), self._memory)
            response = _response(request, verdict, policy, decision)
        except InvalidInput as error:
            return self._unreadable(error)
        except Exception as error:
            self._log.exception("admission failed", decision=decision, uid=request.uid, namespace=request.namespace)
            verdict = f"{type(error).__name__}: {error}"
            response = None
        duration_seconds = world.monotonic_seconds() - arrived_seconds
        record = audit_record(
            request,
            verdict,
            policy,
            time=time,
            decision=decision,
            duration_seconds=duration_seconds,
            replica=world.replica,
        )
        world.audit(record)
        self._count(record, policy, duration_seconds)
        if response is None:
            text = (
                f"placement-webhook: internal fault, decision {decision}; the audit log and the server's log say more"
            )
            return Answer(500, text.encode())
        return Answer(200, response)

    def refused(self, status: int) -> None:
        """Count a request that never became an admission."""
        self._metrics.refused_requests.labels(str(status)).inc()

    def _unreadable(self, error: InvalidInput) -> Answer:
        self.refused(400)
        return Answer(400, f"{error}\n".encode("utf-8", "replace"))

    def _expired(self, deadline_seconds: float | None) -> Callable[[], bool]:
        if deadline_seconds is None:
            return lambda: False
        clock = self._world.monotonic_seconds
        return lambda: clock() >= deadline_seconds

    def _count(self, record: AuditRecord, policy: Policy, duration_seconds: float) -> None:
        metrics = self._metrics
        # What users mistype is no label: each of its values would be a series that Prometheus keeps.
        known = record.workload_type in policy.spec.workload_types
        metrics.count_admission(record.outcome, record.workload_type or "" if known else "")
        metrics.admission_seconds.observe(duration_seconds)
        for rule in record.rules:
            if rule.edits:
                metrics.count_edits(rule.name, len(rule.edits))
        if record.placement is not None:
            metrics.count_verdict(record.placement.verdict)


def _response(request: AdmissionRequest, verdict: Verdict, policy: Policy, decision: str) -> bytes:
    annotations = {"decision": decision, "outcome": verdict.outcome, "policy": policy.identity}
    if isinstance(verdict, Bypassed):
        annotations["reason"] = verdict.reason
    elif verdict.placement is not None:
        annotations["placement"] = verdict.placement.verdict
        if verdict.placement.node:
            annotations["node"] = verdict.placement.node
    return review_response(
        request.uid,
        verdict.operations if isinstance(verdict, Patched) else (),
        verdict.warnings,
        annotations,
        verdict.refusal if isinstance(verdict, Denied) else None,
    )
