"""Record Events about admissions, off the request path: reports are queued, and a task looks up and writes."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from webhook.documents.documents import field
from webhook.events.backlog import Backlog, PendingReport
from webhook.events.lookups import pods_of, with_owner
from webhook.events.report import Report
from webhook.events.subject import ObjectReference, subject_of
from webhook.events.writer import write
from webhook.kube.api.admission import AdmissionRequest
from webhook.policy.policy import Policy
from webhook.runtime.byte_cache import ByteCache
from webhook.runtime.metrics import Metrics
from webhook.runtime.token_bucket import TokenBucket
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, Connect

PODS_OF_OWNER = 5
"""Up to so many reports of one reason on pods of one owner become Events on the pods, the others on the owner.

They count anew after `_ALLOWANCE_SECONDS` without such a report.
"""
_ALLOWANCE_SECONDS = 120.0

_BURST, _REFILL_SECONDS = 25, 1.0
# A pod is stored a moment after its admission, and its equals arrive together with it.
_LINGER_SECONDS = 1.0
# The API server stores a pod after its other webhooks, which take up to 30 s.
_LOOKUP_PAUSES_SECONDS = (3.0, 10.0, 20.0)
_RETRY_SECONDS = 10.0
_SHORTEST_PAUSE_SECONDS = 0.05
_MOST_FAILURES = 3
_REPORTED_BYTES, _ENTRY_BYTES = 512 * 1024, 512
_NAMESPACE_TERMINATING = "NamespaceTerminating"


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a recorder, and its sleep function."""

    monotonic_seconds: Callable[[], float] = time.monotonic
    wall_seconds: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class EventRecorder:
    """Writes Events through the connections of `connect`. An instance is for one event loop."""

    def __init__(self, connect: Connect, metrics: Metrics, replica: str, clocks: Clocks | None = None) -> None:
        self._connect, self._counter, self._replica = connect, metrics.events, replica
        self._clocks = clocks or Clocks()
        self._bucket = TokenBucket(_BURST, _REFILL_SECONDS, self._clocks.monotonic_seconds())
        self._backlog = Backlog()
        # The pods that have an Event, with its reason.
        self._reported: ByteCache[tuple[str, str], bool] = ByteCache(_REPORTED_BYTES)
        # By the UID of an owner and the reason: the number of Events on its pods, and the time of the last report.
        self._on_pods: ByteCache[tuple[str, str], tuple[int, float]] = ByteCache(_REPORTED_BYTES)
        self._wake = asyncio.Event()
        self._is_writing = False
        self._resumes_at = 0.0
        self._logged: set[str] = set()
        self._log = structlog.get_logger()

    @property
    def waiting(self) -> int:
        """Return the number of waiting reports. Merged reports count once."""
        return len(self._backlog)

    @property
    def is_idle(self) -> bool:
        """Return whether every report was written or dropped."""
        return not self.waiting and not self._is_writing

    def report(self, request: AdmissionRequest, report: Report | None, policy: Policy) -> None:
        """Report the decision on a pod.

        A `report` of None means that there is nothing to report. This method never raises.

        If the pod already has the annotation of `policy`, the API server calls the webhook again because another
        webhook changed the pod. The new decision then replaces the last one.
        """
        if request.dry_run or (report is None and not self.waiting):
            return
        try:
            subject = subject_of(request)
            annotations = field(request.object or {}, "metadata", "annotations") or {}
            if subject is not None and policy.policy_annotation in annotations:
                self._backlog.withdraw(subject)
            if report is not None and subject is not None and (report.is_on_pod or subject.uid):
                self._put(self._pending(report, subject))
            elif report is not None:
                self._count("no_object")
        except Exception as error:
            self._count("failed")
            self._log_once("an internal error", exc_info=error)

    def report_on(self, target: ObjectReference, report: Report) -> None:
        """Report on an object that is known to exist."""
        pending = self._pending(report, target)
        pending.count, pending.targets = 0, [(target, 1)]
        self._put(pending)

    def _pending(self, report: Report, subject: ObjectReference) -> PendingReport:
        wall, now = self._clocks.wall_seconds(), self._clocks.monotonic_seconds()
        return PendingReport(report, subject, wall, wall, now + _LINGER_SECONDS)

    def _put(self, pending: PendingReport) -> None:
        if not self._backlog.put(pending):
            self._count("dropped", max(1, pending.count))
        self._wake.set()

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.waiting:
                wait_seconds = min(self._next_seconds() - self._clocks.monotonic_seconds(), _RETRY_SECONDS)
                await self._clocks.sleep(max(wait_seconds, _SHORTEST_PAUSE_SECONDS))
                await self.write_due()

    async def drain(self, seconds: float) -> None:
        """Write the waiting reports for at most `seconds` at the end of the process, and drop the rest."""
        try:
            async with asyncio.timeout(seconds):
                if self._resumes_at <= self._clocks.monotonic_seconds():
                    await self.write_due(math.inf)
        except TimeoutError:
            self._log.warning("events are left unwritten at the shutdown", waiting=self.waiting)
        self._count("dropped", self.waiting)

    async def write_due(self, ahead_seconds: float = 0.0) -> None:
        """Look up and write what is due within `ahead_seconds`, until a failure. Never raises."""
        if self._next_seconds() > self._clocks.monotonic_seconds() + ahead_seconds:
            return
        self._is_writing = True
        try:
            async with self._connect() as server:
                while pending := self._backlog.take_due(self._clocks.monotonic_seconds() + ahead_seconds):
                    if not await self._is_handled(server, pending):
                        break
                    while seconds := self._bucket.take(self._clocks.monotonic_seconds()):
                        await self._clocks.sleep(seconds)
        except Exception as error:
            # The connection could not be configured, or an internal error.
            self._pause(type(error).__name__, exc_info=error)
        finally:
            self._is_writing = False

    async def _is_handled(self, server: ApiServer, pending: PendingReport) -> bool:
        """Look up and write `pending`. Return False if no requests should be sent to the API server for a while.

        A namespace can reject Events, through an admission webhook or while it is being deleted. This does not delay
        the Events of other namespaces.
        """
        try:
            await self._resolve(server, pending)
            while pending.targets:
                await write(server, pending, *pending.targets[0], self._replica)
                del pending.targets[0]
                self._count("written")
        except ApiServerError as error:
            is_rejected = 400 <= error.code < 500 and error.code != HTTPStatus.TOO_MANY_REQUESTS
            pending.failures += 1
            if is_rejected or pending.failures == _MOST_FAILURES or not self._backlog.put(pending):
                self._count("failed")
            if not is_rejected:
                self._pause(str(error.code), error=str(error))
            elif _NAMESPACE_TERMINATING not in error.causes:
                self._log_once(str(error.code), error=str(error))
            return is_rejected
        if pending.count and pending.lookups < len(_LOOKUP_PAUSES_SECONDS):
            pending.due_seconds = self._clocks.monotonic_seconds() + _LOOKUP_PAUSES_SECONDS[pending.lookups]
            pending.lookups += 1
            self._put(pending)
        else:
            self._count("no_object", pending.count)
        return True

    async def _resolve(self, server: ApiServer, pending: PendingReport) -> None:
        """Move the pods that are found from `pending.count` to `pending.targets`."""
        if not pending.count:
            return
        reason, subject, pods = pending.report.reason, pending.subject, None
        now = self._clocks.monotonic_seconds()
        known = self._on_pods.get((subject.uid, reason))
        used = known[0] if known is not None and now - known[1] < _ALLOWANCE_SECONDS else 0
        if pending.report.is_on_pod and (used + pending.count <= PODS_OF_OWNER or not subject.uid):
            pods = await pods_of(server, subject, pending.first_at)
        found = [each for each in pods or () if self._reported.get((each.uid, reason)) is None][: pending.count]
        on_owner = len(found) if pods is not None else pending.count
        is_on_owner = pods is None or pending.report.is_on_owner
        owners = await with_owner(server, subject) if subject.uid and on_owner and is_on_owner else ()
        # Written after the last request, because a failed lookup is repeated.
        if subject.uid:
            self._on_pods.put((subject.uid, reason), (used + len(found), now), _ENTRY_BYTES)
        for each in found:
            self._reported.put((each.uid, reason), True, _ENTRY_BYTES)
        pending.targets += [*((each, 1) for each in found), *((each, on_owner) for each in owners)]
        if found or owners:
            pending.count -= on_owner

    def _pause(self, cause: str, **details: object) -> None:
        self._resumes_at = self._clocks.monotonic_seconds() + _RETRY_SECONDS
        self._log_once(cause, **details)

    def _next_seconds(self) -> float:
        return max(self._backlog.next_due_seconds(), self._resumes_at)

    def _log_once(self, cause: str, **details: object) -> None:
        if cause not in self._logged:
            self._logged.add(cause)
            self._log.warning("events cannot be written", **details)

    def _count(self, result: str, count: int = 1) -> None:
        self._counter.labels(result).inc(count)
