"""Live views under test: quick timing, nodes with versions, and a view in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object
from tests.support.servers.server import connections_gone
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_server import ClientConfig
from webhook.watch.live import LiveCluster
from webhook.watch.timing import Timing

Object = dict[str, Any]

NODES = "/api/v1/nodes"
TIMING = Timing(
    first_pause_seconds=0.001,
    longest_pause_seconds=0.01,
    shortest_watch_seconds=0.0,
    silence_seconds=5,
    first_pause_when_refused_seconds=0.001,
    longest_pause_when_refused_seconds=0.01,
)
_THREAD_TIMING = Timing(
    first_pause_seconds=0.02,
    longest_pause_seconds=0.2,
    page_size=3,
    first_pause_when_refused_seconds=0.02,
    longest_pause_when_refused_seconds=0.2,
    evidence_seconds=0.1,
)


def versioned_node(name: str, version: int = 1, **facts: Any) -> Object:
    """Return a node with this resourceVersion."""
    content = make_node_object(name, **facts)
    content["metadata"]["resourceVersion"] = str(version)
    return content


def bookmark(version: int) -> tuple[str, Object]:
    """Return a BOOKMARK event of a watch of nodes."""
    return "BOOKMARK", {"kind": "Node", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds; a busy machine is given a minute."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - the real world tells no event
            await asyncio.sleep(0.005)


def names(live: LiveCluster) -> list[str]:
    """Return the names of the nodes in the view."""
    return [info.node.name for info in live.snapshot().nodes]


class Followed(LiveCluster):
    """A live view in another thread: a cache is for one thread, so a snapshot is asked for in that of its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._loop = loop

    def snapshot(self) -> Snapshot:
        async def ask() -> Snapshot:
            return super(Followed, self).snapshot()

        return asyncio.run_coroutine_threadsafe(ask(), self._loop).result(60)


@contextmanager
def following_in_thread(
    kubeconfig: Path, follower: ClusterFollower | None = None, timing: Timing = _THREAD_TIMING
) -> Iterator[LiveCluster]:
    """A live view in a thread of its own, synced."""
    loop = asyncio.new_event_loop()
    live = Followed(loop, ClientConfig(kubeconfig).connect, follower, timing=timing)
    task = loop.create_task(live.run())

    def run() -> None:
        asyncio.set_event_loop(loop)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(connections_gone())
        loop.close()

    thread = threading.Thread(target=run, name="live cluster")
    thread.start()
    try:
        wait_for(lambda: live.is_synced, "the first view")
        yield live
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def kinds_in_view(live: LiveCluster) -> frozenset[str]:
    """Return the kinds that have been listed and are readable."""
    return frozenset(each.resource.kind for each in live._reflectors if each.current_as_of_seconds is not None)
