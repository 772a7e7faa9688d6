"""Schedule reviews: small ones in the event loop; large and expensive ones, and other work, in a worker thread.

The event loop answers small reviews immediately, or from a fair queue if too many arrive. A review waits in a fair
queue for the worker thread if it is large, if its scorer needs more than one time slice, or if its user, namespace or
address has recently exceeded its time slices. The interpreter switches threads ten times in a millisecond, so normal
pods and `/healthz` do not wait for the worker. docs/design.md explains why the worker is a thread and not a process.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from webhook.admission.cluster_view import ClusterView
from webhook.policy.policy_set import PolicyOrSet, may_be_in_shadow
from webhook.serving.connection import Arrival, Connection, Stage
from webhook.serving.decisions.admissions import Admissions, Answer, Decision
from webhook.serving.decisions.deciders import Decider
from webhook.serving.scheduling.fair_queue import FairQueue, UsageTracker, flows
from webhook.serving.scheduling.overruns import TIME_SLICE_SECONDS, Overruns
from webhook.serving.scheduling.work import (
    CLIENT_GONE,
    MOST_QUEUED_OF_AN_ADDRESS,
    Job,
    LimitError,
    OverdueError,
    QueueFullError,
    Turn,
    Work,
)
from webhook.serving.scheduling.worker import Worker
from webhook.serving.work_budget import TimeSliceEndedError, WorkBudget

# The review of a hand-written pod has a few KiB; one of 32 KiB takes a few milliseconds without the scorer.
SMALL_BYTES = 32 * 1024
# After so much work on small reviews, the loop serves connections, health and metrics first.
_BATCH_SECONDS = 0.01
# The rest of the worker between two steps of its work while small reviews wait.
_WAY_SECONDS = 0.001
# Taking one from the queue is linear in those that wait.
_MOST_TAKEN = 64
# A cached decision takes less, and is not charged to its flows.
_MIN_CHARGED_SECONDS = 0.0005


class Dispatcher:
    """Schedules reviews in one event loop and a worker thread. While `draining`, the scorer is skipped."""

    def __init__(
        self,
        admissions: Admissions,
        policy: Callable[[], PolicyOrSet],
        cluster: Callable[[], ClusterView | None],
        small: Decider,
        large: Decider,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.draining = False
        self._admissions = admissions
        self._policy = policy
        self._cluster = cluster
        self._small = small
        self._large = large
        self._monotonic_seconds = monotonic_seconds
        self._usage = UsageTracker(monotonic_seconds)
        self._overruns = Overruns(monotonic_seconds)
        self._queue: FairQueue[Job] = FairQueue(self._usage)
        self._running: Job | None = None
        self._worker: Worker | None = None
        self._small_queue: FairQueue[Turn] = FairQueue(self._usage)
        self._batch_seconds = self._last_seconds = 0.0
        self._is_busy = self._is_batch_scheduled = False

    @property
    def waiting(self) -> int:
        """Return the number of reviews that wait for the worker, including the one that it processes."""
        return len(self._queue) + (self._running is not None)

    def answer_at_once(self, body: bytes, arrival: Arrival) -> Answer | None:
        """Return the response to a small review, or None if it must wait for its turn.

        Raises:
            OverdueError: the client has timed out.
        """
        connection = arrival.connection
        if self._is_busy or len(body) > SMALL_BYTES or self._overruns.exceeding(body, connection.address, regains=True):
            return None
        answer = self._answer_in_slice(body, arrival)
        connection.sliced_seconds = arrival.arrived_seconds if answer is None else None
        return answer

    async def answer(self, body: bytes, arrival: Arrival) -> Answer:
        """Return the response to the review in `body`.

        Raises:
            OverdueError: the client timed out while the review waited.
            QueueFullError: too many reviews of the client's address wait.
        """
        connection = arrival.connection
        in_loop, connection.sliced_seconds = len(body) <= SMALL_BYTES and connection.sliced_seconds is None, None
        overrunning = self._overruns.exceeding(body, connection.address, regains=in_loop)
        if in_loop and not overrunning and self._is_busy:
            overrunning = await self._wait_for_turn(body, connection)
        if in_loop and not overrunning:
            answer = self._answer_in_slice(body, arrival)
            if answer is not None:
                return answer
        return await self.answer_in_worker(
            Work(
                flows(body),
                partial(self._begin, body),
                lambda decision: self._admissions.finish(decision, arrival),
                overrunning,
            ),
            arrival,
        )

    @property
    def may_be_in_shadow(self) -> bool:
        """Return whether any policy is in shadow mode. Then it is worth reading the beginning of a body."""
        return may_be_in_shadow(self._policy())

    def answer_refused(self, error: LimitError, arrival: Arrival) -> Answer:
        """Return the response that allows a review unchanged although it was not read to its end because of `error`.

        Raises:
            HTTPException: the policy is not in shadow mode, or the beginning does not show which policy is in force.
        """
        decision = self._admissions.refuse(error.beginning, self._policy(), self._cluster(), error)
        if decision is None:
            raise error.refusal from error
        return self._admissions.finish(decision, arrival)

    def close(self) -> None:
        """Stop the worker after its current review."""
        if self._worker is not None:
            self._worker.end()

    async def _wait_for_turn(self, body: bytes, connection: Connection) -> tuple[bytes, ...]:
        """Wait for the turn of a small review, and return those of its flows that exceed their share by then."""
        turn = Turn(asyncio.get_running_loop().create_future(), body, connection)
        self._small_queue.put(turn, flows(body), connection.address)
        connection.stage = Stage.QUEUED
        try:
            overrunning = await turn.came
        except asyncio.CancelledError:
            self._small_queue.remove(turn)
            raise
        connection.stage = Stage.PROCESSING
        return overrunning

    def _answer_in_slice(self, body: bytes, arrival: Arrival) -> Answer | None:
        """Return the response to a small review, or None if it takes more than a time slice of the event loop."""
        # If others wait, the time in which this thread waits for the worker is not the client's. Otherwise, the cheaper
        # clock is enough.
        clock, address = time.thread_time if self._is_busy else time.perf_counter, arrival.connection.address
        began_seconds = clock()
        slice_seconds = self._overruns.slice_seconds(address) if self._overruns.used else TIME_SLICE_SECONDS
        try:
            if self._monotonic_seconds() >= arrival.overdue_seconds:
                raise OverdueError
            policies = self._policy()
            work_budget = self._work_budget(arrival, slice_seconds, policies)
            decision = self._admissions.decide(self._small, body, policies, self._cluster(), work_budget)
            return self._admissions.finish(decision, arrival)
        except TimeSliceEndedError:
            self._overruns.add_slice(body, address)
            return None
        finally:
            self._charge_small(body, address, clock() - began_seconds)

    def _charge_small(self, body: bytes, address: str, seconds: float) -> None:
        """Charge the work for a small review. Further reviews wait once the work of this loop iteration is a batch."""
        if seconds > _MIN_CHARGED_SECONDS:
            self._usage.charge(flows(body), seconds)
            self._small_queue.charge(address, seconds)
        self._last_seconds = seconds
        self._batch_seconds += seconds
        if self._batch_seconds >= _BATCH_SECONDS:
            self._is_busy = True
        if not self._is_batch_scheduled:
            self._schedule_batch()

    def _schedule_batch(self) -> None:
        self._is_batch_scheduled = True
        asyncio.get_running_loop().call_soon(self._begin_batch)

    def _begin_batch(self) -> None:
        """Start a batch of the waiting small reviews, those whose flows have the least work."""
        self._is_batch_scheduled, self._batch_seconds = False, 0.0
        # As many as were like the last one take the time of a batch.
        size = max(1, int(_BATCH_SECONDS / max(self._last_seconds, _MIN_CHARGED_SECONDS)))
        for _ in range(min(len(self._small_queue), _MOST_TAKEN)):
            turn = self._small_queue.take()
            if not turn.came.done():
                overrunning = self._overruns.exceeding(turn.body, turn.connection.address, regains=False)
                turn.came.set_result(overrunning)
                if overrunning:
                    # It goes on to the worker and takes little time of the event loop, but others have their turn next.
                    self._small_queue.charge(turn.connection.address, _MIN_CHARGED_SECONDS)
                else:
                    size -= 1
            if not size:
                break
        self._is_busy = len(self._small_queue) > 0
        if self._is_busy:
            self._schedule_batch()

    def _begin(self, body: bytes, work_budget: WorkBudget) -> Callable[[], Decision | Answer]:
        policy, cluster = self._policy(), self._cluster()
        if cluster is not None and cluster.assumed is not None:
            # The event loop changes the pods that wait while the worker thread reads them.
            cluster = replace(cluster, assumed=cluster.assumed.copy())
        return partial(self._admissions.decide, self._large, body, policy, cluster, work_budget)

    async def answer_in_worker(self, work: Work, arrival: Arrival) -> Answer:
        """Return the response to a request after its `work`, which waits in the fair queue for the worker.

        Raises:
            OverdueError: the client timed out while the work waited.
            QueueFullError: too many requests of the client's address wait, and the others have used less time.
        """
        job, connection = Job(work, arrival, asyncio.get_running_loop().create_future()), arrival.connection
        connection.stage = Stage.QUEUED
        self._queue.put(job, work.flows, connection.address)
        if self._queue.waiting_of(connection.address) > MOST_QUEUED_OF_AN_ADDRESS:
            last = self._queue.take_last(connection.address)
            if not last.answer.done():
                last.answer.set_exception(QueueFullError())
        self._start_next()
        try:
            return await job.answer
        except asyncio.CancelledError:
            self._queue.remove(job)
            if job.work_budget is not None:
                job.work_budget.abandoned = True
            self._admissions.count_refusal(CLIENT_GONE)
            raise

    def _work_budget(self, arrival: Arrival, slice_seconds: float | None, policies: PolicyOrSet) -> WorkBudget:
        return WorkBudget(
            float("-inf") if self.draining else arrival.deadline_seconds,
            policies.spec.placement_check.work_budget_milliseconds,
            monotonic_seconds=self._monotonic_seconds,
            cpu_seconds=time.thread_time,
            slice_seconds=slice_seconds,
            give_way=self._give_way if slice_seconds is None else None,
        )

    def _give_way(self) -> None:
        """Yield the interpreter to the event loop while small reviews wait. Called in the worker thread."""
        if self._is_busy:
            time.sleep(_WAY_SECONDS)

    def _start_next(self) -> None:
        """Pass the next review to the worker, unless the worker is busy or no review waits."""
        while self._running is None and len(self._queue):
            job = self._queue.take()
            if job.answer.done():
                # Its client has disconnected, and the cancelled task has not run yet.
                continue
            if self._monotonic_seconds() >= job.arrival.overdue_seconds:
                job.answer.set_exception(OverdueError())
                continue
            try:
                self._start(job)
            except Exception as error:
                job.answer.set_exception(error)

    def _start(self, job: Job) -> None:
        work_budget = self._work_budget(job.arrival, None, self._policy())
        task = partial(job.context.run, job.work.begin(work_budget))
        if self._worker is None:
            self._worker = Worker(asyncio.get_running_loop())
        job.work_budget, self._running = work_budget, job
        job.arrival.connection.stage = Stage.PROCESSING
        self._worker.work(task, lambda finished, seconds: self._complete(job, finished, seconds))

    def _complete(self, job: Job, finished: Any, seconds: float) -> None:
        self._running = None
        self._usage.charge(job.work.flows, seconds)
        self._queue.charge(job.arrival.connection.address, seconds)
        self._overruns.add_work(job.work.overrunning or job.work.flows, seconds)
        try:
            if job.answer.done():
                return
            if isinstance(finished, BaseException):
                job.answer.set_exception(finished)
            else:
                job.answer.set_result(job.context.run(job.work.finish, finished))
        except Exception as error:
            job.answer.set_exception(error)
        finally:
            self._start_next()
