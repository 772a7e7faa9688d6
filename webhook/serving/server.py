"""Run the two listeners in an event loop, from the start until a signal and a graceful shutdown.

    starting --both listen--> ready --stop set--> draining --delay, then nothing in flight--> gone

A draining server is not ready but still answers, because load balancers and the API server need a moment to stop
calling it.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy.ma  # noqa: F401 - np.unique loads it at its first call, which would hold up an admission
import structlog

from webhook.events.recorder import EventRecorder
from webhook.runtime.allocator import bound_kept_memory
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Address, Settings
from webhook.serving.event_loop import event_loop
from webhook.serving.http.arrivals import Limits
from webhook.serving.http.certificate import Certificate
from webhook.serving.http.endpoint import MutateEndpoint
from webhook.serving.http.health import Health
from webhook.serving.http.listener import Listener
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.scheduling.worker import in_background
from webhook.watch.live import LiveCluster

if TYPE_CHECKING:
    from webhook.serving.exported.exported_policy import ExportedPolicy

# Longer than the 90 s after which Go's client drops an idle connection, so that it never sends into a closing one.
_KEEPALIVE_SECONDS = 120.0
# The longest time that the event loop waits for the worker thread to release the interpreter. Each system call of the
# loop lets that thread in, so with many connections a longer time would be most of what the loop does.
_SWITCH_SECONDS = 0.0001
# The number of new objects between two passes of the garbage collector. The objects of waiting pods stay, so with the
# lower default of Python, its passes over them take 3 % of a burst.
_COLLECTED_AT_ONCE = 5_000
# The longest time that a stopping server takes to write its last Events.
_DRAIN_SECONDS = 3.0

# The kubelet and Prometheus, each with a few connections.
_ADMIN_LIMITS = Limits(most=64, most_per_address=32, head_seconds=5.0, keepalive_seconds=30.0)


class Server:
    """Serves `/mutate` over TLS and the admin endpoints without TLS, until it is stopped."""

    def __init__(
        self,
        settings: Settings,
        certificate: Certificate,
        endpoint: MutateEndpoint,
        health: Health,
        metrics: Metrics,
        description: Mapping[str, str] = MappingProxyType({}),
        policy_file: PolicySource | None = None,
    ) -> None:
        self._policy_file = policy_file
        self._description = description
        self._settings = settings
        self._certificate = certificate
        self._endpoint = endpoint
        self._health = health
        self._metrics = metrics
        self._log = structlog.get_logger()

    async def run(self, stop: asyncio.Event, on_ready: Callable[[Address, Address], None] = lambda *_: None) -> None:
        """Serve until `stop` is set, then drain. `on_ready` is called with the two addresses with resolved ports.

        Raises:
            InvalidInput: an address cannot be listened on.
        """
        settings, metrics = self._settings, self._metrics
        admin = Listener(
            self._health.answer,
            _ADMIN_LIMITS,
            count_failure=self._count_failure,
            count_closed=partial(self._count_closed, "admin"),
        )
        limits = Limits(
            settings.max_connections,
            settings.max_connections_per_address,
            settings.read_timeout_seconds,
            _KEEPALIVE_SECONDS,
        )
        webhook = Listener(
            self._endpoint.answer,
            limits,
            tls=self._certificate.current,
            count_failure=self._count_failure,
            count_closed=partial(self._count_closed, "webhook"),
            at_once=self._endpoint.answer_at_once,
            when_written=self._endpoint.commit.when_written,
        )
        metrics.connections.labels("webhook").set_function(lambda: webhook.connections)
        metrics.connections.labels("admin").set_function(lambda: admin.connections)
        file = self._policy_file
        async with (
            self._certificate.polled(settings.certificate_poll_seconds),
            file.polled(settings.policy_poll_seconds) if file else nullcontext(),
        ):
            await self._serve(webhook, admin, stop, on_ready)
        self._log.info("stopped")

    async def reload_policy(self) -> None:
        """Read the policy file again at once, if there is one."""
        if self._policy_file is None:
            self._log.info("there is no policy file to read again")
        else:
            await self._policy_file.reload()

    async def _serve(
        self,
        webhook: Listener,
        admin: Listener,
        stop: asyncio.Event,
        on_ready: Callable[[Address, Address], None],
    ) -> None:
        settings = self._settings
        try:
            admin_address = await admin.start("--admin-listen", settings.admin_listen)
            address = await webhook.start("--listen", settings.listen)
            self._health.ready = True
            self._log.info("serving", webhook=str(address), admin=str(admin_address), **self._description)
            on_ready(address, admin_address)
            await stop.wait()
            self._health.ready = False
            self._log.info("stopping", delay_seconds=settings.shutdown_delay_seconds)
            self._endpoint.draining = True
            await asyncio.sleep(settings.shutdown_delay_seconds)
        finally:
            self._endpoint.dispatcher.draining = True
            await webhook.close(settings.grace_seconds)
            self._endpoint.dispatcher.close()
            await admin.close(0)

    def _count_failure(self, status: int) -> None:
        self._metrics.refused_requests.labels(str(status)).inc()

    def _count_closed(self, port: str, result: str) -> None:
        self._metrics.connections_closed.labels(port, result).inc()


def serve_until_signalled(
    server: Server,
    live: LiveCluster | None = None,
    events: EventRecorder | None = None,
    exported: "ExportedPolicy | None" = None,
) -> None:
    """Run the server and its tasks until SIGTERM or SIGINT, on uvloop if installed. SIGHUP reads the policy file."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    bound_kept_memory()
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(_until_signalled(server, live, events, exported))


async def _until_signalled(
    server: Server, live: LiveCluster | None, events: EventRecorder | None, exported: "ExportedPolicy | None"
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        # The loop itself keeps no reference to a task.
        task = loop.create_task(server.reload_policy(), name="policy reload")
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    # Modules, policy and view are long-lived: freezing them spares the garbage collector.
    gc.freeze()
    gc.set_threshold(_COLLECTED_AT_ONCE)
    async with in_background(live.run(), "live cluster") if live else nullcontext():
        async with (
            in_background(events.run(), "events") if events else nullcontext(),
            in_background(exported.run(), "exported policy") if exported else nullcontext(),
        ):
            await server.run(stop)
        if events is not None:
            await events.drain(_DRAIN_SECONDS)
