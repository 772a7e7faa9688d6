"""Run the console: the view of the cluster, and the server on loopback, until it is interrupted."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from aiohttp import web

from placement_console.application import application
from placement_console.guard import is_loopback
from placement_console.page import Sources, facts_for, fixed_sources
from webhook.cli.inputs.live import read_live_disruptions
from webhook.cli.inputs.session import Session
from webhook.cli.output.terminal import echo
from webhook.documents.field import InvalidInput, invalid
from webhook.runtime.settings import Address
from webhook.watch.live import LiveCluster

# A browser opens six connections, and the feed keeps one.
_BACKLOG = 64
_SHUTDOWN_SECONDS = 1.0


def serve_console(session: Session, audit: tuple[str, ...], listen: Address) -> None:
    """Serve the console until SIGINT or SIGTERM.

    Raises:
        InvalidInput: an input cannot be read, or the address cannot be listened on.
    """
    if not is_loopback(listen.host):
        detail = "the console has no login and listens only on loopback, such as 127.0.0.1:8090; to reach it from "
        raise InvalidInput([invalid("--listen", str(listen), f"{detail}elsewhere, use kubectl port-forward or ssh -L")])
    sources, live = sources_of(session, audit)
    asyncio.run(_serve(sources, live, listen))


def sources_of(session: Session, audit: tuple[str, ...]) -> tuple[Sources, LiveCluster | None]:
    """Return the sources of the pages, and the live view that must run for them, or None for a file.

    Raises:
        InvalidInput: an input cannot be read.
    """
    if session.cluster is not None:
        return fixed_sources(session, audit), None
    facts, source = facts_for(session, audit), session.source
    _, name = asyncio.run(source.read())
    live = LiveCluster(source.connect, facts)
    return Sources(session, live, facts, partial(read_live_disruptions, source), audit, name), live


async def _serve(sources: Sources, live: LiveCluster | None, listen: Address) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with _followed(live), listening(sources, listen) as address:
        echo(f"console of {sources.name}: http://{address}/  (end with Ctrl+C)", err=True)
        await stop.wait()


@asynccontextmanager
async def listening(sources: Sources, listen: Address) -> AsyncIterator[Address]:
    """Serve the console until the block ends, and yield its address.

    Raises:
        InvalidInput: the address cannot be listened on.
    """
    runner = web.AppRunner(
        application(sources), access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, listen.host, listen.port, backlog=_BACKLOG).start()
        except OSError as error:
            detail = f"cannot listen on it: {error.strerror}; choose another port"
            raise InvalidInput([invalid("--listen", str(listen), detail)]) from error
        yield Address(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _followed(live: LiveCluster | None) -> AsyncIterator[None]:
    """Run the live view, if there is one, until the block ends."""
    task = asyncio.create_task(live.run(), name="live cluster") if live else None
    try:
        yield
    finally:
        if task:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
