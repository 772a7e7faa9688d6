"""`make abuse`: the webhook under the worst that one user or one client can send, and what others notice of it.

Everything is bounded in count and time and stays on loopback. The server runs with the manifest's memory limit where
this machine lets a process make a memory cgroup, and its peak memory is printed in any case.
"""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path

import click
import uvloop
from rich.console import Console
from rich.table import Table

from bench.attackers.abuse_cluster import besieged
from bench.attackers.abuse_connections import crowd_of_addresses, half_open
from bench.attackers.abuse_preemption import high_priority
from bench.attackers.abuse_target import HEAD, Seen, Target, post
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import HeldPort
from tests.support.attacks import PARTIAL_RECORD, WORST, attack_review, distinct_spec, gzip_bomb, partial_handshakes
from tests.support.mutations import harm, mutated
from tests.support.objects.clusters import review
from tests.support.servers.processes import await_port, certificate

_LIMIT_BYTES = 512 * 1024 * 1024
_MIB = 1024 * 1024
_VICTIM_PAUSE_SECONDS = 0.02
# As the manifest's timeoutSeconds.
_TIMEOUT_SECONDS = 5.0
_ATTACKERS = 8


async def alone(target: Target) -> Iterator[list[str]]:
    """Each of the worst pods on its own, twice, the second time as another replica of the template."""
    rows = []
    for name, spec in WORST.items():
        times = []
        statuses: Counter[str] = Counter()
        for number in range(2):
            cpu, seen = target.cpu_seconds(), Seen()
            await post(target, target.trust, attack_review(number, spec()), seen)
            times.append(f"{seen.seconds[0]:.2f} s ({target.cpu_seconds() - cpu:.2f} CPU)")
            statuses += seen.statuses
        rows.append([name, *times, ", ".join(statuses), f"{target.peak_mib():.0f}"])
    return iter(rows)


async def caches(target: Target) -> str:
    """1,300 distinct pods of 12.7 KB."""
    before, seen = target.resident_mib(), Seen()
    for number in range(1300):
        await post(target, target.trust, attack_review(number, distinct_spec(number)), seen)
    return f"{seen.text()}; memory {before:.0f} -> {target.resident_mib():.0f} MiB"


async def handshakes(target: Target) -> str:
    """5,000 sockets with a part of a TLS record."""
    before = target.resident_mib()
    sockets = []
    for _ in range(5000):
        each = socket.socket()
        each.setblocking(False)
        with suppress(BlockingIOError):
            each.connect(("127.0.0.1", target.port))
        sockets.append(each)
        if len(sockets) % 100 == 0:
            await asyncio.sleep(0.02)
    for each in sockets:
        with suppress(OSError):
            each.send(PARTIAL_RECORD)
    await asyncio.sleep(2)
    during, seen = target.resident_mib(), Seen()
    await post(target, target.trust, review(1, shape=0), seen)
    for each in sockets:
        each.close()
    await asyncio.sleep(2)
    return f"memory {before:.0f} -> {during:.0f} -> {target.resident_mib():.0f} MiB; another client: {seen.text()}"


async def compressed(target: Target) -> str:
    """A body of 1 MB that gzip expands to 1 GiB."""
    bomb, seen, cpu = gzip_bomb(), Seen(), target.cpu_seconds()
    await post(target, target.trust, bomb, seen, "Content-Encoding: gzip")
    return f"{seen.text()}; {target.cpu_seconds() - cpu:.2f} s CPU; peak {target.peak_mib():.0f} MiB"


async def idlers(target: Target) -> str:
    """600 connections that each sent one valid request, then stay."""
    trust, body = target.trust, review(1, shape=0)
    writers, before = [], target.resident_mib()
    for _ in range(600):
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust)
            writer.write(HEAD % len(body) + body)
            await reader.readuntil(b"\r\n\r\n")
            writers.append(writer)
    seen = Seen()
    for _ in range(20):
        await post(target, trust, body, seen, give_up=_TIMEOUT_SECONDS)
    memory = f"memory {before:.0f} -> {target.resident_mib():.0f} MiB"
    text = f"{len(writers)} got an answer; another client: {seen.text()}; {memory}"
    for writer in writers:
        writer.transport.abort()
    return text


