"""`make bench`: what an admission costs the webhook, by what a cluster does.

Each measurement starts `serve` anew and reads the processor time of its process, so neither the client nor the rest of
the machine counts. The versions take turns in each row; the figures are medians over the turns.
"""

import asyncio
import base64
import io
import math
import statistics
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from ssl import SSLContext
from typing import NamedTuple

import click
import jsonpatch
import orjson
import uvloop
from rich import box
from rich.console import Console
from rich.table import Table

from bench.running.feed import Recording
from bench.running.load import drive
from bench.running.real_cluster import control_plane_and_folder, create_until_bound, fill, registered
from tests.controlplane.binaries import are_there
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.support.objects.clusters import BURST, of_bursts, review, write_cluster
from tests.support.on_cluster.webhooks import sees
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.processes import TREE, certificate, cpu_seconds, ended, peak_mib, start_server
from tests.support.servers.service import Backend

# Not measured: caches fill, and the room of one namespace is used up.
_WARM_UP = 2 * BURST
_LIVE_NODES = 1000
_WIDTH = 160
_SCHEDULER = "kube-scheduler"


class Version(NamedTuple):
    """A version of the webhook: its working tree, and flags of `serve` for it alone."""

    name: str
    tree: Path
    flags: tuple[str, ...] = ()


class Row(NamedTuple):
    """Pods by number, and the view of the cluster: `none`, `file`, `recording` or `real`.

    Cheap pods are measured `times` as often, because the clock of processor time is coarse.
    """

    name: str
    pods: Callable[[int], bytes]
    view: str
    nodes: int = 0
    times: int = 1


class Cost(NamedTuple):
    """The cost of a request; latencies are not known where others make the requests."""

    cpu_ms: float
    per_second: float
    median_ms: float = math.nan
    p99_ms: float = math.nan
    peak_mib: float = math.nan


def _alike(number: int) -> bytes:
    return review(number, shape=0)


def _shapes(number: int) -> bytes:
    return review(number, shape=number)


def _shapes_of_bursts(number: int) -> bytes:
    return of_bursts(number, shape=number)


def _again(_: int) -> bytes:
    return review(0, shape=0)


def _rows(sizes: Iterable[int], with_control_plane: bool) -> Iterator[Row]:
    yield Row("injecting: one template", _alike, "none", times=4)
    yield Row("injecting: other shapes", _shapes, "none", times=4)
    for nodes in sizes:
        on = f"{nodes:,} nodes: "
        yield Row(on + "one template, one namespace", _alike, "file", nodes, times=4)
        yield Row(on + "one pod admitted again", _again, "file", nodes, times=2)
        yield Row(on + "bursts that take room", of_bursts, "file", nodes)
        yield Row(on + "other shapes, one namespace", _shapes, "file", nodes)
        yield Row(on + "other shapes that take room", _shapes_of_bursts, "file", nodes)
    for view, title in {"recording": "live view", "real": "real pods"}.items():
        if view == "recording" or with_control_plane:
            on = f"{title}, {_LIVE_NODES:,} nodes: "
            yield Row(on + "bursts that take room", of_bursts, view, _LIVE_NODES)
            yield Row(on + "other shapes that take room", _shapes_of_bursts, view, _LIVE_NODES)


