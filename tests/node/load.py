"""Pods that are created through the API server by several clients, while something happens to the webhook."""

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
from tests.node.installation import DOMAIN, TEAM, pod
from tests.node.running.configuration import SERVER
from tests.node.running.node import Node

CREATIONS = int(os.environ.get("NODE_CREATIONS", "5000"))
"""The number of creations that each test waits for."""

_CLIENTS = 8
_LONGEST_SECONDS = 30.0


@dataclass(slots=True)
class Load:
    """The outcome of the creations so far: the stored pods that were injected or not, and the errors."""

    injected: int = 0
    not_injected: list[str] = field(default_factory=list)
    errors: "collections.Counter[str]" = field(default_factory=collections.Counter)

    @property
    def created(self) -> int:
        """The number of finished creations."""
        return self.injected + len(self.not_injected) + self.errors.total()

    def assert_nothing_lost(self) -> None:
        """Each pod was created, and none without injection."""
        assert self.errors == {}
        assert self.not_injected == []
        assert self.injected >= CREATIONS


@contextmanager
def creating(node: Node, *, stored: bool = False) -> Iterator[Load]:
    """Let clients create pods within the block, and after it until there were CREATIONS; on dry run unless `stored`."""
    load, is_over = Load(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_create(node, load, is_over, stored=stored)), daemon=True)
    thread.start()
    try:
        yield load
    finally:
        is_over.set()
        thread.join()


async def _create(node: Node, load: Load, is_over: threading.Event, *, stored: bool) -> None:
    trust = ssl.create_default_context(cafile=str(node.ca))
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    trust.load_cert_chain(*node.admin)
    connector, numbers = aiohttp.TCPConnector(ssl=trust), itertools.count()

    async def write(session: aiohttp.ClientSession) -> None:
        while not is_over.is_set() or (not stored and load.created < CREATIONS):
            await _post(session, load, next(numbers), stored=stored)

    async with aiohttp.ClientSession(SERVER, connector=connector) as session, asyncio.TaskGroup() as clients:
        for _ in range(_CLIENTS):
            clients.create_task(write(session))


async def _post(session: aiohttp.ClientSession, load: Load, number: int, *, stored: bool) -> None:
    made = waiting_pod(f"load-{number}")
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
        load.not_injected.append(made["metadata"]["name"])


def waiting_pod(name: str) -> Object:
    """Return a training pod that no node takes."""
    made = pod(name)
    made["spec"]["nodeSelector"] = {"example.com/nowhere": "true"}
    return made


def until(load: Load, created: int) -> Callable[[], bool]:
    """Return a condition that holds once so many creations have finished."""
    return lambda: load.created >= created
