"""Part of `make abuse`: clients on the pod network that hold connections, and what a client with few sees of it."""

import asyncio
import random
import socket
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import uvloop

from bench.attackers.abuse_target import HEAD, Seen, Target, post
from tests.support.attacks import attack_review, partial_handshakes
from tests.support.objects.clusters import review

_ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 10))
_CONNECTIONS = 256
_PROCESSES = 2
_SECONDS = 20.0
_PAUSE_SECONDS = 0.05
_TIMEOUT_SECONDS = 5.0
_TERMS = 150


async def crowd_of_addresses(target: Target) -> str:
    """Eight addresses with 256 connections each, all with small costly reviews of ever other users."""
    loop, seen, trust = asyncio.get_running_loop(), Seen(), target.trust
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        crowds = [
            loop.run_in_executor(pool, crowd, target.port, target.ca_file, _ADDRESSES[number::_PROCESSES], _SECONDS)
            for number in range(_PROCESSES)
        ]
        await asyncio.sleep(5)
        ends = time.monotonic() + _SECONDS - 5
        for number in count():
            if time.monotonic() >= ends:
                break
            await post(target, trust, review(number, shape=number % 50), seen, give_up=_TIMEOUT_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)
        answers: Seen = Seen()
        for statuses in await asyncio.gather(*crowds):
            answers.statuses.update(statuses)
    return f"normal pods {seen.text()}, {seen.unpatched} without injection; crowd {dict(answers.statuses)}"


def crowd(port: int, ca_file: Path, addresses: tuple[str, ...], seconds: float) -> dict[str, int]:
    """One process of attackers: each connection sends one costly review after the other."""

    async def run() -> Seen:
        target, seen, ends = Target(port, 0, 0, ca_file), Seen(), time.monotonic() + seconds
        await asyncio.gather(
            *(_insist(target, seen, address, ends) for address in addresses for _ in range(_CONNECTIONS))
        )
        return seen

    return dict(uvloop.run(run()).statuses)


async def _insist(target: Target, seen: Seen, address: str, ends: float) -> None:
    """Send costly reviews on one connection from `address`, and open another one when it is closed."""
    trust, choose = target.trust, random.Random()
    while (left := ends - time.monotonic()) > 0:
        # RuntimeError: uvloop, if the server has closed the connection meanwhile.
        with suppress(OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(left):
                where = ("127.0.0.1", target.port)
                reader, writer = await asyncio.open_connection(*where, ssl=trust, local_addr=(address, 0))
                try:
                    while True:
                        body = costly_review(choose.randrange(10**9))
                        writer.write(HEAD % len(body) + body)
                        head = (await reader.readuntil(b"\r\n\r\n")).lower()
                        await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                        seen.statuses[head[9:12].decode()] += 1
                finally:
                    writer.transport.abort()
        seen.statuses["closed"] += 1


def costly_review(number: int) -> bytes:
    """A review of less than 32 KiB that takes the scorer long; each number has a user and a namespace of its own."""
    preferred: list[dict[str, Any]] = [
        {
            "weight": 1 + term % 100,
            "podAffinityTerm": {
                "labelSelector": {"matchLabels": {"app": "running"}},
                "topologyKey": "kubernetes.io/hostname",
                "namespaces": [f"team-{number}-{term}", "team-a"],
            },
        }
        for term in range(_TERMS)
    ]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return attack_review(number, {"affinity": affinity}, user=f"mallory-{number}", namespace=f"team-{number}")


async def half_open(target: Target) -> str:
    """3,000 half-open handshakes from the address of another client, which needs a connection for each of its pods."""
    loop, seen, trust = asyncio.get_running_loop(), Seen(), target.trust
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        flood = loop.run_in_executor(pool, _flood, target.port)
        while not flood.done() or len(seen.seconds) < 35:
            await post(target, trust, review(len(seen.seconds), shape=0), seen, give_up=_TIMEOUT_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS / 2)
    return f"normal pods {seen.text()}"


def _flood(port: int) -> None:
    sockets: list[socket.socket] = []
    for _ in range(60):
        sockets += partial_handshakes(port, 50)
    time.sleep(1)
    for each in sockets:
        each.close()
