"""Run passes of the certs controller: at the start, after a change of an object, and when a step is due."""

import asyncio
import random
import signal
import time
from collections.abc import Callable
from contextlib import aclosing, suppress

import orjson
import structlog
from prometheus_client import ProcessCollector

from certs.cluster.client import ObjectName
from certs.controller.admin import ControllerMetrics, admin_port
from certs.controller.reconciler import Options, Reconciler
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput
from webhook.runtime.settings import Address
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig, Connect, Query

RESYNC_SECONDS = 10.0
_WATCH_SECONDS = 300
_SILENCE_SECONDS = _WATCH_SECONDS + 30.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_EXPECTED = (ApiServerError, InvalidInput)
_FREE_WRITES = 12
_SECONDS_PER_WRITE = 3.0


def backoff_seconds(failures: int, share: float) -> float:
    """Return a pause that doubles with each failure; its second half is scaled by `share`, from 0 to 1."""
    longest: float = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_SECONDS)
    return longest * (0.5 + share / 2)


class WritePacing:
    """Limits the rate of writes: a rotation needs six, and only a conflict with another client makes many."""

    def __init__(self) -> None:
        # Each write takes its share of the time after the one before it.
        self._taken_until_seconds = 0.0

    def note(self, now_seconds: float) -> None:
        """Record that a pass wrote or tried to write."""
        self._taken_until_seconds = max(self._taken_until_seconds, now_seconds) + _SECONDS_PER_WRITE

    def pause_seconds(self, now_seconds: float) -> float:
        """Return the minimum time until the next pass: 0 for the first writes, and then the time for one write each."""
        return max(self._taken_until_seconds - now_seconds - _FREE_WRITES * _SECONDS_PER_WRITE, 0.0)


class Controller:
    """Maintains the objects of `options`. `connect` returns a connection to the API server."""

    def __init__(
        self,
        options: Options,
        connect: Connect,
        metrics: ControllerMetrics,
        *,
        resync_seconds: float = RESYNC_SECONDS,
        random_share: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._connect = connect
        self._metrics = metrics
        self._reconciler = Reconciler(options, metrics)
        self._resync_seconds = resync_seconds
        self._random_share = random_share
        self._pacing = WritePacing()
        self._wake = asyncio.Event()
        self._failure = "no pass is complete yet"
        self._failures = 0
        self._watch_failures: dict[ObjectName, str] = {}
        self._waits_for = ""
        self._log = structlog.get_logger()

    def unready_reason(self) -> str:
        """Return the reason why the certificates may not be maintained, or an empty string if they are."""
        return self._failure or next(iter(self._watch_failures.values()), "")

    def note(self) -> str:
        """Return a text about what the controller waits for, or an empty string if it waits for nothing."""
        return self._waits_for

    async def run(
        self, stop: asyncio.Event, admin: Address, on_listening: Callable[[Address], None] = lambda _: None
    ) -> None:
        """Maintain the objects until `stop` is set.

        Raises:
            InvalidInput: the admin port cannot be opened.
        """
        async with admin_port(admin, self._metrics, self.unready_reason, self.note) as address:
            self._log.info(
                "the certs controller runs",
                admin=str(address),
                secret=self._options.target.secret_place,
                configurations=list(self._options.configurations),
            )
            on_listening(address)
            # A request that is under way can be cut off at any point: the next controller reads what became of it.
            working = asyncio.create_task(self._work(), name="certs controller")
            tasks = [working, *(asyncio.create_task(self._watch(each)) for each in self._options.watched)]
            working.add_done_callback(lambda _: stop.set())
            try:
                await stop.wait()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            if not working.cancelled():
                working.result()
        self._log.info("the certs controller ends")

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            least, longest = await self._attempt()
            await asyncio.sleep(least)
            # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(longest):
                    await self._wake.wait()

    async def _attempt(self) -> tuple[float, float]:
        """Make one pass. Return the minimum and the maximum pause after it, in seconds."""
        try:
            async with self._connect() as api:
                done = await self._reconciler.reconcile(api)
        except Exception as error:
            if not isinstance(error, _EXPECTED):
                self._log.exception("internal error")
            return self._failed(_described(error))
        if self._failure:
            self._log.info("the certificates are maintained", action=done.step.action, reasons=list(done.step.reasons))
        self._failure, self._failures, self._waits_for = "", 0, done.waits_for
        now = time.monotonic()
        if done.tried:
            self._pacing.note(now)
        return self._pacing.pause_seconds(now), min(done.pause.total_seconds(), self._resync_seconds)

    def _failed(self, failure: str) -> tuple[float, float]:
        self._metrics.failures.inc()
        self._failures += 1
        if failure != self._failure:
            self._log.error("the certificates are not maintained", error=failure)
        self._failure = failure
        return backoff_seconds(self._failures, self._random_share()), 0.0

    async def _watch(self, watched: ObjectName) -> None:
        failures = 0
        while True:
            try:
                await self._watch_once(watched)
                failures = 0
                self._watch_failures.pop(watched, None)
            except Exception as error:
                failures += 1
                failure = _described(error)
                if self._watch_failures.get(watched) != failure:
                    self._log.warning("a watch failed", error=failure)
                self._watch_failures[watched] = failure
                await asyncio.sleep(backoff_seconds(failures, self._random_share()))

    async def _watch_once(self, watched: ObjectName) -> None:
        """Wake the loop at each event of a watch, first about the current object, until the API server ends it."""
        query: Query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "fieldSelector": f"metadata.name={watched.name}",
            "timeoutSeconds": _WATCH_SECONDS,
        }
        async with self._connect() as api, aclosing(api.lines(watched.collection, query, _SILENCE_SECONDS)) as batches:
            async for batch in batches:
                self._wake.set()
                _check_events(watched, batch)
                self._watch_failures.pop(watched, None)


def _described(error: Exception) -> str:
    return str(error) if isinstance(error, _EXPECTED) else f"internal error: {error!r}"


def _check_events(watched: ObjectName, lines: list[bytes]) -> None:
    for line in lines:
        try:
            event = orjson.loads(line)
        except ValueError as error:
            raise ApiServerError(f"GET {watched.collection}: an event is not JSON") from error
        if field(event, "type") == "ERROR":
            message = field(event, "object", "message")
            raise ApiServerError(f"GET {watched.collection}: {message}", field(event, "object", "code") or 0)


async def run_until_signalled(options: Options, admin: Address, source: ClientConfig) -> None:
    """Maintain the objects of `options` in the cluster of `source` until SIGTERM or SIGINT.

    Raises:
        InvalidInput: the cluster or the address of the admin port is invalid.
    """
    # A missing kubeconfig is an error of the caller. Later, an API server that is away is waited for.
    await source.read()
    stop, metrics = asyncio.Event(), ControllerMetrics()
    ProcessCollector(registry=metrics.registry)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Controller(options, source.connect, metrics).run(stop, admin)
