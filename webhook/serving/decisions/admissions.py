"""Turn the body of an AdmissionReview into the body of its response; count and audit the admission."""

import os
from collections.abc import Callable
from typing import NamedTuple

import structlog

from webhook.admission.cluster_view import ClusterView
from webhook.admission.pipeline import policy_for
from webhook.audit.lines import RecordTemplate, UnsealedRecord
from webhook.documents.field import InvalidInput
from webhook.events.report import Report
from webhook.kube.api.admission import AdmissionRequest, parse_beginning, parse_review
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.framework.result import Placement
from webhook.policy.exempt import shadow_reason
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicyOrSet, PolicySet, is_all_in_shadow, may_be_in_shadow
from webhook.runtime.admission_counts import AdmissionCount
from webhook.runtime.byte_cache import value_count
from webhook.runtime.metrics import Metrics
from webhook.serving.connection import Arrival
from webhook.serving.decisions.audit_record import error_record
from webhook.serving.decisions.deciders import Decider
from webhook.serving.decisions.pod_recorder import PodRecorder
from webhook.serving.decisions.rendering import Candidate, Rendered, render
from webhook.serving.work_budget import TimeSliceEndedError, WorkBudget

# Maps a random hexadecimal digit to one with the variant bits of RFC 9562.
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def new_decision_id(stock: list[str]) -> str:
    """Return a random UUID (version 4). `stock` are random digits for further ones, and is filled when it is empty.

    The random bytes for many IDs are read at once. `uuid.uuid4()` reads them for each ID, which takes 4.5 % of the CPU
    time of a cached request (median of 240 paired rounds; 1 % of it is noise).
    """
    if not stock:
        read = os.urandom(16 * 256).hex()
        stock += [read[at : at + 32] for at in range(0, len(read), 32)]
    digits = stock.pop()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"


# A parsed value takes about 72 bytes, however short its JSON is. A realistic pod of 3 MiB has a tenth of this number.
MAX_VALUES = 600_000


class Answer(NamedTuple):
    """An HTTP response: JSON if the status is 200, or else an error text."""

    status: int
    body: bytes

    @property
    def content_type(self) -> str:
        """Return the media type of the body."""
        return "application/json" if self.status == 200 else "text/plain; charset=utf-8"


class BeyondLimitError(Exception):
    """A request exceeds a limit of the server, which the text names.

    It is not logged, because clients could fill the log.
    """


class TooManyValuesError(BeyondLimitError):
    """The parsed review would exceed the memory limit of one review."""


def _check_values(body: bytes) -> None:
    if value_count(body) > MAX_VALUES:
        raise TooManyValuesError(f"the review has more than {MAX_VALUES} JSON values")


class Decision(NamedTuple):
    """The decision on a review that could be read. `result` is the exception if the decision failed."""

    request: AdmissionRequest
    policy: Policy
    cluster: ClusterView | None
    result: Rendered | Exception


