"""`make bench`: requests a second and latency of `/mutate`, doing the whole job, against a bare TLS handler.

All servers run at once and are loaded in turn, several times, so that the ratios hold on a machine whose speed
drifts; the figures are medians over the turns. `--against` compares the webhook with that of another working tree.
"""

import itertools
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
import uvloop
from rich.console import Console
from rich.table import Table

from bench.clusters import review
from bench.load import Load, drive
from certs.pki import issue_ca, issue_server

_START_SECONDS = 120.0
# More than anybody remembers, and few enough that the largest of them (28 cores) still fits a node.
_SHAPES = 20_000
_TREE = Path(__file__).parents[1]


class _Server(NamedTuple):
    """A server: the working tree that it runs from, and its kind and sizes."""

    tree: Path
    arguments: list[str]


@click.command()
@click.option("--nodes", multiple=True, type=int, default=[1000, 5000], show_default=True, help="Sizes of the cluster.")
@click.option("--pods-per-node", default=10, show_default=True, help="Running pods a node.")
@click.option("--connections", default=8, show_default=True, help="Connections under load.")
@click.option("--seconds", default=3.0, show_default=True, help="Length of one turn.")
@click.option("--turns", default=5, show_default=True, help="Turns of each server; the medians are printed.")
@click.option("--against", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another working tree.")
@click.option("--prove", multiple=True, type=int, help="Also a server that proves one patch in N; may be repeated.")
def main(
    nodes: tuple[int, ...],
    pods_per_node: int,
    connections: int,
    seconds: float,
    turns: int,
    against: Path | None,
    prove: tuple[int, ...],
) -> None:
    """Measure `/mutate` (policy, patch, placement check, audit) against a bare aiohttp TLS handler."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trust = certificate(folder)
        servers = {"bare handler": _Server(_TREE, ["bare"])}
        for count in nodes:
            arguments = ["webhook", str(count), str(pods_per_node)]
            servers[f"/mutate, {count} nodes"] = _Server(_TREE, arguments)
            for one_in in prove:
                label = f"/mutate, {count} nodes, {f'1 proof in {one_in}' if one_in else 'no proofs'}"
                servers[label] = _Server(_TREE, [*arguments, "0", str(one_in)])
            if against:
                servers[f"/mutate, {count} nodes, {against.name}"] = _Server(against.absolute(), arguments)
        ports = {label: free_port() for label in servers}
        processes = [_start(folder, ports[label], server) for label, server in servers.items()]
        try:
            for label, port in ports.items():
                await_port(port, label)
            uvloop.run(_measure(ports, trust, connections, seconds, turns))
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


async def _measure(ports: dict[str, int], trust: ssl.SSLContext, connections: int, seconds: float, turns: int) -> None:
    pods = {"pods alike": itertools.repeat(0), "each pod of another shape": itertools.cycle(range(1, _SHAPES))}
    for kind, shapes in pods.items():
        loaded: dict[str, list[Load]] = {label: [] for label in ports}
        single: dict[str, list[Load]] = {label: [] for label in ports}
        bodies = _bodies(shapes)
        for _ in range(turns):
            for label, port in ports.items():
                loaded[label].append(await drive(port, trust, bodies, connections, seconds))
                single[label].append(await drive(port, trust, bodies, 1, seconds / 3))
        _print(kind, connections, loaded, single)


def _bodies(shapes: Iterator[int]) -> Iterator[bytes]:
    return (review(number, shape=shape) for number, shape in enumerate(shapes))


def _print(kind: str, connections: int, loaded: dict[str, list[Load]], single: dict[str, list[Load]]) -> None:
    bare = "bare handler"
    table = Table("server", "requests/s", "of the bare one's", "median ms", "p99 ms", "alone: median ms", "p99 ms")
    table.title = f"{kind}, {connections} connections; alone: 1 connection"
    for label, loads in loaded.items():
        ratios = [
            load.requests_per_second / base.requests_per_second for load, base in zip(loads, loaded[bare], strict=True)
        ]
        table.add_row(
            label,
            f"{statistics.median(load.requests_per_second for load in loads):.0f}",
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})",
            *(f"{statistics.median(load.quantile_ms(share) for load in loads):.2f}" for share in (0.5, 0.99)),
            *(f"{statistics.median(load.quantile_ms(share) for load in single[label]):.2f}" for share in (0.5, 0.99)),
        )
    Console(width=max(Console().width, 110)).print(table)


def _start(folder: Path, port: int, server: _Server) -> "subprocess.Popen[bytes]":
    kind, *sizes = server.arguments
    own = folder / str(port)
    own.mkdir()
    for name in ("tls.crt", "tls.key"):
        shutil.copy(folder / name, own)
    command = [sys.executable, "-m", "bench.servers", kind, str(own), str(port), *sizes]
    return subprocess.Popen(command, cwd=server.tree, env={**os.environ, "PYTHONPATH": str(server.tree)})


def await_port(port: int, label: str) -> None:
    """Return once somebody listens there."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise click.ClickException(f"{label} did not start within {_START_SECONDS:g} s")


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def certificate(folder: Path) -> ssl.SSLContext:
    """Put a server certificate into `folder`; the client's side that trusts it."""
    now = datetime.now(UTC)
    ca = issue_ca(now=now)
    server = issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=now)
    (folder / "ca.crt").write_bytes(ca.certificate)
    (folder / "tls.crt").write_bytes(server.certificate)
    (folder / "tls.key").write_bytes(server.key)
    return ssl.create_default_context(cadata=ca.certificate.decode())


if __name__ == "__main__":
    main()
