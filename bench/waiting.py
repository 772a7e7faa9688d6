"""`python -m bench.waiting`: the latency of an admission while pods wait for a node.

A server in another process plays the API server: nodes, running pods, pods that wait, and events of running pods. The
webhook is started anew for each turn, because an admitted pod that never appears keeps its reservation for a while.
With `--against`, the webhook of another working tree takes turns with this one.
"""

import asyncio
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import click
import orjson
import uvloop
from aiohttp import web
from rich.console import Console
from rich.table import Table

from bench.__main__ import await_port, certificate, free_port
from bench.burst import gauges, sees
from bench.clusters import review
from bench.feed import recorded
from tests.controlplane.polling import wait_for
from tests.support.kubeconfigs import write_kubeconfig
from webhook.kube.admission import parse_review
from webhook.pipeline import admit
from webhook.policy.loader import built_in_policy
from webhook.verdict import Patched

_PATHS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/namespaces": "Namespace"}
_TREE = Path(__file__).parents[1]
_VERSION = "1000000"


def waiting_pods(number: int, templates: int) -> Iterator[bytes]:
    """Yield pods of so many templates as they were admitted, one after the other in time."""
    for each in range(number):
        request = parse_review(review(each, shape=100_000 + each % templates))
        verdict = admit(request, built_in_policy(), None)
        assert isinstance(verdict, Patched)
        pod = verdict.pod
        created = f"2026-01-01T00:{each // 60 % 60:02}:{each % 60:02}Z"
        metadata = pod["metadata"] | {"name": f"waiting-{each}", "uid": f"waiting-{each}", "creationTimestamp": created}
        yield orjson.dumps({**pod, "metadata": metadata | {"resourceVersion": "1"}, "status": {"phase": "Pending"}})


class _Api:
    """Lists in pages. The watch of running pods deletes and makes pods, so many events a second."""

    def __init__(self, nodes: int, pods_per_node: int, waiting: int, templates: int, events_per_second: int) -> None:
        self._objects = recorded(nodes, pods_per_node)
        self._waiting = list(waiting_pods(waiting, templates))
        self._events_per_second = events_per_second

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind, selector = _PATHS.get(request.path, ""), request.query.get("fieldSelector", "")
        objects = self._objects.get(kind, [])
        if kind == "Pod" and "spec.nodeName!=" not in selector:
            kind, objects = "", [] if "nominatedNodeName!=" in selector else self._waiting
        if "watch" in request.query:
            return await self._watch(request, objects if kind == "Pod" and self._events_per_second else [])
        if "limit" not in request.query:
            raise web.HTTPNotFound
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query["limit"])
        metadata = {"resourceVersion": _VERSION} | ({"continue": str(end)} if end < len(objects) else {})
        head = orjson.dumps({"kind": "List", "metadata": metadata})[:-1]
        body = head + b',"items":[' + b",".join(objects[begin:end]) + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, objects: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            for turn in count() if objects else ():
                for event in (b"DELETED", b"ADDED"):
                    await response.write(b'{"type":"%s","object":%s}\n' % (event, objects[turn % len(objects)]))
                await asyncio.sleep(2 / self._events_per_second)
        await asyncio.sleep(float(request.query["timeoutSeconds"]))
        return response


async def _serve_api(port: int, api: _Api) -> None:
    application = web.Application()
    application.router.add_get("/{tail:.*}", api.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


class _Bench(NamedTuple):
    folder: Path
    trust: ssl.SSLContext
    nodes: int
    requests: int

    def latencies(self, tree: Path) -> dict[str, list[float]]:
        """Return the latencies in seconds of the requests to a new webhook, by their kind."""
        with self.webhook(tree) as (port, _):
            return uvloop.run(self._post_all(port))

    async def _post_all(self, port: int) -> dict[str, list[float]]:
        shapes = count(1)
        found = {}
        # The first ones are not measured: until the pods that wait are placed, an admission places some of them.
        for kind in ("dry run before", "dry run of a new pod", "new pod", "pod like the one before"):
            bodies = []
            for _ in range(self.requests):
                shape = next(shapes)
                # The number names the volume of the token, which no two pods have in common.
                body = orjson.loads(review(shape, shape=0 if kind.startswith("pod like") else shape))
                body["request"]["dryRun"] = kind.startswith("dry")
                bodies.append(orjson.dumps(body))
            found[kind] = await _posted(port, self.trust, bodies)
        del found["dry run before"]
        return found

    @contextmanager
    def webhook(self, tree: Path) -> Iterator[tuple[int, int]]:
        """The webhook of a working tree, with the view; its port and that of its metrics."""
        port, admin_port = free_port(), free_port()
        flags = {
            "tls-dir": self.folder,
            "kubeconfig": self.folder / "kubeconfig",
            "audit": self.folder / f"audit-{port}.jsonl",
            "listen": f"127.0.0.1:{port}",
            "admin-listen": f"127.0.0.1:{admin_port}",
            "log-level": "error",
        }
        arguments = [f"--{flag}={value}" for flag, value in flags.items()]
        command = [sys.executable, "-m", "webhook", "serve", "--no-events", *arguments]
        process = subprocess.Popen(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)})
        try:
            await_port(port, "the webhook")
            wait_for(lambda: sees(admin_port, self.nodes), "the view", deadline_seconds=120)
            yield port, admin_port
        finally:
            process.terminate()
            process.wait()


