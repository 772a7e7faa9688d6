"""Pods that are created through the API server at a steady rate, while something happens to the webhook."""

import asyncio
import collections
import itertools
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp

from tests.controlplane.client import Object
from tests.controlplane.polling import Stopwatch
from tests.node.installation import DOMAIN, TEAM, pod
from tests.node.running.configuration import SERVER
from tests.node.running.node import Node
from webhook.watch.trust import trusting_as_go

CREATIONS = int(os.environ.get("NODE_CREATIONS", "5000"))
"""The number of creations that each test waits for."""

_RATE = 50.0
_MOST_AT_ONCE = 64
_LONGEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Lost:
    """A pod that was stored without injection, and the seconds of the load between which it was created."""

    name: str
    began: float
    ended: float


@dataclass(slots=True)
class Load:
    """The outcome of the creations so far: the stored pods that were injected or not, and the errors."""

    injected: int = 0
    not_injected: list[Lost] = field(default_factory=list)
    errors: "collections.Counter[str]" = field(default_factory=collections.Counter)
    watch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def created(self) -> int:
        """The number of finished creations."""
        return self.injected + len(self.not_injected) + self.errors.total()

    def assert_nothing_lost(self) -> None:
        """Each pod was created, and injected."""
        assert self.errors == {}
        assert self.not_injected == []
        assert self.injected >= CREATIONS

    def assert_lost_only_in(self, *outages: tuple[float, float]) -> None:
        """Each pod was created, and injected unless the call was made in one of the `outages`, in seconds of the load.

        A server that is killed stays an endpoint of its Service until the kubelet has noticed, and API servers do not
        repeat a call that failed.
        """
        assert self.errors == {}
        lost = self.not_injected
        for first, last in outages:
            lost = [each for each in lost if each.began > last or each.ended < first]
        assert lost == []


@contextmanager
def creating(node: Node, *, stored: bool = False) -> Iterator[Load]:
    """Create 50 pods a second in the block, and after it until there were CREATIONS; on dry run unless `stored`."""
    load, is_over = Load(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_create(node, load, is_over, stored=stored)), daemon=True)
    thread.start()
    try:
        yield load
    finally:
        is_over.set()
        thread.join()


async def _create(node: Node, load: Load, is_over: threading.Event, *, stored: bool) -> None:
    trust = trusting_as_go(ssl.create_default_context(cafile=str(node.ca)))
    trust.load_cert_chain(*node.admin)
    connector, room = aiohttp.TCPConnector(ssl=trust), asyncio.Semaphore(_MOST_AT_ONCE)
    async with aiohttp.ClientSession(SERVER, connector=connector) as session, asyncio.TaskGroup() as group:
        for number in itertools.count():
            if is_over.is_set() and (stored or number >= CREATIONS):
                break
            await room.acquire()
            creation = group.create_task(_post(session, load, number, stored=stored))
            creation.add_done_callback(lambda _: room.release())
            await asyncio.sleep(1 / _RATE)


async def _post(session: aiohttp.ClientSession, load: Load, number: int, *, stored: bool) -> None:
    made, began = waiting_pod(f"load-{id(load)}-{number}"), load.watch.seconds
    query = {} if stored else {"dryRun": "All"}
    timeout = aiohttp.ClientTimeout(total=_LONGEST_SECONDS)
    try:
        path = f"/api/v1/namespaces/{TEAM}/pods"
        async with session.post(path, params=query, json=made, timeout=timeout) as response:
            answer = await response.json()
    except (aiohttp.ClientError, TimeoutError) as failure:
        load.errors[repr(failure)] += 1
        return
    if response.status != 201:
        load.errors[f"{response.status} {answer.get('message', '')}"] += 1
    elif f"{DOMAIN}/placement-rules" in answer["metadata"]["annotations"]:
        load.injected += 1
    else:
        load.not_injected.append(Lost(made["metadata"]["name"], began, load.watch.seconds))


def waiting_pod(name: str) -> Object:
    """Return a training pod that no node takes."""
    made = pod(name)
    made["spec"]["nodeSelector"] = {"example.com/nowhere": "true"}
    return made


def until(load: Load, created: int) -> Callable[[], bool]:
    """Return a condition that holds once so many creations have finished."""
    return lambda: load.created >= created