async def held_open(target: Target, sent: bytes, connections: int) -> str:
    """So many connections that send the same and then nothing, while another client posts normal pods."""
    trust, before, writers = target.trust, target.resident_mib(), []
    for _ in range(connections):
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust)
            writer.write(sent)
            writers.append(writer)
    seen = Seen()
    for number in range(40):
        await post(target, trust, review(number, shape=0), seen, give_up=_TIMEOUT_SECONDS)
    text = f"normal pods {seen.text()}; memory {before:.0f} -> {target.resident_mib():.0f} MiB"
    for writer in writers:
        writer.transport.abort()
    return text


async def slow_bodies(target: Target) -> str:
    """150 requests that announce 4 MB and send a byte."""
    return await held_open(target, HEAD % 4_000_000 + b"{", 150)


async def long_heads(target: Target) -> str:
    """200 heads of 1 MB that have no end."""
    return await held_open(target, HEAD.split(b"\r\n")[0] + b"\r\n" + b"X-Header: %s\r\n" % (b"x" * 8000) * 120, 200)


async def pipelined(target: Target) -> str:
    """200 connections that send requests ahead of their answers and read none."""
    body = review(1, shape=0)
    return await held_open(target, (HEAD % len(body) + body) * 100, 200)


async def abandoned(target: Target) -> str:
    """30 large requests whose clients leave after half a second."""
    body = attack_review(1, WORST["1,400 anti-affinity terms"]())
    bodies = [attack_review(number, WORST["21,000 nodeSelector keys"]()) for number in range(15)] + [body] * 15
    gone, cpu = Seen(), target.cpu_seconds()
    await asyncio.gather(*(post(target, target.trust, each, gone, give_up=0.5) for each in bodies))
    seen = Seen()
    await post(target, target.trust, review(1, shape=0), seen, give_up=120)
    await asyncio.sleep(0.5)
    return f"another client afterwards: {seen.text()}; {target.cpu_seconds() - cpu:.1f} s CPU in all"


async def termination(target: Target) -> str:
    """SIGTERM while 20 large requests wait."""
    specs = list(WORST.values())
    bodies = [attack_review(number, specs[number % 7]()) for number in range(20)]
    waiting = [asyncio.create_task(post(target, target.trust, body, Seen())) for body in bodies]
    await asyncio.sleep(0.3)
    began = time.monotonic()
    os.kill(target.pid, signal.SIGTERM)
    while target.is_running():
        if time.monotonic() - began > 120:
            return "still there after 120 s"
        await asyncio.sleep(0.05)
    for each in waiting:
        each.cancel()
    return f"gone after {time.monotonic() - began:.1f} s"


def attack(port: int, ca_file: Path, seconds: float, seed: int) -> dict[str, int]:
    """One attacker's process: the worst pods, as fast as they are answered, and what else hurts."""

    async def run() -> Counter[str]:
        target, choose, seen = Target(port, 0, 0, ca_file), random.Random(seed), Seen()
        trust, specs = target.trust, [spec() for spec in WORST.values()]
        bomb, ends, number = gzip_bomb() if seed == 0 else b"", time.monotonic() + seconds, 0
        partial: list[socket.socket] = []
        while time.monotonic() < ends:
            number += 1
            body = attack_review(number, choose.choice(specs), user=f"mallory-{seed}", namespace=f"team-{seed}")
            await post(target, trust, body, seen, give_up=choose.choice([0.5, 5.0]))
            if bomb and number % 5 == 0:
                await post(target, trust, bomb, seen, "Content-Encoding: gzip", give_up=5.0)
            if seed == 1:
                partial += partial_handshakes(port, 50)
        for each in partial:
            each.close()
        return seen.statuses

    return dict(uvloop.run(run()))


