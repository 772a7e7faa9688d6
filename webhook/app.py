"""The composition root of the server: the one place where its objects meet."""

import asyncio
import gc
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

import structlog

from webhook.audit.record import Outcome
from webhook.audit.writer import AuditWriter
from webhook.cluster.snapshot import Snapshot
from webhook.metrics import Metrics
from webhook.pipeline import Cluster
from webhook.placement.framework import Framework, Placement, Question
from webhook.placement.profile import PROFILES
from webhook.placement.result import PlacementVerdict
from webhook.policy.policy import Policy
from webhook.serving import tls
from webhook.serving.admissions import Admissions, Surroundings
from webhook.serving.health import Health
from webhook.serving.http import REFUSALS, MutateEndpoint
from webhook.serving.server import Server
from webhook.settings import Settings

_FEW_DAYS = timedelta(days=30)
_RENEWAL = "renew it (`placement-webhook certs issue`, or whoever issued it) and restart"


@dataclass(frozen=True, slots=True)
class TimedScorer:
    """A framework whose placements are timed into the metrics."""

    framework: Framework
    metrics: Metrics

    def answer(self, asked: Question, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """What the framework says."""
        with self.metrics.placement_seconds.time():
            return self.framework.answer(asked, snapshot, expired)


def build_server(
    settings: Settings, policy: Policy, snapshot: Snapshot | None, audit: AuditWriter, metrics: Metrics
) -> Server:
    """The server, ready to run.

    Raises:
        InvalidInput: the certificate cannot be served.
    """
    context = tls.server_context(settings.tls_dir)
    validity = tls.validity(settings.tls_dir)
    metrics.certificate_not_after.set(validity.not_after.timestamp())
    _tell_validity(validity, datetime.now(UTC))
    metrics.start_at_zero(get_args(Outcome), get_args(PlacementVerdict), REFUSALS)
    metrics.policy.info({"name": policy.name, "revision": policy.revision})
    metrics.policy_reloads.labels("success").inc()
    cluster = None
    if snapshot is not None:
        framework = Framework(PROFILES[policy.spec.placement_check.profile])
        cluster = Cluster(snapshot, TimedScorer(framework, metrics))
        taken_seconds = time.monotonic()
        metrics.cluster_nodes.set(len(snapshot.nodes))
        metrics.cluster_pods.set(int(snapshot.load.pods.sum()))
        metrics.age_follows(lambda: time.monotonic() - taken_seconds)
    surroundings = Surroundings(
        policy=lambda: policy,
        cluster=lambda: cluster,
        audit=audit.write,
        monotonic_seconds=time.monotonic,
        now=rfc3339_now,
        new_decision=lambda: str(uuid.uuid4()),
        replica=settings.replica,
    )
    endpoint = MutateEndpoint(Admissions(surroundings, metrics), metrics, settings)
    return Server(settings, context, endpoint, Health(metrics))


def _tell_validity(validity: tls.Validity, now: datetime) -> None:
    """Log a certificate that the API server will not trust, or will not for long: it is served all the same."""
    log = structlog.get_logger().bind(not_after=validity.not_after.isoformat(), remedy=_RENEWAL)
    if now > validity.not_after:
        log.error("the certificate has expired: no API server trusts it")
    elif now < validity.not_before:
        log.error("the certificate is not valid yet", not_before=validity.not_before.isoformat())
    elif validity.not_after - now < _FEW_DAYS:
        log.warning("the certificate expires soon", days_left=(validity.not_after - now).days)


def serve_until_signalled(server: Server) -> None:
    """Run `server` until SIGTERM or SIGINT, on uvloop where it can be had."""
    with asyncio.Runner(loop_factory=_event_loop()) as runner:
        runner.run(_until_signalled(server))


async def _until_signalled(server: Server) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # What is there by now (modules, policy, view) stays: the collector need not look at it on each of its rounds.
    gc.freeze()
    await server.run(stop)


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def rfc3339_now() -> str:
    """The time in UTC with microseconds: `2026-01-31T12:00:00.000000Z`."""
    return datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
