"""`python -m bench.feed`: a large cluster listed and watched: time to the first view, memory, `/mutate` beside it.

A server in another process plays the API server from a recorded list, with objects as large as real ones.
"""

import asyncio
import math
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import click
import orjson
import uvloop
from aiohttp import web
from rich.console import Console
from rich.table import Table

from bench.__main__ import await_port, certificate, free_port
from bench.clusters import cluster_documents, review
from bench.load import Load, drive
from tests.support.kubeconfigs import write_kubeconfig

_FIELDS: dict[str, Any] = {f"f:field{index}": {f"f:inner{inner}": {} for inner in range(4)} for index in range(40)}
# Of any other kind there is no object.
_PATHS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/namespaces": "Namespace"}


def recorded(nodes: int, pods_per_node: int) -> dict[str, list[bytes]]:
    """The objects by kind, with the managed fields, environment and statuses that make real pods large."""
    found: dict[str, list[bytes]] = {"Node": [], "Pod": [], "Namespace": []}
    for number, document in enumerate(cluster_documents(nodes, pods_per_node)):
        content = document.content
        metadata = content["metadata"]
        metadata |= {"uid": f"uid-{number:036}", "resourceVersion": str(number + 1)}
        metadata["managedFields"] = [{"manager": f"manager-{each}", "fieldsV1": _FIELDS} for each in range(2)]
        if content["kind"] == "Pod":
            _fill_pod(content, number)
        found[content["kind"]].append(orjson.dumps(content))
    found["Namespace"].append(orjson.dumps({"metadata": {"name": "team-a", "labels": {"team": "a"}}}))
    return found


def _fill_pod(content: dict[str, Any], number: int) -> None:
    content["metadata"]["labels"] |= {"pod-template-hash": f"hash-{number % 500}", "team": f"team-{number % 40}"}
    content["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"rs-{number % 500}", "controller": True}]
    (main,) = content["spec"]["containers"]
    main["env"] = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)]
    content["status"] |= {
        "podIP": "10.0.0.1",
        "conditions": [{"type": f"Condition{each}", "status": "True", "reason": "R" * 20} for each in range(5)],
        "containerStatuses": [{"name": "main", "imageID": "sha256:" + "0" * 64, "ready": True}],
    }


