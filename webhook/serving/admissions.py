"""The body of an AdmissionReview into the body of its answer, counted and audited on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from webhook.admission_counts import Tally
from webhook.audit.record import CommonPart, Draft
from webhook.kube.admission import AdmissionRequest, parse_review
from webhook.kube.field import InvalidInput
from webhook.metrics import Metrics
from webhook.pipeline import Cluster, Memory, admit
from webhook.policy.policy import Policy
from webhook.serving.journal import audit_record
from webhook.serving.rendering import Renderings
from webhook.verdict import Verdict


class Answer(NamedTuple):
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
    audit: Callable[[Draft], None]
    """Has a record written before the answer leaves."""
    monotonic_seconds: Callable[[], float]
    now: Callable[[], str]
    """The time as RFC 3339 in UTC with microseconds."""
    new_decision: Callable[[], str]
    """An identifier that no other decision has."""
    replica: str
    foretold: Callable[[AdmissionRequest, Verdict, Cluster | None, Policy], None] = lambda *_: None
    """Is told every verdict and the view that it was given on."""


class _Asked(NamedTuple):
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
        self._refused = metrics.refused_requests
        self._counts = metrics.admissions
        self._seconds = metrics.admission_seconds
        self._memory = Memory()
        self._renderings = Renderings()
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
            rendered = self._renderings.of(request, verdict, asked.policy, cluster.snapshot if cluster else None)
            response = rendered.answer.to(request.uid, asked.decision)
            self._world.audit(self._draft(asked, rendered.record))
            self._counts.count(rendered.tally)
            self._seconds.observe(world.monotonic_seconds() - arrived_seconds)
            world.foretold(request, verdict, cluster, asked.policy)
        except InvalidInput as error:
            return self._no_pod(asked, error)
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
        self._seconds.observe(self._world.monotonic_seconds() - asked.arrived_seconds)
        text = f"placement-webhook: internal fault, decision {decision}; the audit log and the server's log say more"
        return Answer(500, text.encode())

    def _draft(self, asked: "_Asked", common: CommonPart) -> Draft:
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
            (self._world.monotonic_seconds() - asked.arrived_seconds) * 1000,
            self._world.replica,
            common,
        )

    def _audit_fault(self, asked: "_Asked", fault: str) -> None:
        common = CommonPart.of(audit_record(asked.request, fault, asked.policy))
        self._world.audit(self._draft(asked, common))

    def _unreadable(self, error: InvalidInput) -> Answer:
        self.refused(400)
        return Answer(400, f"{error}\n".encode("utf-8", "replace"))

    def _expired(self, deadline_seconds: float | None) -> Callable[[], bool]:
        if deadline_seconds is None:
            return lambda: False
        clock = self._world.monotonic_seconds
        return lambda: clock() >= deadline_seconds
