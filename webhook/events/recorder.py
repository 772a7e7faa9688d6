"""Records Events about admissions, off the request path: admissions report, and a task looks up and writes.

Nothing here affects an admission: a report costs a look at a bounded queue, and every failure is counted and logged.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

import structlog

from webhook.documents.documents import field
from webhook.events.backlog import Backlog, Observation, PendingEvent, T
from webhook.events.pacing import Clocks, Pacing
from webhook.events.report import Report
from webhook.events.resolver import Resolver
from webhook.events.subject import ObjectReference, Subject, subject_of
from webhook.events.writer import EventWriter
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import is_dns_subdomain
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, Connect

# A pod is stored a moment after its admission, and its equals arrive together with it.
_LINGER_SECONDS = 1.0
_EXPIRY_SECONDS = 900.0
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 300.0
_SHORTEST_PAUSE_SECONDS = 0.05
_MOST_FAILURES = 3
_NAMESPACE_TERMINATING = "NamespaceTerminating"
# Source: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage
_LACKS_RIGHT = re.compile(r'User ".*" cannot \w+ ')
_REMEDY = "grant the rule for events in deploy/base/rbac.yaml, or run with --no-events"


class EventRecorder:
    """Writes Events through the connections of `connect`. An instance is for one event loop."""

    def __init__(self, connect: Connect, metrics: Metrics, replica: str, clocks: Clocks | None = None) -> None:
        self._connect = connect
        self._counter = metrics.events
        self._clocks = clocks or Clocks()
        self._pacing = Pacing(self._clocks)
        self._writer = EventWriter(replica, self._pacing.wait_for_request)
        self._resolver = Resolver(self._pacing.wait_for_request)
        self._observations: Backlog[Observation] = Backlog()
        self._events: Backlog[PendingEvent] = Backlog()
        self._wake = asyncio.Event()
        self._is_writing = False
        self._pause_seconds = 0.0
        self._logged = ""
        self._rejections: set[int] = set()
        self._log = structlog.get_logger()

    @property
    def waiting(self) -> int:
        """Return the number of observations and Events that wait."""
        return len(self._observations) + len(self._events)

    @property
    def is_idle(self) -> bool:
        """Return whether all that was reported is written, or given up."""
        return not self.waiting and not self._is_writing

    def report(self, request: AdmissionRequest, report: Report | None, policy: Policy) -> None:
        """Report the decision on a pod. None means that there is nothing to report. It never raises.

        A pod that has the annotation of `policy` has just been admitted, and the API server calls again because another
        webhook changed it; the new decision replaces the last one.
        """
        if request.dry_run or (report is None and not len(self._observations)):
            return
        try:
            annotations = field(request.object or {}, "metadata", "annotations") or {}
            self._add(request, report, reinvoked=policy.policy_annotation in annotations)
        except Exception:
            self._count("failed")
            self._log_once("an internal error", "an admission could not be reported", exc_info=True)

    def report_on(self, target: ObjectReference, report: Report) -> None:
        """Report on an object that is known to exist."""
        wall, now = self._clocks.wall_seconds(), self._clocks.monotonic_seconds()
        source = f"{target.namespace}/{target.uid}"
        self._put(self._events, PendingEvent(report, wall, wall, now, now + _EXPIRY_SECONDS, target, source))
        self._wake.set()

    def _add(self, request: AdmissionRequest, report: Report | None, *, reinvoked: bool) -> None:
        if report is None and not reinvoked:
            return
        subject = subject_of(request)
        if reinvoked:
            self._withdraw(subject)
        if report is None:
            return
        has_object = subject.name or subject.generate_name if report.is_on_pod else subject.controller
        if not has_object or not is_dns_subdomain(subject.namespace):
            self._count("no_object")
            return
        wall, now = self._clocks.wall_seconds(), self._clocks.monotonic_seconds()
        observation = Observation(report, wall, wall, now + _LINGER_SECONDS, now + _EXPIRY_SECONDS, subject)
        self._put(self._observations, observation)
        self._wake.set()

    def _put(self, backlog: Backlog[T], item: T) -> None:
        if not backlog.put(item):
            self._count("dropped")

    def _withdraw(self, subject: Subject) -> None:
        """Take back the last report of a pod like `subject`."""
        for observation in self._observations.of_namespace(subject.namespace):
            if (
                observation.subject.identity == subject.identity
                and observation.report.is_on_pod
                and not observation.lookups
            ):
                observation.count -= 1
                if not observation.count:
                    self._observations.remove(observation)
                return

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.waiting:
                await self._clocks.sleep(self._until_due_seconds())
                await self.write_due()

    async def drain(self, seconds: float) -> None:
        """Write what waits within `seconds`, and drop the rest. For the end of the process, after `run`."""
        self._pacing.urgent = True
        if not self._pause_seconds:
            try:
                async with asyncio.timeout(seconds):
                    for backlog in (self._observations, self._events):
                        backlog.expedite(self._clocks.monotonic_seconds())
                        await self.write_due()
            except TimeoutError:
                self._log.warning("events are left unwritten at the shutdown", waiting=self.waiting)
        self._count("dropped", self.waiting)

    async def write_due(self) -> None:
        """Look up and write what is due, until a failure. It never raises."""
        if self._next_due_seconds() > self._clocks.monotonic_seconds():
            return
        self._is_writing = True
        try:
            async with self._connect() as server:
                if await self._work_off(self._observations, partial(self._resolve, server)):
                    await self._work_off(self._events, partial(self._write, server))
        except Exception as error:
            # The connection could not be configured, or an internal error.
            self._pause()
            self._log_once(repr(error), "events cannot be written", exc_info=error)
        finally:
            self._is_writing = False

    async def _work_off(self, backlog: Backlog[T], step: Callable[[T, float], Awaitable[None]]) -> bool:
        """Call `step` with what is due; return False to send nothing to the API server for a while."""
        while (item := backlog.take_due(now := self._clocks.monotonic_seconds())) is not None:
            if now > item.expires_seconds:
                self._count("dropped")
                continue
            try:
                await step(item, now)
            except ApiServerError as error:
                if not self._is_rejected(backlog, item, error):
                    return False
        return True

    async def _resolve(self, server: ApiServer, observation: Observation, now: float) -> None:
        """Look up the objects of `observation`."""
        resolution = await self._resolver.resolve(server, observation, now)
        self._count("no_object", resolution.without_object)
        for event in resolution.events:
            self._put(self._events, event)
        if resolution.again is not None:
            self._put(self._observations, resolution.again)

    async def _write(self, server: ApiServer, event: PendingEvent, now: float) -> None:
        """Write `event` now, or put it back until it may be written."""
        if wait_seconds := self._pacing.wait_seconds(event.namespace, event.key, event.source):
            event.due_seconds = now + wait_seconds
            self._events.put(event)
            return
        await self._writer.write(server, event)
        self._count("written")
        self._pause_seconds = 0.0
        if self._logged:
            self._logged = ""
            self._log.info("events are written again")

    def _is_rejected(self, backlog: Backlog[T], item: T, error: ApiServerError) -> bool:
        """Try `item` again later or give it up; return False to send nothing to the API server for a while."""
        is_terminating = _NAMESPACE_TERMINATING in error.causes
        # An admission webhook or policy of one namespace answers 403, too; it holds up no other namespace.
        is_forbidden = error.code == HTTPStatus.FORBIDDEN and _LACKS_RIGHT.search(str(error)) is not None
        is_rejected = 400 <= error.code < 500 and error.code != HTTPStatus.TOO_MANY_REQUESTS and not is_forbidden
        item.failures += 1
        if is_forbidden or is_rejected or item.failures >= _MOST_FAILURES or not backlog.put(item):
            self._count("failed")
        if is_rejected:
            if not is_terminating and error.code not in self._rejections:
                self._rejections.add(error.code)
                self._log.warning("an event is rejected", error=str(error))
            return True
        remedy = {"remedy": _REMEDY} if is_forbidden else {}
        self._log_once(str(error.code), "events cannot be written", error=str(error), **remedy)
        self._pause()
        return False

    def _pause(self) -> None:
        self._pause_seconds = min(max(_FIRST_PAUSE_SECONDS, 2 * self._pause_seconds), _LONGEST_PAUSE_SECONDS)

    def _until_due_seconds(self) -> float:
        wait_seconds = min(self._next_due_seconds() - self._clocks.monotonic_seconds(), _LINGER_SECONDS)
        return max(wait_seconds, self._pause_seconds, _SHORTEST_PAUSE_SECONDS)

    def _next_due_seconds(self) -> float:
        return min(self._observations.next_due_seconds(), self._events.next_due_seconds())

    def _log_once(self, cause: str, message: str, **details: object) -> None:
        """Log a failure unless it has the cause of the last one."""
        if cause != self._logged:
            self._logged = cause
            self._log.warning(message, **details)

    def _count(self, result: str, count: int = 1) -> None:
        self._counter.labels(result).inc(count)