class _Recording:
    """Lists in pages; a watch of pods deletes and makes pods, so many events a second (0: as fast as taken)."""

    def __init__(self, nodes: int, pods_per_node: int, events_per_second: int) -> None:
        self._objects = recorded(nodes, pods_per_node)
        self._events_per_second = events_per_second

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind = _PATHS.get(request.path, "")
        if "watch" in request.query:
            return await self._watch(request, kind)
        if "limit" not in request.query:
            # Discovery, the version and objects by name: the server goes on without them.
            return web.Response(status=404)
        objects, begin = self._objects.get(kind, []), int(request.query.get("continue", "0"))
        end = begin + int(request.query["limit"])
        metadata = {"resourceVersion": "1000000"} | ({"continue": str(end)} if end < len(objects) else {})
        head = orjson.dumps({"kind": "List", "metadata": metadata})[:-1]
        body = head + b',"items":[' + b",".join(objects[begin:end]) + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if kind != "Pod":
            await asyncio.sleep(float(request.query["timeoutSeconds"]))
            return response
        batch = max(self._events_per_second // 50, 1) if self._events_per_second else 100
        objects = self._objects["Pod"]
        for turn in count():
            begin = turn * batch % len(objects)
            for content in objects[begin : begin + batch]:
                for event in ("DELETED", "ADDED"):
                    await response.write(b'{"type":"%s","object":%s}\n' % (event.encode(), content))
            if self._events_per_second:
                await asyncio.sleep(2 * batch / self._events_per_second)
        return response


async def _serve_recording(port: int, recording: _Recording) -> None:
    application = web.Application()
    application.router.add_get("/{tail:.*}", recording.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


@click.group(invoke_without_command=True)
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods-per-node", default=10, show_default=True)
@click.option("--events-per-second", default=500, show_default=True, help="Pod events after the list; 0: all it takes.")
@click.option("--connections", default=8, show_default=True, help="Connections that load /mutate.")
@click.option("--seconds", default=3.0, show_default=True, help="Length of one turn of load after the list.")
@click.option("--turns", default=5, show_default=True, help="Turns of each server; the medians are printed.")
@click.pass_context
def main(
    ctx: click.Context,
    nodes: int,
    pods_per_node: int,
    events_per_second: int,
    connections: int,
    seconds: float,
    turns: int,
) -> None:
    """Measure the feed of a large cluster, and `/mutate` against a bare handler while it is listed and events come."""
    if ctx.invoked_subcommand:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trust = certificate(folder)
        ports = Ports(free_port(), free_port(), free_port(), free_port())
        size = [str(each) for each in (ports.api, nodes, pods_per_node, events_per_second)]
        write_kubeconfig(folder, f"http://127.0.0.1:{ports.api}")
        processes = [subprocess.Popen([sys.executable, "-m", "bench.feed", "api", *size])]
        try:
            await_port(ports.api, "the recorded API server")
            processes.append(_start_webhook(folder, ports))
            processes.append(
                subprocess.Popen([sys.executable, "-m", "bench.servers", "bare", str(folder), str(ports.bare)])
            )
            await_port(ports.webhook, "the webhook")
            await_port(ports.bare, "the bare handler")
            listing, memory_bytes, view_seconds = uvloop.run(_load_while_listed(ports, trust, connections))
            watching, bare = uvloop.run(_load_in_turns(ports, trust, connections, seconds, turns))
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
    table = Table("", "requests/s", "of the bare one's", "median ms", "p99 ms")
    table.title = f"/mutate with the live view of {nodes} nodes, {nodes * pods_per_node} pods"
    _add_row(table, "bare handler", bare, bare)
    _add_row(table, f"/mutate while {events_per_second} pod events/s come", watching, bare)
    _add_row(table, "/mutate while it is listed", [listing], [])
    console = Console()
    console.print(table)
    console.print(f"first view after {view_seconds:.1f} s under load; resident {memory_bytes / 1e6:.0f} MB with it")


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the servers."""

    api: int
    webhook: int
    admin: int
    bare: int


def _add_row(table: Table, label: str, loads: list[Load], bare: list[Load]) -> None:
    ratios = [load.requests_per_second / base.requests_per_second for load, base in zip(loads, bare, strict=False)]
    table.add_row(
        label,
        f"{statistics.median(load.requests_per_second for load in loads):.0f}",
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else "",
        *(f"{statistics.median(load.quantile_ms(share) for load in loads):.2f}" for share in (0.5, 0.99)),
    )


def _start_webhook(folder: Path, ports: Ports) -> "subprocess.Popen[bytes]":
    flags = {
        "tls-dir": folder,
        "kubeconfig": folder / "kubeconfig",
        "audit": folder / "audit.jsonl",
        "listen": f"127.0.0.1:{ports.webhook}",
        "admin-listen": f"127.0.0.1:{ports.admin}",
        "log-level": "warning",
    }
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    return subprocess.Popen([sys.executable, "-m", "webhook", "serve", *arguments])


def _metric(ports: Ports, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{ports.admin}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).rpartition(" ")[2])


def _bodies() -> Iterator[bytes]:
    return (review(number, shape=0) for number in count())


async def _load_while_listed(ports: Ports, trust: ssl.SSLContext, connections: int) -> tuple[Load, float, float]:
    began = time.perf_counter()
    bodies, loads = _bodies(), []
    while math.isinf(_metric(ports, "placement_webhook_cluster_age_seconds")):
        loads.append(await drive(ports.webhook, trust, bodies, connections, 0.5))
    view_seconds = time.perf_counter() - began
    latencies = sorted(latency for load in loads for latency in load.latencies_seconds)
    rate = sum(load.requests_per_second for load in loads) / len(loads)
    return Load(rate, latencies), _metric(ports, "process_resident_memory_bytes"), view_seconds


async def _load_in_turns(
    ports: Ports, trust: ssl.SSLContext, connections: int, seconds: float, turns: int
) -> tuple[list[Load], list[Load]]:
    """The loads of the webhook, and those of the bare handler between them."""
    webhook, bare, bodies = [], [], _bodies()
    for _ in range(turns):
        webhook.append(await drive(ports.webhook, trust, bodies, connections, seconds))
        bare.append(await drive(ports.bare, trust, bodies, connections, seconds))
    return webhook, bare


@main.command()
@click.argument("port", type=int)
@click.argument("nodes", type=int)
@click.argument("pods_per_node", type=int)
@click.argument("events_per_second", type=int)
def api(port: int, nodes: int, pods_per_node: int, events_per_second: int) -> None:
    """Play the API server."""
    uvloop.run(_serve_recording(port, _Recording(nodes, pods_per_node, events_per_second)))


if __name__ == "__main__":
    main()
