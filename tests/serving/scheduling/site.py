"""A dispatcher with reviews that wait."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.clusters import cluster_documents
from tests.support.scorers import ScorerOfNoNodes
from tests.support.servers.server import Clock, World, arrival, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Placement, PodSignature
from webhook.placement.scorer import Scorer
from webhook.serving.connection import Connection
from webhook.serving.decisions.admissions import Answer
from webhook.serving.decisions.deciders import WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.scheduling.dispatcher import SMALL_BYTES, Dispatcher
from webhook.serving.work_budget import TimeSliceEndedError

POLICY = policy_with()
SNAPSHOT = snapshot_from_documents(cluster_documents(30, 2))
NOW = "2026-01-31T12:00:00.000000Z"


def large(number: int = 0, user: str = "mallory") -> bytes:
    """A review of more than SMALL_BYTES; pods of one number are replicas of one template."""
    pod = make_pod(f"large-{number}").annotate(TYPE, "training").toleration(operator="Exists")
    resources = {"requests": {"cpu": f"{number + 1}m"}}
    containers = [{"name": "main", "image": "x" * SMALL_BYTES, "resources": resources}]
    return review_bytes(pod.spec(containers=containers).obj(), userInfo={"username": user})


@dataclass
class Gate(ScorerOfNoNodes):
    """A scorer that waits until it is open, then calls the real scorer."""

    framework: Scorer = field(default_factory=lambda: scheduler_for(POLICY))
    open: threading.Event = field(default_factory=threading.Event)
    asked: int = 0
    stopped: int = 0
    entered: Callable[[], None] = lambda: None

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        self.asked += 1
        self.entered()
        self.open.wait(60)
        try:
            return self.framework.answer(asked, snapshot, expired)
        except TimeSliceEndedError:
            self.stopped += 1
            raise


@dataclass
class Site:
    """A running dispatcher whose worker thread scores through the gate."""

    world: World
    gate: Gate
    dispatcher: Dispatcher
    working: asyncio.Event

    def post(self, body: bytes, connection: Connection | None = None, **times: float | None) -> "asyncio.Task[Answer]":
        came = arrival()._replace(connection=connection or Connection(), **times)  # type: ignore[arg-type] # fields
        return asyncio.create_task(self.dispatcher.answer(body, came))

    async def post_and_wait_for_scorer(self, body: bytes) -> "asyncio.Task[Answer]":
        """Post `body` and return once the worker calls the scorer for it."""
        self.working.clear()
        task = self.post(body)
        await self.working.wait()
        return task


def run(
    story: Callable[[Site], Awaitable[None]],
    policy: Mapping[str, Any] | None = None,
    clock: Callable[[], float] | None = None,
) -> World:
    chosen = policy_with(**(policy or {}))
    view = ClusterView(SNAPSHOT, scheduler_for(chosen))
    world = World(policy=chosen, cluster=view, clock=clock or Clock())
    # A decision is reused for ten times its duration: here, each takes a second, and no time passes between requests.
    decisions = Clock()

    async def begin() -> None:
        loop, working, gate = asyncio.get_running_loop(), asyncio.Event(), Gate(scheduler_for(chosen))

        def entered() -> None:
            decisions.seconds += 1
            loop.call_soon_threadsafe(working.set)

        gate.entered = entered
        decider = WorkerDecider(lambda _: gate, monotonic_seconds=decisions)
        admissions = world.admissions().admissions
        dispatcher = Dispatcher(
            admissions, lambda: world.policy, lambda: world.cluster, DecisionCache(), decider, world.clock
        )
        try:
            async with asyncio.timeout(60):
                await story(Site(world, gate, dispatcher, working))
        finally:
            gate.open.set()
            dispatcher.close()

    asyncio.run(begin())
    return world


def response(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200
    found: dict[str, Any] = orjson.loads(answer.body)["response"]
    return found
