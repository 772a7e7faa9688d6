"""Part of `make abuse`: eight users send their worst pods through a real API server, and one needs his normal ones.

The webhook is registered as in the manifest, with `failurePolicy: Ignore` and five seconds: a call that is not answered
in time is a pod that is stored without injection. The attackers only send dry runs, which cost them no quota.
"""

import asyncio
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from bench.running.writers import connected
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.attacks import WORST, attack_pod
from tests.support.objects.builders import make_pod
from tests.support.objects.clusters import DOMAIN

MANIFEST: dict[str, Any] = {"failurePolicy": "Ignore", "timeoutSeconds": 5}
_PROCESSES = 4
_USERS_PER_PROCESS = 2
_PAUSE_SECONDS = 0.02
_PATIENCE_SECONDS = 6.0


@dataclass(slots=True)
class Victims:
    """The results of normal pods, and the answers to attackers by HTTP status."""

    seconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    not_injected: int = 0
    attacks: Counter[str] = field(default_factory=Counter)


def besieged(cluster: Cluster, port: int, ca: str, pods: int, seconds: float) -> Victims:
    """Create normal pods one after the other, `pods` at least, while eight users attack for so long."""
    cluster.register_webhook(f"https://127.0.0.1:{port}/mutate", ca, **MANIFEST)
    victims, jane = Victims(), cluster.client.impersonating("jane", ["system:masters"])
    namespaces = [cluster.make_namespace() for _ in range(_PROCESSES * _USERS_PER_PROCESS)]
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        began, kubeconfig = time.monotonic(), cluster.control_plane.kubeconfig
        attacks = [
            pool.submit(attack, kubeconfig, namespaces[seed::_PROCESSES], seconds, seed) for seed in range(_PROCESSES)
        ]
        while len(victims.seconds) + len(victims.failed) < pods or time.monotonic() - began < seconds:
            _create(jane, cluster.namespace, victims)
            time.sleep(_PAUSE_SECONDS)
        for each in attacks:
            victims.attacks.update(each.result())
    victims.seconds.sort()
    return victims


def _create(jane: Any, namespace: str, victims: Victims) -> None:
    number = len(victims.seconds) + len(victims.failed)
    pod = make_pod(f"victim-{number}").annotate(f"{DOMAIN}/workload-type", "training").obj()
    sent = time.monotonic()
    try:
        made: dict[str, Any] = jane.create(pod, namespace=namespace).object
    except ApiError as error:
        victims.failed.append(str(error))
        return
    victims.seconds.append(time.monotonic() - sent)
    victims.not_injected += f"{DOMAIN}/placement-policy" not in made["metadata"]["annotations"]


def attack(kubeconfig: Path, namespaces: list[str], seconds: float, seed: int) -> dict[str, int]:
    """One process of attackers: a user for each of `namespaces`, each with one dry run after the other."""
    return dict(uvloop.run(_attack(kubeconfig, namespaces, seconds, seed)))


async def _attack(kubeconfig: Path, namespaces: list[str], seconds: float, seed: int) -> Counter[str]:
    choose, statuses, ends = random.Random(seed), Counter[str](), time.monotonic() + seconds
    bodies = [orjson.dumps(attack_pod("attack", spec())) for spec in WORST.values()]

    async def one(session: aiohttp.ClientSession, namespace: str) -> None:
        headers = {"Impersonate-User": f"mallory-{namespace}", "Impersonate-Group": "system:masters"}
        while time.monotonic() < ends:
            path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
            patience = aiohttp.ClientTimeout(total=choose.choice([0.5, _PATIENCE_SECONDS]))
            status = "-"
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.post(path, data=choose.choice(bodies), headers=headers, timeout=patience) as answer:
                    await answer.read()
                    status = str(answer.status)
            statuses[status] += 1

    async with connected(kubeconfig) as session:
        await asyncio.gather(*(one(session, namespace) for namespace in namespaces))
    return statuses
