"""`make bench-outcome`: replay pods of the openb trace, and print what each scheduler configuration allocates.

Each replay fills a part of the trace's cluster (bench/outcome/arrivals.py) and ends when the pods have requested all
GPUs; nothing leaves the cluster. Rows of `kube-scheduler` come from a real control plane with our webhook, rows of
`simulation` from the scorer of this project in this process. Results are kept as one JSON object a line in a file, from
which `python -m bench.outcome.report` makes the tables and the plot of docs/outcome.md.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import orjson

from bench.bursts.burst_trace import trace_option
from bench.outcome.arrivals import Sample, Trace
from bench.outcome.configurations import CONFIGURATIONS, Configuration
from bench.outcome.figures import Figures
from bench.outcome.replay import replayed
from bench.outcome.report import tables
from bench.outcome.results import Result
from bench.outcome.simulation import simulated
from bench.running.real_cluster import control_plane_and_folder
from tests.controlplane.cluster import Cluster

_STEPS = (0.5, 1.0)

Runner = Callable[[Trace, Configuration, int], list[Figures]]


@click.command()
@trace_option
@click.option("--pod-list", multiple=True, default=["multigpu50", "default"], show_default=True)
@click.option("--every", type=click.IntRange(1), default=8, show_default=True, help="Take every n-th node.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first node to take.")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--first-seed", type=click.IntRange(1), default=1, show_default=True)
@click.option("--configuration", "names", multiple=True, type=click.Choice([each.name for each in CONFIGURATIONS]))
@click.option("--simulate/--real", default=False, help="Place the pods in this process; default: real control plane.")
@click.option("--results", type=click.Path(dir_okay=False, path_type=Path), help="File to append the results to.")
def main(
    trace: Path,
    pod_list: tuple[str, ...],
    every: int,
    first: int,
    seeds: int,
    first_seed: int,
    names: tuple[str, ...],
    simulate: bool,
    results: Path | None,
) -> None:
    """Replay pods of a trace under each scheduler configuration, and print the GPUs allocated and what is left."""
    traces = [Trace(Sample(trace, each, every, first)) for each in pod_list]
    chosen = [each for each in CONFIGURATIONS if not names or each.name in names]
    done = []
    with _simulation() if simulate else _control_plane() as run:
        for seed in range(first_seed, first_seed + seeds):
            for replay in traces:
                for configuration in chosen:
                    if configuration.scheduler is None and not simulate:
                        continue
                    began = time.monotonic()
                    result = Result.of(replay, configuration, simulate, seed, run(replay, configuration, seed))
                    click.echo(f"{result.title}: {time.monotonic() - began:.0f} s", err=True)
                    done.append(result)
                    if results:
                        with results.open("ab") as file:
                            file.write(orjson.dumps(result.as_json()) + b"\n")
    click.echo("\n".join(tables(done)))


@contextmanager
def _simulation() -> Iterator[Runner]:
    yield lambda trace, configuration, seed: simulated(trace, configuration, seed, _STEPS)


@contextmanager
def _control_plane() -> Iterator[Runner]:
    with control_plane_and_folder() as (control_plane, folder):

        def run(trace: Trace, configuration: Configuration, seed: int) -> list[Figures]:
            cluster = Cluster(control_plane)
            try:
                own = Path(tempfile.mkdtemp(dir=folder))
                return replayed(cluster, own, trace, configuration, seed, _STEPS)
            finally:
                cluster.remove_everything()

        yield run


if __name__ == "__main__":
    main()