@dataclass(frozen=True, slots=True)
class _Bench:
    """The sizes and the files of a run. `pods_per_second` are created in a live view."""

    folder: Path
    trust: SSLContext
    requests: int
    pods_per_node: int
    connections: int
    pods_per_second: float
    control_plane: ControlPlane | None

    def cost(self, row: Row, version: Version) -> dict[str, Cost]:
        """Return the cost of the webhook, and of the kube-scheduler beside it where one runs."""
        if row.view == "real" and self.control_plane is not None:
            return self._beside_scheduler(row, version, self.control_plane)
        return {version.name: uvloop.run(self._under_load(row, version))}

    async def _under_load(self, row: Row, version: Version) -> Cost:
        flag, load = "--no-cluster", partial(drive, trust=self.trust, connections=self.connections)
        async with AsyncExitStack() as stack:
            if row.view == "file":
                flag = f"--cluster={self._cluster_file(row.nodes)}"
            elif row.view == "recording":
                recording, port = Recording(row.nodes, self.pods_per_node), stack.enter_context(HeldPort()).number
                await stack.enter_async_context(recording.served(port))
                flag = f"--kubeconfig={write_kubeconfig(self.folder, f'http://127.0.0.1:{port}')}"
                load = partial(load, per_second=self.pods_per_second, answered=partial(_store, recording))
            # In a thread: meanwhile the recording answers.
            server = self._server(version, flag, row.nodes)
            process, backend = await asyncio.to_thread(stack.enter_context, server)
            bodies = map(row.pods, count())
            await load(backend.port, bodies=islice(bodies, _WARM_UP))
            before, measured = cpu_seconds(process.pid), self.requests * row.times
            found = await load(backend.port, bodies=islice(bodies, measured))
            return Cost(
                1000 * (cpu_seconds(process.pid) - before) / measured,
                found.requests_per_second,
                found.quantile_ms(0.5),
                found.quantile_ms(0.99),
                peak_mib(process.pid),
            )

    def _beside_scheduler(self, row: Row, version: Version, control_plane: ControlPlane) -> dict[str, Cost]:
        kubeconfig = f"--kubeconfig={control_plane.kubeconfig}"
        with ExitStack() as stack:
            process, backend = stack.enter_context(self._server(version, kubeconfig, row.nodes))
            stack.enter_context(registered(control_plane, backend.port, (self.folder / "ca.crt").read_text()))
            processes = {
                version.name: process.pid,
                f"{_SCHEDULER} beside {version.name}": control_plane.pid(_SCHEDULER),
            }
            bodies = map(row.pods, count())
            create_until_bound(control_plane, islice(bodies, _WARM_UP))
            before = {name: cpu_seconds(pid) for name, pid in processes.items()}
            per_second = create_until_bound(control_plane, islice(bodies, self.requests))
            return {
                name: Cost(1000 * (cpu_seconds(pid) - before[name]) / self.requests, per_second, peak_mib=peak_mib(pid))
                for name, pid in processes.items()
            }

    @contextmanager
    def _server(self, version: Version, flag: str, nodes: int) -> Iterator[tuple["subprocess.Popen[bytes]", Backend]]:
        """A server of this version, once it has its view."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            own = Path(name)
            process, backend = start_server(own, self.folder, flag, *version.flags, tree=version.tree)
            with ended(process, own / "webhook.log"):
                if nodes:
                    wait_for(lambda: sees(backend.admin_port, nodes), "the view", deadline_seconds=120)
                yield process, backend

    def _cluster_file(self, nodes: int) -> Path:
        file = self.folder / f"{nodes}.json"
        if not file.exists():
            write_cluster(file, nodes, self.pods_per_node)
        return file


def _store(recording: Recording, body: bytes, answer: bytes) -> None:
    """Let the admitted pod appear in the cluster."""
    patch = orjson.loads(base64.b64decode(orjson.loads(answer)["response"]["patch"]))
    recording.store(jsonpatch.apply_patch(orjson.loads(body)["request"]["object"], patch))


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit of this repository."""
    git = ["git", "-C", str(TREE)]
    archived = subprocess.run([*git, "archive", commit], capture_output=True, check=False)
    if archived.returncode:
        raise click.BadParameter(archived.stderr.decode().strip(), param_hint="--against")
    with tempfile.TemporaryDirectory() as name, tarfile.open(fileobj=io.BytesIO(archived.stdout)) as files:
        files.extractall(name, filter="data")
        yield Path(name)


def _table(costs: dict[tuple[str, str], list[Cost]], first: str) -> Table:
    """Return the medians of the costs by row and process; a webhook has its ratio to `first`."""
    columns = ("pods", "process", "CPU ms a pod", "ratio", "pods/s", "median ms", "p99 ms", "peak MiB")
    table = Table(*columns, box=box.MARKDOWN)
    medians = {key: Cost(*map(statistics.median, zip(*found, strict=True))) for key, found in costs.items()}
    for (row, name), cost in medians.items():
        ratio = math.nan if _SCHEDULER in name else cost.cpu_ms / medians[row, first].cpu_ms
        cells = ((ratio, 2), (cost.per_second, 0), (cost.median_ms, 2), (cost.p99_ms, 2), (cost.peak_mib, 0))
        shown = ("" if math.isnan(figure) else f"{figure:.{places}f}" for figure, places in cells)
        table.add_row(row, name, f"{cost.cpu_ms:.3f}", *shown)
    return table


@click.command()
@click.option("--nodes", multiple=True, type=int, default=[1000, 5000], show_default=True, help="Sizes of a view.")
@click.option("--pods-per-node", default=10, show_default=True, help="Running pods a node.")
@click.option("--requests", default=8 * BURST, show_default=True, help="Pods that are measured in a turn.")
@click.option("--connections", default=8, show_default=True, help="Connections under load.")
@click.option("--pods-per-second", default=100.0, show_default=True, help="Pods created a second in a live view.")
@click.option("--turns", default=3, show_default=True, help="Turns of each version; the medians are printed.")
@click.option("--only", multiple=True, metavar="TEXT", help="Only rows with this in their name; may be repeated.")
@click.option("--against", metavar="COMMIT", help="Also serve a commit, such as `main`; ratios are to this one.")
@click.option("--flag", multiple=True, help="A flag of `serve` for this version alone; may be repeated.")
def main(
    nodes: tuple[int, ...],
    pods_per_node: int,
    requests: int,
    connections: int,
    pods_per_second: float,
    turns: int,
    only: tuple[str, ...],
    against: str | None,
    flag: tuple[str, ...],
) -> None:
    """Measure what an admission costs. Real pods are created if the control plane of the tests is there."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        versions = [Version("here", TREE, flag)]
        if against:
            versions.insert(0, Version(against, stack.enter_context(_checked_out(against))))
        rows = [row for row in _rows(nodes, are_there()) if not only or any(text in row.name for text in only)]
        control_plane = None
        if any(row.view == "real" for row in rows):
            control_plane, _ = stack.enter_context(control_plane_and_folder())
            fill(control_plane, _LIVE_NODES, math.ceil((_WARM_UP + requests) / BURST))
        bench = _Bench(
            folder, certificate(folder), requests, pods_per_node, connections, pods_per_second, control_plane
        )
        costs: dict[tuple[str, str], list[Cost]] = {}
        for row in rows:
            click.echo(row.name, err=True)
            for version in versions * turns:
                for name, cost in bench.cost(row, version).items():
                    costs.setdefault((row.name, name), []).append(cost)
    Console(width=_WIDTH).print(_table(costs, versions[0].name))


if __name__ == "__main__":
    main()