async def storm(target: Target, seconds: float) -> tuple[Seen, Seen, Counter[str]]:
    """Eight attackers for so long, while a normal client posts pods and another asks for `/healthz`."""
    loop, ends = asyncio.get_running_loop(), time.monotonic() + seconds
    victims, health, trust = Seen(), Seen(), target.trust

    async def victim() -> None:
        number = 0
        while time.monotonic() < ends:
            number += 1
            await post(target, trust, review(number, shape=number % 50), victims, give_up=_TIMEOUT_SECONDS)
            await asyncio.sleep(_VICTIM_PAUSE_SECONDS)

    async def prober() -> None:
        while time.monotonic() < ends:
            began = time.perf_counter()
            status = await loop.run_in_executor(None, _healthz, target.admin_port)
            health.statuses[status] += 1
            health.seconds.append(time.perf_counter() - began)
            await asyncio.sleep(0.05)

    with ProcessPoolExecutor(_ATTACKERS, mp_context=get_context("spawn")) as pool:
        running = [
            loop.run_in_executor(pool, attack, target.port, target.ca_file, seconds, seed) for seed in range(_ATTACKERS)
        ]
        await asyncio.gather(victim(), prober())
        answers: Counter[str] = Counter()
        for each in await asyncio.gather(*running):
            answers.update(each)
    return victims, health, answers


