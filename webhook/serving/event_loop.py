"""Runs the server in an event loop until SIGTERM or SIGINT. SIGHUP reads the policy file again."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext

from webhook.events.recorder import EventRecorder
from webhook.runtime.allocator import bound_kept_memory
from webhook.serving.exported.exported_policy import ExportedPolicy
from webhook.serving.scheduling.worker import in_background
from webhook.serving.server import Server
from webhook.watch.live import LiveCluster

# The longest time that the event loop waits for the worker thread to release the interpreter.
_SWITCH_SECONDS = 0.001
# The longest time that a stopping server takes to write its last Events.
_DRAIN_SECONDS = 3.0


def serve_until_signalled(
    server: Server,
    live: LiveCluster | None = None,
    events: EventRecorder | None = None,
    exported: ExportedPolicy | None = None,
) -> None:
    """Run `server` until SIGTERM or SIGINT, on uvloop if it is installed, with `live`, `events` and `exported`."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    bound_kept_memory()
    with asyncio.Runner(loop_factory=_event_loop()) as runner:
        runner.run(_until_signalled(server, live, events, exported))


async def _until_signalled(
    server: Server, live: LiveCluster | None, events: EventRecorder | None, exported: ExportedPolicy | None
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
    async with in_background(live.run(), "live cluster") if live else nullcontext():
        async with (
            in_background(events.run(), "events") if events else nullcontext(),
            in_background(exported.run(), "exported policy") if exported else nullcontext(),
        ):
            await server.run(stop)
        if events is not None:
            await events.drain(_DRAIN_SECONDS)


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