class Admissions:
    """Answers admission requests: `decide` in the thread of the decider, `finish` in the thread of the event loop.

    `audit` stages a record that is written before the answer is sent. `new_decision` returns a unique decision ID.
    `without_earlier` returns the view without the room that an earlier admission of the same pod reserved; it is called
    in any thread. For an allowed pod, `predicted` records the prediction and the view that it was made on, and
    `admitted` reserves room. `reported` reports a decision for an Event, and never raises. `pods` keeps the pods of
    records.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        audit: Callable[[UnsealedRecord], None],
        monotonic_seconds: Callable[[], float],
        new_decision: Callable[[], str],
        replica: str,
        predicted: Callable[[AdmissionRequest, Placement, ClusterView | None, Policy], None] = lambda *_: None,
        without_earlier: Callable[[AdmissionRequest, ClusterView], ClusterView] = lambda _, cluster: cluster,
        admitted: Callable[[PodIdentity, Candidate], None] = lambda *_: None,
        reported: Callable[[AdmissionRequest, Report | None, Policy], None] = lambda *_: None,
        pods: PodRecorder | None = None,
    ) -> None:
        self._refused = metrics.refused_requests
        self._counts = metrics.admissions
        self._seconds = metrics.admission_seconds
        self._audit, self._monotonic_seconds = audit, monotonic_seconds
        self._new_decision, self._replica = new_decision, replica
        self._predicted, self._without_earlier = predicted, without_earlier
        self._admitted, self._reported = admitted, reported
        self._pods = pods
        self._log = structlog.get_logger()

    def decide(
        self, decider: Decider, body: bytes, policies: PolicyOrSet, cluster: ClusterView | None, work_budget: WorkBudget
    ) -> Decision | Answer:
        """Return the decision on the review in `body` within `work_budget`, by the policy for its namespace.

        If the review cannot be read, return the response that refuses it.

        Raises:
            TimeSliceEndedError: the work stops before there is a verdict.
        """
        request, policy = None, policies.default if isinstance(policies, PolicySet) else policies
        try:
            if len(body) > MAX_VALUES:
                _check_values(body)
            request = parse_review(body)
            if isinstance(policies, PolicySet):
                policy = policy_for(request, policies, cluster)
            if cluster is not None:
                cluster = self._without_earlier(request, cluster)
            rendered = decider.decide(request, policy, cluster, work_budget)
            return Decision(request, policy, cluster, rendered)
        except TimeSliceEndedError:
            raise
        except Exception as error:
            if request is None:
                return self._unread(body, policies, cluster, error)
            return Decision(request, policy, cluster, self._unless_in_shadow(request, error, policy))

    def refuse(
        self, body: bytes, policies: PolicyOrSet, cluster: ClusterView | None, error: Exception
    ) -> Decision | None:
        """Return the decision on a review that is not read because of `error`. `body` may be only its beginning.

        If the beginning shows that the policy for the request is in shadow mode, the request is allowed without a
        patch. Otherwise, return None.
        """
        request = parse_beginning(body) if may_be_in_shadow(policies) else None
        if request is None:
            return None
        policy = policy_for(request, policies, cluster) if isinstance(policies, PolicySet) else policies
        # The labels of a Namespace, and the owner by which a canary is drawn, are in the part that is not read.
        is_known = request.kind != "Namespace" or is_all_in_shadow(policies)
        if not is_known or policy.spec.mode != "shadow":
            return None
        return Decision(request, policy, cluster, self._unless_in_shadow(request, error, policy))

    def _unread(
        self, body: bytes, policies: PolicyOrSet, cluster: ClusterView | None, error: Exception
    ) -> Decision | Answer:
        if isinstance(error, InvalidInput):
            return _invalid(error)
        decision = self.refuse(body, policies, cluster, error)
        if decision is not None:
            return decision
        if isinstance(error, TooManyValuesError):
            return Answer(413, f"{error}\n".encode())
        raise error

    def _unless_in_shadow(self, request: AdmissionRequest, error: Exception, policy: Policy) -> Rendered | Exception:
        """Return `error`, or a response that allows the request unchanged if the policy is not enforced for it."""
        if (shadow := shadow_reason(request, policy.spec)) is None:
            return error
        if not isinstance(error, BeyondLimitError):
            self._log.error("admission failed, and is in shadow mode", exc_info=error, uid=request.uid)
        return render(request, f"{type(error).__name__}: {error}", policy, shadow=shadow)

    def finish(self, decision: Decision | Answer, arrival: Arrival) -> Answer:
        """Count the admission, stage its audit record and return the response."""
        if isinstance(decision, Answer):
            self.count_refusal(decision.status)
            return decision
        request, policy, cluster, result = decision
        decision_id = self._new_decision()
        if isinstance(result, InvalidInput):
            return self._reject_object(decision, arrival, decision_id, result)
        if isinstance(result, Exception):
            return self._failed(decision, arrival, decision_id, result)
        try:
            response = result.answer.to(request.uid, decision_id)
            pod = "" if self._pods is None else self._pods.digest_of(request, policy, cluster, arrival.time)
            self._stage(request, arrival, decision_id, result.record, pod)
            self._counts.count(result.counted)
            self._seconds.observe(self._monotonic_seconds() - arrival.arrived_seconds)
        except Exception as error:
            return self._failed(decision, arrival, decision_id, error)
        # The record has the decision, and a pod is not refused because of what is done after it.
        try:
            if result.prediction is not None:
                self._predicted(request, result.prediction, cluster, policy)
        except Exception:
            self._log.exception("prediction is not kept", decision=decision_id, uid=request.uid)
        try:
            if result.candidate is not None and not request.dry_run:
                self._admitted(request.identity, result.candidate)
        except Exception:
            self._log.exception("room is not reserved", decision=decision_id, uid=request.uid)
        if not result.counted.kind:
            self._reported(request, result.report, policy)
        return Answer(200, response)

    def count_refusal(self, status: int) -> None:
        """Count a request that did not become an admission."""
        self._refused.labels(str(status)).inc()

    def _reject_object(self, decision: Decision, arrival: Arrival, decision_id: str, error: InvalidInput) -> Answer:
        """Reject a request whose object is not a Pod. It is audited like every admission, because it has a UID."""
        try:
            self._audit_error(decision, arrival, decision_id, str(error))
        except Exception as failure:
            return self._failed(decision, arrival, decision_id, failure)
        self.count_refusal(400)
        return _invalid(error)

    def _failed(self, decision: Decision, arrival: Arrival, decision_id: str, error: Exception) -> Answer:
        """Respond to an internal error with HTTP 500, never with a denial, and audit it unless that has failed."""
        request = decision.request
        ids = {"decision": decision_id, "uid": request.uid, "namespace": request.namespace}
        unenforced = self._unless_in_shadow(request, error, decision.policy)
        if isinstance(unenforced, Rendered):
            try:
                self._stage(request, arrival, decision_id, unenforced.record)
                self._counts.count(unenforced.counted)
                self._seconds.observe(self._monotonic_seconds() - arrival.arrived_seconds)
            except Exception:
                self._log.exception("admission is not on record", **ids)
            return Answer(200, unenforced.answer.to(request.uid, decision_id))
        self._log.error("admission failed", exc_info=error, **ids)
        try:
            self._audit_error(decision, arrival, decision_id, f"{type(error).__name__}: {error}")
        except Exception:
            self._log.exception("admission is not on record", **ids)
        self._counts.count(AdmissionCount("Error"))
        self._seconds.observe(self._monotonic_seconds() - arrival.arrived_seconds)
        text = f"placement-webhook: internal fault, decision {decision_id}; the audit log and the server's log say more"
        return Answer(500, text.encode())

    def _stage(
        self, request: AdmissionRequest, arrival: Arrival, decision_id: str, common: RecordTemplate, pod: str = ""
    ) -> None:
        duration_ms, connection = (self._monotonic_seconds() - arrival.arrived_seconds) * 1000, arrival.connection
        self._audit(
            UnsealedRecord(
                arrival.time,
                decision_id,
                request,
                duration_ms,
                self._replica,
                common,
                connection.client,
                connection.address,
                pod,
            )
        )

    def _audit_error(self, decision: Decision, arrival: Arrival, decision_id: str, error: str) -> None:
        common = RecordTemplate.of(error_record(decision.request, error, decision.policy))
        self._stage(decision.request, arrival, decision_id, common)


def _invalid(error: InvalidInput) -> Answer:
    return Answer(400, f"{error}\n".encode("utf-8", "replace"))
