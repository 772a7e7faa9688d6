"""`python -m bench.feed_real`: the live view of a real API server: time to the first view, memory, `/mutate` beside it.

etcd and kube-apiserver are those of the tests; no kubelet, scheduler or controller runs, the pods are made bound. All
of it shares this machine's processors, so what is absorbed is at least what is printed.
"""

import asyncio
import math
import multiprocessing
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import click
import uvloop
from rich.console import Console
from rich.table import Table

from bench.running.load import Load, drive, during
from bench.running.real_cluster import control_plane_and_folder
from bench.running.writers import NAMESPACE, Churn, churned, created, objects
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import HeldPort
from tests.support.objects.clusters import review
from tests.support.servers.processes import await_port, certificate

_POLL_SECONDS = 0.05
_VIEW_SECONDS = 120.0
_LOAD_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Size:
    """The number of objects in the cluster."""

    nodes: int
    pods: int


@dataclass(frozen=True, slots=True)
class View:
    """The first view: how long after the start of the process it was there, and the memory resident with it."""

    seconds: float
    resident_bytes: float


@dataclass(frozen=True, slots=True)
class Webhook:
    """A server in a process of its own, when it was started, and the connections that load it."""

    port: int
    admin_port: int
    began: float
    trust: ssl.SSLContext
    connections: int

    def gauges(self) -> dict[str, float]:
        """The metrics without labels, as they are now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        named = (line.split() for line in lines if not line.startswith("#") and "{" not in line)
        return {name: float(value) for name, value in named}

    def shows(self, size: Size) -> bool:
        """Return whether the view is loaded with these numbers of objects."""
        gauges = self.gauges()
        shown = Size(*(int(gauges[f"placement_webhook_cluster_{kind}"]) for kind in ("nodes", "pods")))
        return math.isfinite(gauges["placement_webhook_cluster_age_seconds"]) and shown == size

    def wait(self, size: Size) -> None:
        """Return once the view has so much in it."""
        deadline = time.monotonic() + _VIEW_SECONDS
        while not self.shows(size):
            if time.monotonic() > deadline:
                raise click.ClickException(f"the view does not show {size} within {_VIEW_SECONDS:g} s")
            time.sleep(_POLL_SECONDS)

    def view(self) -> View:
        """The view that has just come up."""
        return View(time.monotonic() - self.began, self.resident_bytes())

    def resident_bytes(self) -> float:
        """The memory of the process."""
        return self.gauges()["process_resident_memory_bytes"]

    async def load(self, seconds: float) -> Load:
        """Measure `/mutate` for a number of seconds."""
        bodies = (review(number, shape=0) for number in count())
        return await drive(self.port, self.trust, during(seconds, bodies), self.connections)


@dataclass(frozen=True, slots=True)
class Bench:
    """A control plane to fill, and where the webhook finds its files."""

    control_plane: ControlPlane
    folder: Path
    trust: ssl.SSLContext
    connections: int

    @contextmanager
    def webhook(self) -> Iterator[Webhook]:
        """A webhook that follows the cluster, as users start it."""
        with HeldPort() as port, HeldPort() as admin:
            flags = {
                "tls-dir": self.folder,
                "kubeconfig": self.control_plane.kubeconfig,
                "audit": self.folder / "audit.jsonl",
                "listen": f"127.0.0.1:{port.number}",
                "admin-listen": f"127.0.0.1:{admin.number}",
                "log-level": "warning",
            }
            began = time.monotonic()
            arguments = [f"--{flag}={value}" for flag, value in flags.items()]
            process = subprocess.Popen([sys.executable, "-m", "webhook", "serve", *arguments])
            try:
                await_port(port.number, "the webhook")
                await_port(admin.number, "the webhook's metrics")
                yield Webhook(port.number, admin.number, began, self.trust, self.connections)
            finally:
                process.terminate()
                process.wait()

    def quiet_view(self, size: Size) -> View:
        """Measure the first view of a webhook without requests."""
        with self.webhook() as webhook:
            webhook.wait(size)
            return webhook.view()


@click.command()
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True)
@click.option("--pods", type=click.IntRange(min=1), default=50000, show_default=True)
@click.option("--fill-seconds", default=600.0, show_default=True, help="Make do with what is created by then.")
@click.option("--connections", default=4, show_default=True, help="Connections that load /mutate.")
@click.option("--seconds", default=10.0, show_default=True, help="Length of the load while pods come and go.")
def main(nodes: int, pods: int, fill_seconds: float, connections: int, seconds: float) -> None:
    """Fill a real API server with nodes and bound pods, and measure the webhook that follows it."""
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, mp_context=spawn) as writer,
        control_plane_and_folder() as (control_plane, folder),
    ):
        trust = certificate(folder)
        control_plane.stop_scheduler()
        _measure(Bench(control_plane, folder, trust, connections), Size(nodes, pods), fill_seconds, seconds, writer)


def _measure(bench: Bench, asked: Size, fill_seconds: float, seconds: float, writer: Executor) -> None:
    deadline = time.monotonic() + fill_seconds
    views = {"nothing": bench.quiet_view(Size(0, 0))}
    kubeconfig = bench.control_plane.kubeconfig
    created(kubeconfig, "namespaces", iter([NAMESPACE]), deadline)
    nodes = created(kubeconfig, "nodes", objects("Node", asked.nodes, 0), deadline)
    views[f"{nodes} nodes"] = bench.quiet_view(Size(nodes, 0))
    pods_per_node = math.ceil(asked.pods / asked.nodes)
    pods = created(kubeconfig, "pods", islice(objects("Pod", nodes, pods_per_node), asked.pods), deadline)
    if (held := Size(nodes, pods)) != asked:
        _tell(f"in {fill_seconds:g} s no more than {held} could be created; asked for was {asked}")
    views[f"{nodes} nodes, {pods} pods"] = bench.quiet_view(held)
    loads: dict[str, tuple[Load, float]] = {}
    with bench.webhook() as webhook:
        load = uvloop.run(_load_while_listed(webhook, held))
        views["the same, /mutate under load"] = webhook.view()
        loads["the cluster is listed"] = load, webhook.resident_bytes()
        loads["nothing happens"] = uvloop.run(webhook.load(seconds)), webhook.resident_bytes()
        load, churn = uvloop.run(_load_while_churned(webhook, writer, kubeconfig, nodes, seconds))
        webhook.wait(Size(nodes, pods + churn.created - churn.deleted))
        lag_seconds = time.time() - churn.ended
        loads["pods come and go"] = load, webhook.resident_bytes()
    _print(views, loads)
    changes = churn.created + churn.deleted
    click.echo(
        f"{changes} pods created and deleted in {churn.seconds:.1f} s, {changes / churn.seconds:.0f} a second, "
        f"/mutate under load; all in the view {lag_seconds:.2f} s after the last"
    )
    _, with_nodes, with_pods, _ = (view.resident_bytes for view in views.values())
    click.echo(f"resident for each pod: {(with_pods - with_nodes) / pods:.0f} bytes")


async def _load_while_listed(webhook: Webhook, size: Size) -> Load:
    loads = [await webhook.load(_LOAD_SECONDS)]
    while not webhook.shows(size):
        loads.append(await webhook.load(_LOAD_SECONDS))
    rate = sum(load.requests_per_second for load in loads) / len(loads)
    return Load(rate, sorted(latency for load in loads for latency in load.latencies_seconds))


async def _load_while_churned(
    webhook: Webhook, writer: Executor, kubeconfig: Path, nodes: int, seconds: float
) -> tuple[Load, Churn]:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(writer, time.time)  # its process takes a while to start
    churning = loop.run_in_executor(writer, churned, kubeconfig, nodes, seconds)
    load = await webhook.load(seconds)
    return load, await churning


def _print(views: dict[str, View], loads: dict[str, tuple[Load, float]]) -> None:
    first = Table("cluster", "first view after", "resident", title="From the start of the process")
    for label, view in views.items():
        first.add_row(label, f"{view.seconds:.1f} s", f"{view.resident_bytes / 1e6:.0f} MB")
    table = Table("while", "requests/s", "median ms", "p99 ms", "then resident", title="/mutate")
    for label, (load, resident_bytes) in loads.items():
        quantiles = (f"{load.quantile_ms(share):.2f}" for share in (0.5, 0.99))
        table.add_row(label, f"{load.requests_per_second:.0f}", *quantiles, f"{resident_bytes / 1e6:.0f} MB")
    Console().print(first, table)


def _tell(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