async def _posted(port: int, trust: ssl.SSLContext, bodies: list[bytes]) -> list[float]:
    """Post the bodies one after the other on one connection; return the latency of each in seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    found = []
    for body in bodies:
        began = time.perf_counter()
        writer.write(b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise click.ClickException(f"the server answered {head!r}")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        found.append(time.perf_counter() - began)
        if b"connection: close" in head.lower():
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    writer.close()
    return found


@click.group(invoke_without_command=True)
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods-per-node", default=2, show_default=True)
@click.option("--waiting", default=500, show_default=True, help="Pods that wait, about.")
@click.option("--templates", default=10, show_default=True, help="Different pods among them.")
@click.option("--events-per-second", default=100, show_default=True, help="Events of running pods.")
@click.option("--requests", default=100, show_default=True, help="Requests of each kind in a turn.")
@click.option("--turns", default=3, show_default=True)
@click.option("--against", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another working tree.")
@click.pass_context
def main(
    ctx: click.Context,
    nodes: int,
    pods_per_node: int,
    waiting: int,
    templates: int,
    events_per_second: int,
    requests: int,
    turns: int,
    against: Path | None,
) -> None:
    """Measure admissions, one at a time, while pods wait."""
    if ctx.invoked_subcommand:
        return
    # The pods that a turn admits wait, too; so many are there on average.
    listed = max(waiting - requests, 0)
    trees = {"this tree": _TREE} | ({against.name: against.absolute()} if against else {})
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _api_server(folder, nodes, pods_per_node, listed, templates, events_per_second) as trust:
            bench = _Bench(folder, trust, nodes, requests)
            for label, tree in [*trees.items()] * turns:
                for kind, latencies in bench.latencies(tree).items():
                    found.setdefault((label, kind), []).extend(latencies)
    table = Table("webhook", "request", "median ms", "p90 ms", "p99 ms")
    table.title = f"{nodes} nodes, about {waiting} waiting pods of {templates} templates, {events_per_second} events/s"
    for (label, kind), latencies in found.items():
        cuts = statistics.quantiles(latencies, n=100)
        table.add_row(label, kind, *(f"{1000 * cuts[at - 1]:.2f}" for at in (50, 90, 99)))
    Console().print(table)


@contextmanager
def _api_server(folder: Path, *sizes: int) -> Iterator[ssl.SSLContext]:
    """An API server of these sizes; its kubeconfig and a certificate for webhooks are in `folder`."""
    port = free_port()
    write_kubeconfig(folder, f"http://127.0.0.1:{port}")
    process = subprocess.Popen([sys.executable, "-m", "bench.waiting", "api", *map(str, (port, *sizes))])
    try:
        await_port(port, "the API server")
        yield certificate(folder)
    finally:
        process.terminate()
        process.wait()


@main.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--admissions", default=100_000, show_default=True)
@click.option("--connections", default=8, show_default=True)
def abandoned(nodes: int, admissions: int, connections: int) -> None:
    """Print the memory of the webhook while pods are admitted that never appear, each of another shape."""
    with (
        tempfile.TemporaryDirectory() as name,
        _api_server(Path(name), nodes, 2, 0, 1, 0) as trust,
        _Bench(Path(name), trust, nodes, 0).webhook(_TREE) as (port, admin_port),
    ):
        resident = [_resident_mb(admin_port)]
        began = time.monotonic()
        for at in range(0, admissions, admissions // 5):
            numbers = range(at, min(at + admissions // 5, admissions))
            uvloop.run(_posted_by(port, trust, numbers, connections))
            resident.append(_resident_mb(admin_port))
        seconds = time.monotonic() - began
    steps = ", ".join(f"{each:.0f}" for each in resident)
    click.echo(
        f"{admissions} admissions in {seconds:.0f} s on {nodes} nodes; resident MB before and after each fifth: {steps}"
    )


async def _posted_by(port: int, trust: ssl.SSLContext, numbers: range, connections: int) -> None:
    async def post(own: range) -> None:
        for at in range(0, len(own), 100):
            await _posted(port, trust, [review(each, shape=each % 20_000) for each in own[at : at + 100]])

    await asyncio.gather(*(post(numbers[connection::connections]) for connection in range(connections)))


def _resident_mb(admin_port: int) -> float:
    return gauges(admin_port)["process_resident_memory_bytes"] / 1e6


@main.command()
@click.argument("sizes", type=int, nargs=6)
def api(sizes: tuple[int, ...]) -> None:
    """Play the API server: PORT NODES PODS_PER_NODE WAITING TEMPLATES EVENTS_PER_SECOND."""
    port, *counts = sizes
    uvloop.run(_serve_api(port, _Api(*counts)))


if __name__ == "__main__":
    main()