async def wrong_reviews(target: Target, reviews: int, first_seed: int) -> str:
    """So many reviews with something wrong in them, on eight connections: no 5xx, no patch that harms."""
    seen, harms, trust = Seen(), Counter[str](), target.trust
    streams = [(mutated(first_seed + number), reviews // _ATTACKERS) for number in range(_ATTACKERS)]

    async def send(bodies: Iterator[bytes], number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust)
        for body in islice(bodies, number):
            began = time.perf_counter()
            writer.write(HEAD % len(body) + body)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            answer = await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            seen.seconds.append(time.perf_counter() - began)
            seen.statuses[head[9:12].decode()] += 1
            if found := harm(body, int(head[9:12]), answer):
                harms[found] += 1
            if b"connection: close" in head:
                writer.transport.abort()
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust)
        writer.transport.abort()

    await asyncio.gather(*(send(*stream) for stream in streams))
    return f"{seen.text()}; harm: {dict(harms.most_common(5)) or 'none'}"


def _healthz(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=_TIMEOUT_SECONDS) as answer:
            return str(answer.status)
    except OSError:
        return "-"


@contextmanager
def serving(folder: Path, nodes: int, pods_per_node: int) -> Iterator[Target]:
    """A server in a process of its own, under the manifest's memory limit where that can be set."""
    with HeldPort() as port, HeldPort() as admin_port:
        arguments = [str(folder), *map(str, (port.number, nodes, pods_per_node, admin_port.number))]
        process = subprocess.Popen([sys.executable, "-m", "bench.running.servers", *arguments])
        with _limited(process.pid):
            try:
                await_port(port.number, "the webhook")
                yield Target(port.number, admin_port.number, process.pid, folder / "ca.crt")
            finally:
                process.kill()
                process.wait()


@contextmanager
def _limited(pid: int) -> Iterator[None]:
    """The process in a memory cgroup of its own (version 1 or 2), if this user may make one."""
    group = Path(f"/sys/fs/cgroup/memory/placement-webhook-{pid}")
    limit = group / "memory.limit_in_bytes"
    if not group.parent.exists():
        group = Path(f"/sys/fs/cgroup/placement-webhook-{pid}")
        limit = group / "memory.max"
    try:
        group.mkdir()
        limit.write_text(str(_LIMIT_BYTES))
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        click.echo(f"no memory cgroup ({error}): peak memory is measured, not limited", err=True)
    try:
        yield
    finally:
        with suppress(OSError):
            group.rmdir()


_TRIALS: dict[str, Callable[[Target], Awaitable[str]]] = {
    "1,300 distinct pods": caches,
    "5,000 partial handshakes": handshakes,
    "a gzip body of 1 GiB": compressed,
    "600 idle connections": idlers,
    "150 slow bodies": slow_bodies,
    "200 long heads": long_heads,
    "200 pipelining connections": pipelined,
    "30 abandoned requests": abandoned,
    "8 addresses with 256 connections": crowd_of_addresses,
    "3,000 half-open handshakes": half_open,
    "1,000 pods of high priority": high_priority,
    "SIGTERM, 20 pods wait": termination,
}


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods-per-node", default=10, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="Length of the storm.")
@click.option("--reviews", default=100_000, show_default=True, help="Reviews with something wrong in them.")
@click.option("--seed", default=0, show_default=True, help="The first of eight seeds of these reviews.")
@click.option("--victims", default=200, show_default=True, help="Normal pods on the real API server, at least.")
@click.option("--only", default="", help="Run the trials whose name has this in it.")
def main(nodes: int, pods_per_node: int, seconds: float, reviews: int, seed: int, victims: int, only: str) -> None:
    """Attack a webhook of our own on loopback, each trial on a server of its own, and print what others notice."""
    console = Console(width=max(Console().width, 160))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate(folder)
        if only in "each pod alone":
            with serving(folder, nodes, pods_per_node) as target:
                table = Table("pod", "first", "again", "status", "peak MiB so far", title=f"alone, {nodes} nodes")
                table.add_row("(nothing yet)", "", "", "", f"{target.peak_mib():.0f}")
                for row in uvloop.run(alone(target)):
                    table.add_row(*row)
                console.print(table)
        for label, trial in _TRIALS.items():
            if only in label:
                with serving(folder, nodes, pods_per_node) as target:
                    text = uvloop.run(_reported(trial, target))
                console.print(f"{label}: {text}", highlight=False)
        if only in f"{reviews} wrong reviews":
            with serving(folder, nodes, pods_per_node) as target:
                text = uvloop.run(wrong_reviews(target, reviews, seed))
                console.print(f"{reviews} wrong reviews: {text} (peak {target.peak_mib():.0f} MiB)", highlight=False)
        if only in "storm":
            with serving(folder, nodes, pods_per_node) as target:
                pods, health, answers = uvloop.run(storm(target, seconds))
                console.print(
                    f"storm of {_ATTACKERS} attackers, {seconds:g} s: normal pods {pods.text()}, {pods.unpatched} "
                    f"without injection\n  /healthz {health.text()}\n  attackers {dict(answers)}\n"
                    f"  peak {target.peak_mib():.0f} MiB",
                    highlight=False,
                )
        if only in "real API server":
            with serving(folder, nodes, pods_per_node) as target:
                console.print(_on_a_real_api_server(target, folder, victims, seconds), highlight=False)


def _on_a_real_api_server(target: Target, folder: Path, pods: int, seconds: float) -> str:
    programs = find_or_build(os.environ, lambda line: click.echo(f"control plane: {line}", err=True))
    (folder / "control-plane").mkdir()
    with ControlPlane(programs, folder / "control-plane") as control_plane:
        control_plane.stop_scheduler()
        ends, health = threading.Event(), Seen()
        direct = Seen()
        beside = [
            threading.Thread(target=_probe, args=(target.admin_port, health, ends), name="healthz"),
            threading.Thread(target=lambda: uvloop.run(_normal(target, direct, ends)), name="normal reviews"),
        ]
        for thread in beside:
            thread.start()
        try:
            found = besieged(Cluster(control_plane), target.port, target.ca_file.read_text(), pods, seconds)
        finally:
            ends.set()
            for thread in beside:
                thread.join()
    seen = Seen(Counter({"201": len(found.seconds), "-": len(found.failed)}), found.seconds)
    return (
        f"real API server, {_ATTACKERS} users with dry runs, {seconds:g} s: normal pods {seen.text()}, "
        f"{found.not_injected} stored without injection {found.failed[:1]}\n"
        f"  normal reviews straight to the webhook {direct.text()}\n  /healthz {health.text()}\n"
        f"  attackers {dict(found.attacks)}\n  peak {target.peak_mib():.0f} MiB"
    )


async def _normal(target: Target, seen: Seen, ends: threading.Event) -> None:
    """Post normal reviews on one kept-alive connection, as an API server does."""
    trust = target.trust
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust)
    for number in count():
        if ends.is_set():
            break
        body, began = review(number, shape=number % 50), time.perf_counter()
        writer.write(HEAD % len(body) + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        seen.seconds.append(time.perf_counter() - began)
        seen.statuses[head[9:12].decode()] += 1
        if b"connection: close" in head:
            writer.transport.abort()
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust)
        await asyncio.sleep(_VICTIM_PAUSE_SECONDS)
    writer.transport.abort()


def _probe(port: int, health: Seen, ends: threading.Event) -> None:
    while not ends.wait(0.05):
        began = time.perf_counter()
        health.statuses[_healthz(port)] += 1
        health.seconds.append(time.perf_counter() - began)


async def _reported(trial: Callable[[Target], Awaitable[str]], target: Target) -> str:
    text = await trial(target)
    return f"{text} (peak {target.peak_mib():.0f} MiB)" if target.is_running() else text


if __name__ == "__main__":
    main()
