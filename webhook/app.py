"""The composition root of the server: the one place where its objects meet."""

import asyncio
import gc
import math
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Protocol, get_args

from webhook.allocator import bound_kept_memory
from webhook.audit.record import Outcome
from webhook.audit.writer import AuditWriter
from webhook.cluster.snapshot import Snapshot
from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import field
from webhook.metrics import Metrics
from webhook.pipeline import ClusterView, scheduler_for
from webhook.placement.framework.result import PlacementVerdict
from webhook.policy.policy import Policy
from webhook.serving.admissions import Admissions, Dependencies
from webhook.serving.certificate import Certificate
from webhook.serving.dispatcher import Dispatcher
from webhook.serving.group_commit import GroupCommit
from webhook.serving.health import Health
from webhook.serving.http import REFUSALS, MutateEndpoint
from webhook.serving.lanes import LargeLane, SmallLane, TimedScorer
from webhook.serving.predictions import Predictions
from webhook.serving.server import Server
from webhook.settings import Settings
from webhook.verdict import Patched, Unchanged, Verdict
from webhook.watch.api_server import Source
from webhook.watch.live import LiveCluster
from webhook.watch.timing import timing_for

_GLANCE_SECONDS = 0.02
# The scorer of the worker thread hardly sees a question twice: the verdicts are kept instead.
_LARGE_BYTES = 1024 * 1024
# Between two threads that both want the processor, the event loop gets it back this soon.
_SWITCH_SECONDS = 0.001
# By a random hexadecimal digit, the one that marks a UUID of RFC 9562.
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


