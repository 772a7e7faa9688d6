"""Schedules reviews: small ones in the event loop, large and costly ones in a worker thread.

The event loop answers small reviews at once, and in fair turns where too many arrive. A review waits in a fair queue
for the worker thread if it is large, if its scorer needs more than one turn, or if its user or namespace has exceeded
its turns lately. The interpreter switches threads every millisecond, so normal pods and `/healthz` do not wait for the
worker. ARCHITECTURE.md says why it is a thread and not a process.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from webhook.allocator import give_memory_back
from webhook.pipeline import ClusterView
from webhook.policy.policy import Policy
from webhook.serving.admissions import Admissions, Answer, Decision
from webhook.serving.fair_queue import FairQueue, Ledger, payers
from webhook.serving.lanes import Lane
from webhook.serving.work_budget import TimeSliceEndedError, WorkBudget

# A review of a pod that people write has a few KiB; one of 32 KiB costs a few milliseconds without the scorer.
SMALL_BYTES = 32 * 1024
# A cold placement takes 0.3 to 3 ms at 5,000 to 15,000 nodes.
_TIME_SLICE_SECONDS = 0.01
# So much is answered at once before the loop looks after connections, health and metrics again.
_PASS_SECONDS = 0.01
# Beyond that a review costs more than a pod like the ones before it does.
_CHEAP_SECONDS = 0.0005
# More than that in the last seconds is more than others need.
_SHARE_SECONDS = 0.05

# Work that takes so long took memory, too.
_COSTLY_SECONDS = 0.03

CLIENT_GONE = 499
"""The status under which a request is counted whose client left before its turn (as nginx logs it)."""


class Timeouts(NamedTuple):
    """When one request's time is over, on the monotonic clock.

    After `deadline_seconds` the placement check is given up; after `overdue_seconds` the client has given up.
    """

    arrived_seconds: float
    deadline_seconds: float | None
    overdue_seconds: float


class OverdueError(Exception):
    """The client has given up by now."""


class _Job:
    """One review that waits for the worker, or that it works on."""

    def __init__(self, body: bytes, timeouts: Timeouts, now: str, answer: "asyncio.Future[Answer]") -> None:
        self.body = body
        self.timeouts = timeouts
        self.now = now
        self.answer = answer
        self.payers = payers(body)
        self.work_budget: WorkBudget | None = None


Finished = Decision | BaseException


class Dispatcher:
    """Gives each review its turn. An instance is for one event loop.

    While `draining`, no scorer is asked any more, so that what waits is soon answered.
    """

    def __init__(
        self,
        admissions: Admissions,
        policy: Callable[[], Policy],
        cluster: Callable[[], ClusterView | None],
        small: Lane,
        large: Lane,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.draining = False
        self._admissions = admissions
        self._policy = policy
        self._cluster = cluster
        self._small = small
        self._large = large
        self._monotonic_seconds = monotonic_seconds
        self._ledger = Ledger(monotonic_seconds)
        # The cost of reviews beyond one turn. Normal work is not charged here, so it stays in the event loop.
        self._overruns = Ledger(monotonic_seconds)
        self._queue: FairQueue[_Job] = FairQueue(self._ledger)
        self._running: _Job | None = None
        self._worker: _Worker | None = None
        self._worked_seconds = 0.0
        self._small_queue: FairQueue[asyncio.Future[None]] = FairQueue(self._ledger)
        self._is_busy = False

    @property
    def waiting(self) -> int:
        """How many reviews wait for the worker, the one that it works on included."""
        return len(self._queue) + (self._running is not None)

    async def answer(self, body: bytes, timeouts: Timeouts, now: str) -> Answer:
        """Return the answer to the review in `body`, which came at `now` (RFC 3339).

        Raises:
            OverdueError: its turn did not come in time.
        """
        if len(body) <= SMALL_BYTES and not (self._overruns and self._has_had_its_share(body)):
            if self._is_busy:
                await self._place(body)
            began_seconds = time.perf_counter()
            try:
                if self._monotonic_seconds() >= timeouts.overdue_seconds:
                    raise OverdueError
                return self._at_once(body, timeouts, now)
            except TimeSliceEndedError:
                self._overruns.charge(payers(body), _TIME_SLICE_SECONDS)
            finally:
                self._worked(body, time.perf_counter() - began_seconds)
        return await self._in_turn(body, timeouts, now)

    def close(self) -> None:
        """End the worker, once it is done with what it works on."""
        if self._worker is not None:
            self._worker.end()

    async def _place(self, body: bytes) -> None:
        """Wait for the turn of a small review, where there are too many to answer all at once."""
        turn = asyncio.get_running_loop().create_future()
        self._small_queue.put(turn, payers(body))
        try:
            await turn
        except asyncio.CancelledError:
            self._small_queue.remove(turn)
            if turn.done() and not turn.cancelled():
                self._next_small()
            raise

    def _worked(self, body: bytes, seconds: float) -> None:
        """Note the work for a small review; after so much of it, the loop looks after everything else first."""
        if seconds > _CHEAP_SECONDS:
            self._ledger.charge(payers(body), seconds)
        self._worked_seconds += seconds
        if self._worked_seconds >= _PASS_SECONDS:
            self._worked_seconds, self._is_busy = 0.0, True
            asyncio.get_running_loop().call_soon(self._next_small)
        elif self._is_busy:
            self._next_small()

    def _next_small(self) -> None:
        while len(self._small_queue):
            turn = self._small_queue.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False

    def _has_had_its_share(self, body: bytes) -> bool:
        return self._overruns.worked_seconds(payers(body)) > _SHARE_SECONDS

    def _at_once(self, body: bytes, timeouts: Timeouts, now: str) -> Answer:
        work_budget = self._work_budget(timeouts, _TIME_SLICE_SECONDS)
        decided = self._admissions.decide(self._small, body, self._policy(), self._cluster(), work_budget)
        return self._admissions.finish(decided, now, timeouts.arrived_seconds)

    async def _in_turn(self, body: bytes, timeouts: Timeouts, now: str) -> Answer:
        job = _Job(body, timeouts, now, asyncio.get_running_loop().create_future())
        self._queue.put(job, job.payers)
        self._start_next()
        try:
            return await job.answer
        except asyncio.CancelledError:
            self._queue.remove(job)
            if job.work_budget is not None:
                job.work_budget.abandoned = True
            self._admissions.refused(CLIENT_GONE)
            raise

    def _work_budget(self, timeouts: Timeouts, slice_seconds: float | None) -> WorkBudget:
        return WorkBudget(
            float("-inf") if self.draining else timeouts.deadline_seconds,
            self._policy().spec.placement_check.work_budget_milliseconds,
            monotonic_seconds=self._monotonic_seconds,
            cpu_seconds=time.thread_time,
            slice_seconds=slice_seconds,
        )

    def _start_next(self) -> None:
        """Hand the worker the next review, unless it still works on one or none waits."""
        while self._running is None and len(self._queue):
            job = self._queue.take()
            if job.answer.done():
                # Its client has just left, and the task that waits for it has not run since.
                continue
            if self._monotonic_seconds() >= job.timeouts.overdue_seconds:
                job.answer.set_exception(OverdueError())
                continue
            try:
                self._work(job)
            except Exception as error:
                job.answer.set_exception(error)

    def _work(self, job: _Job) -> None:
        policy, cluster, work_budget = self._policy(), self._cluster(), self._work_budget(job.timeouts, None)
        decide, lane = self._admissions.decide, self._large
        if self._worker is None:
            self._worker = _Worker(asyncio.get_running_loop())
        job.work_budget, self._running = work_budget, job
        self._worker.work(
            lambda: decide(lane, job.body, policy, cluster, work_budget),
            lambda finished, seconds: self._done(job, finished, seconds),
        )

    def _done(self, job: _Job, finished: Finished, seconds: float) -> None:
        self._running = None
        self._ledger.charge(job.payers, seconds)
        self._overruns.charge(job.payers, max(0.0, seconds - _TIME_SLICE_SECONDS))
        try:
            if not job.answer.done():
                job.answer.set_result(self._finish(job, finished))
        except Exception as error:
            if not job.answer.done():
                job.answer.set_exception(error)
        finally:
            self._start_next()

    def _finish(self, job: _Job, finished: Finished) -> Answer:
        if isinstance(finished, BaseException):
            raise finished
        return self._admissions.finish(finished, job.now, job.timeouts.arrived_seconds)


class _Worker:
    """A thread that works on one thing after the other, and tells `loop` of each when it is done."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: SimpleQueue[tuple[Callable[[], Decision], Callable[[Finished, float], None]] | None] = (
            SimpleQueue()
        )
        # A daemon, so that the process can end while it works.
        self._thread = threading.Thread(target=self._run, name="large admissions", daemon=True)
        self._thread.start()

    def work(self, task: Callable[[], Decision], done: Callable[[Finished, float], None]) -> None:
        """Run `task` in the thread, then `done` in the loop, with its result and the processor time that it took."""
        self._tasks.put((task, done))

    def end(self) -> None:
        """End the thread after what it was given so far."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (given := self._tasks.get()) is not None:
            task, done = given
            began_seconds = time.thread_time()
            finished: Finished
            try:
                finished = task()
            except BaseException as error:
                finished = error
            seconds = time.thread_time() - began_seconds
            try:
                self._loop.call_soon_threadsafe(done, finished, seconds)
            except RuntimeError:  # the loop is closed: the process ends
                return
            # Held until the next task comes, else: a review can be of 3 MiB, and a verdict too.
            del given, task, done, finished
            if seconds >= _COSTLY_SECONDS:
                give_memory_back()
