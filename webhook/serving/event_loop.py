"""Runs the server in an event loop until SIGTERM or SIGINT. SIGHUP reads the policy file again."""

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from webhook.events.recorder import EventRecorder
from webhook.runtime.allocator import bound_kept_memory
from webhook.serving.server import Server
from webhook.watch.live import LiveCluster

# The longest time that the event loop waits for the worker thread to release the interpreter.
_SWITCH_SECONDS = 0.001


# The longest time that a stopping server takes to write its last Events.
_DRAIN_SECONDS = 3.0


class Job(Protocol):
    """What runs beside the server."""

    async def run(self) -> None:
        """Run until cancelled."""
        ...


def serve_until_signalled(
    server: Server, live: LiveCluster | None = None, events: EventRecorder | None = None, exported: Job | None = None
) -> None:
    """Run `server` until SIGTERM or SIGINT, on uvloop if it is installed, with `live`, `events` and `exported`."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    bound_kept_memory()
    with asyncio.Runner(loop_factory=_event_loop()) as runner:
        runner.run(_until_signalled(server, live, events, exported))


async def _until_signalled(
    server: Server, live: LiveCluster | None, events: EventRecorder | None, exported: Job | None
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
    async with _running(live, "live cluster"):
        async with _running(events, "events"), _running(exported, "exported policy"):
            await server.run(stop)
        if events is not None:
            await events.drain(_DRAIN_SECONDS)


@asynccontextmanager
async def _running(job: Job | None, name: str) -> AsyncIterator[None]:
    """Run the job, if there is one, until the block ends."""
    if job is None:
        yield
        return
    task = asyncio.create_task(job.run(), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
