"""Part of `make abuse`: pods of high priority that fit on no node, so that victims are searched for each of them."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import uvloop

from bench.attackers.abuse_target import Seen, Target, post
from tests.support.attacks import attack_review
from tests.support.objects.clusters import review

_CONNECTIONS = 8
_PAUSE_SECONDS = 0.02
_TIMEOUT_SECONDS = 5.0


async def high_priority(target: Target) -> str:
    """1,000 pods of high priority."""
    before, meanwhile, attackers = await besiege(target, 1000)
    return (
        f"normal pods before {before.text()}\n  meanwhile {meanwhile.text()}, {meanwhile.unpatched} without injection\n"
        f"  attackers {attackers.text()}"
    )


async def besiege(target: Target, pods: int, give_up: float = _TIMEOUT_SECONDS) -> tuple[Seen, Seen, Seen]:
    """Send so many pods of high priority on eight connections.

    The result is what normal pods see before, what they see meanwhile, and what the attackers see. Clients wait for an
    answer for `give_up` seconds.
    """
    loop, before, meanwhile = asyncio.get_running_loop(), Seen(), Seen()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        # Its process starts before the normal pods are measured.
        await loop.run_in_executor(pool, preempting_review, 0)
        for number in range(pods // 4):
            await _normal(target, number, before, give_up)
        attack = loop.run_in_executor(pool, insist, target.port, target.ca_file, pods, give_up)
        while not attack.done():
            await _normal(target, len(meanwhile.seconds), meanwhile, give_up)
        return before, meanwhile, await attack


async def _normal(target: Target, number: int, seen: Seen, give_up: float) -> None:
    await post(target, target.trust, review(number, shape=number % 50), seen, give_up=give_up)
    await asyncio.sleep(_PAUSE_SECONDS)


def insist(port: int, ca_file: Path, pods: int, give_up: float) -> Seen:
    """One process of attackers: each connection sends one of the pods after the other."""

    async def run() -> Seen:
        target, seen = Target(port, 0, 0, ca_file), Seen()
        trust, bodies = target.trust, map(preempting_review, range(pods))

        async def one() -> None:
            for body in bodies:
                await post(target, trust, body, seen, give_up=give_up)

        await asyncio.gather(*(one() for _ in range(_CONNECTIONS)))
        return seen

    return uvloop.run(run())


def preempting_review(number: int) -> bytes:
    """The review of a pod that fits on each node of `cluster_documents` once other pods end, and on none before.

    Each number has a shape of its own, so that no cached answer helps. Odd ones also avoid the running pods, so that
    the search has to run inter-pod affinity.
    """
    requests = {"cpu": f"{126_500 + number}m"}
    spec: dict[str, Any] = {
        "priority": 1000,
        "containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}],
    }
    if number % 2:
        spec["affinity"] = _avoiding_running_pods()
    user = number % _CONNECTIONS
    return attack_review(number, spec, user=f"mallory-{user}", namespace=f"team-m{user}")


def _avoiding_running_pods() -> Mapping[str, Any]:
    term = {
        "labelSelector": {"matchLabels": {"app": "running"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaces": ["team-a"],
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