class View(Protocol):
    """A view of a cluster: a file's, or a live one."""

    @property
    def is_live(self) -> bool:
        """Whether it follows a cluster, so that it can be late."""
        ...

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now."""
        ...

    def age_seconds(self) -> float:
        """How long ago it was last known to be current; infinite before the first time."""
        ...


class FixedView:
    """A snapshot that stays, taken now."""

    is_live = False

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._taken_seconds = time.monotonic()

    def snapshot(self) -> Snapshot:
        """The snapshot."""
        return self._snapshot

    def age_seconds(self) -> float:
        """How long ago it was taken."""
        return time.monotonic() - self._taken_seconds


def stale_reason(view: View, longest_seconds: float) -> str:
    """Why `view` cannot be relied on, empty where it can."""
    age_seconds = view.age_seconds()
    if not view.is_live or age_seconds <= longest_seconds:
        return ""
    if math.isinf(age_seconds):
        return "the view of the cluster is not there yet"
    return f"the view of the cluster is too old: {age_seconds:.0f} s, at most {longest_seconds:g} s are allowed"


class Glance:
    """A look at the cluster that admissions close to one another share.

    While events come by the hundred a second, each would else be answered on a snapshot of its own, and nothing worked
    out for one pod would hold for the next of its kind. It is late by `_GLANCE_SECONDS` at most, beside its watch.
    """

    def __init__(self, look: Callable[[], ClusterView], monotonic_seconds: Callable[[], float]) -> None:
        self._look = look
        self._monotonic_seconds = monotonic_seconds
        self._seen: ClusterView | None = None
        self._until_seconds = 0.0

    def __call__(self) -> ClusterView:
        """The cluster as it is now, or was a moment ago."""
        now_seconds = self._monotonic_seconds()
        if self._seen is None or now_seconds >= self._until_seconds:
            self._seen = self._look()
            self._until_seconds = now_seconds + _GLANCE_SECONDS
        return self._seen


def live_view(source: Source, metrics: Metrics, predictions: Predictions, policy: Policy) -> LiveCluster:
    """The view of the cluster of `source`, once it runs, as young as `policy` wants it.

    Bound pods are compared with `predictions`.
    """

    def compare(pod: Mapping[str, Any]) -> None:
        if result := predictions.compare(pod):
            metrics.predictions.labels(result).inc()

    # What a page left behind stays: the collector need not look at tens of thousands of pods on each of its rounds.
    return LiveCluster(
        source.connect,
        timing=timing_for(policy.spec.placement_check.max_view_age_seconds),
        on_bound=compare,
        on_page=gc.freeze,
        on_fault=metrics.feed_faults.inc,
    )


def build_server(
    settings: Settings,
    policy: Policy,
    view: View | None,
    audit: AuditWriter,
    metrics: Metrics,
    predictions: Predictions | None = None,
) -> Server:
    """The server, ready to run. What it foretells goes to `predictions`.

    Raises:
        InvalidInput: the certificate cannot be served.
    """
    certificate = Certificate(settings.tls_dir, metrics, lambda: datetime.now(UTC))
    metrics.start_at_zero(get_args(Outcome), get_args(PlacementVerdict), REFUSALS)
    metrics.policy.info({"name": policy.name, "revision": policy.revision})
    metrics.policy_reloads.labels("success").inc()
    check = policy.spec.placement_check
    small_scorer = scheduler_for(policy)
    scorer = TimedScorer(small_scorer, metrics.placement_seconds.observe)
    glance: Glance | None = None
    if view is not None:
        glance = Glance(
            lambda: ClusterView(view.snapshot(), scorer, stale_reason(view, check.max_view_age_seconds)), time.monotonic
        )
        _show_view(metrics, glance, view)
    turns = GroupCommit(audit)
    surroundings = Dependencies(
        audit=turns.audit,
        monotonic_seconds=time.monotonic,
        new_decision=Decisions(),
        replica=settings.replica,
        foretold=partial(_remember, predictions) if predictions is not None else lambda *_: None,
    )
    small, large_scorer = SmallLane(), scheduler_for(policy, _LARGE_BYTES)
    large = LargeLane(TimedScorer(large_scorer, metrics.placement_seconds.observe))
    placements = {"placements": (*small_scorer.caches, *large_scorer.caches)}
    metrics.show_caches({**small.caches, **large.caches, **placements})
    dispatcher = Dispatcher(Admissions(surroundings, metrics), lambda: policy, glance or (lambda: None), small, large)
    endpoint = MutateEndpoint(dispatcher, metrics, settings, turns.written, rfc3339_now)
    return Server(settings, certificate, endpoint, Health(metrics, certificate.doubt), metrics)


def _show_view(metrics: Metrics, glance: Glance, view: View) -> None:
    """Let the metrics tell of the view that admissions look at."""
    metrics.view_follows(
        lambda: len(glance().snapshot.nodes), lambda: int(glance().snapshot.load.pods.sum()), view.age_seconds
    )


def _remember(
    predictions: Predictions, request: AdmissionRequest, verdict: Verdict, cluster: ClusterView | None, policy: Policy
) -> None:
    """Remember what is foretold of a pod that will come to be."""
    if request.dry_run or cluster is None or not isinstance(verdict, (Patched, Unchanged)):
        return
    pod = request.object or {}
    annotations = field(pod, "metadata", "annotations") or {}
    predictions.remember(
        request.namespace,
        pod,
        verdict.placement,
        cluster.snapshot.rows,
        time.time(),
        again=policy.policy_annotation in annotations,
    )


def serve_until_signalled(server: Server, live: LiveCluster | None = None) -> None:
    """Run `server` until SIGTERM or SIGINT, on uvloop where it can be had, and `live` beside it."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    bound_kept_memory()
    with asyncio.Runner(loop_factory=_event_loop()) as runner:
        runner.run(_until_signalled(server, live))


async def _until_signalled(server: Server, live: LiveCluster | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # What is there by now (modules, policy, view) stays: the collector need not look at it on each of its rounds.
    gc.freeze()
    async with beside(live):
        await server.run(stop)


@asynccontextmanager
async def beside(live: LiveCluster | None) -> AsyncIterator[None]:
    """Follow the live cluster, if there is one, until the block ends."""
    if live is None:
        yield
        return
    following = asyncio.create_task(live.run(), name="live cluster")
    try:
        yield
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def rfc3339_now() -> str:
    """The time in UTC with microseconds: `2026-01-31T12:00:00.000000Z`."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_rfc3339_seconds(seconds)}.{nanoseconds // 1000:06}Z"


@lru_cache(maxsize=1)
def _rfc3339_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class Decisions:
    """Identifiers of decisions: random UUIDs (version 4), of which the random bytes are fetched for many at once.

    `uuid.uuid4()` fetches them for each, and takes 3 to 4 % of the processor time of a request for a pod like the last.
    """

    def __init__(self) -> None:
        self._stock: list[str] = []

    def __call__(self) -> str:
        """One that nobody had before."""
        if not self._stock:
            digits = os.urandom(16 * 256).hex()
            self._stock = [digits[at : at + 32] for at in range(0, len(digits), 32)]
        digits = self._stock.pop()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"
