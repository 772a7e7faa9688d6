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
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson
import uvloop
from rich.console import Console
from rich.table import Table

from bench.running.feed import Recording
from bench.running.load import drive
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.support.objects.clusters import review
from tests.support.on_cluster.webhooks import gauges, sees
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.processes import TREE, await_port, certificate
from webhook.admission.pipeline import admit
from webhook.kube.api.admission import parse_review
from webhook.policy.loader import built_in_policy


def waiting_pods(number: int, templates: int) -> Iterator[dict[str, Any]]:
    """Yield pods of so many templates as they were admitted, one after the other in time."""
    for each in range(number):
        request = parse_review(review(each, shape=100_000 + each % templates))
        verdict = admit(request, built_in_policy(), None)
        assert verdict.outcome == "Patched"
        pod = verdict.pod
        created = f"2026-01-01T00:{each // 60 % 60:02}:{each % 60:02}Z"
        metadata = pod["metadata"] | {"name": f"waiting-{each}", "uid": f"waiting-{each}", "creationTimestamp": created}
        yield {**pod, "metadata": metadata | {"resourceVersion": "1"}, "status": {"phase": "Pending"}}


async def _serve_api(port: int, recording: Recording, events_per_second: int) -> None:
    async with recording.served(port):
        await (recording.churn(events_per_second) if events_per_second else asyncio.Event().wait())


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
            found[kind] = (await drive(port, self.trust, iter(bodies), 1)).latencies_seconds
        del found["dry run before"]
        return found

    @contextmanager
    def webhook(self, tree: Path) -> Iterator[tuple[int, int]]:
        """The webhook of a working tree, with the view; its port and that of its metrics."""
        with HeldPort() as port, HeldPort() as admin:
            flags = {
                "tls-dir": self.folder,
                "kubeconfig": self.folder / "kubeconfig",
                "audit": self.folder / f"audit-{port.number}.jsonl",
                "listen": f"127.0.0.1:{port.number}",
                "admin-listen": f"127.0.0.1:{admin.number}",
                "log-level": "error",
            }
            arguments = [f"--{flag}={value}" for flag, value in flags.items()]
            command = [sys.executable, "-m", "webhook", "serve", "--no-events", *arguments]
            process = subprocess.Popen(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)})
            try:
                await_port(port.number, "the webhook")
                wait_for(lambda: sees(admin.number, self.nodes), "the view", deadline_seconds=120)
                yield port.number, admin.number
            finally:
                process.terminate()
                process.wait()


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
    trees = {"this tree": TREE} | ({against.name: against.absolute()} if against else {})
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
    with HeldPort() as port:
        write_kubeconfig(folder, f"http://127.0.0.1:{port.number}")
        process = subprocess.Popen([sys.executable, "-m", "bench.waiting", "api", *map(str, (port.number, *sizes))])
        try:
            await_port(port.number, "the API server")
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
        _Bench(Path(name), trust, nodes, 0).webhook(TREE) as (port, admin_port),
    ):
        resident = [_resident_mb(admin_port)]
        began = time.monotonic()
        for at in range(0, admissions, admissions // 5):
            numbers = range(at, min(at + admissions // 5, admissions))
            bodies = (review(each, shape=each % 20_000) for each in numbers)
            uvloop.run(drive(port, trust, bodies, connections))
            resident.append(_resident_mb(admin_port))
        seconds = time.monotonic() - began
    steps = ", ".join(f"{each:.0f}" for each in resident)
    click.echo(
        f"{admissions} admissions in {seconds:.0f} s on {nodes} nodes; resident MB before and after each fifth: {steps}"
    )


def _resident_mb(admin_port: int) -> float:
    return gauges(admin_port)["process_resident_memory_bytes"] / 1e6


@main.command()
@click.argument("sizes", type=int, nargs=6)
def api(sizes: tuple[int, ...]) -> None:
    """Play the API server: PORT NODES PODS_PER_NODE WAITING TEMPLATES EVENTS_PER_SECOND."""
    port, nodes, pods_per_node, waiting, templates, events_per_second = sizes
    recording = Recording(nodes, pods_per_node, waiting_pods(waiting, templates))
    uvloop.run(_serve_api(port, recording, events_per_second))


if __name__ == "__main__":
    main()
