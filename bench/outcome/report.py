"""`python -m bench.outcome.report FILE…`: print the tables of docs/outcome.md, and with `--plot` draw the plot."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import click

from bench.outcome.configurations import CONFIGURATIONS
from bench.outcome.plot import svg
from bench.outcome.results import Result, read_results

_ORDER = {each.name: number for number, each in enumerate(CONFIGURATIONS)}
_HEADER = (
    "| configuration | placed by | seeds | GPUs allocated, % | not placed: 1, 2, 4, 8 GPUs | 8-GPU pods not placed"
    " | fragmented, % | empty nodes at 50 %, at 100 % |\n|---|---|---|---|---|---|---|---|"
)


def tables(results: Iterable[Result]) -> Iterator[str]:
    """Yield a Markdown table for each workload, a row for each configuration; mean and range over the seeds."""
    ordered = sorted(results, key=lambda each: (*_workload(each), _ORDER[each.configuration], each.placed_by))
    for workload, group in groupby(ordered, _workload):
        runs = list(group)
        pod_list, every, first = workload
        part = "all" if every == 1 else f"one of {every}, from number {first} on"
        yield f"\n### {pod_list}: {runs[0].nodes} nodes ({part}), {runs[0].gpus} GPUs\n"
        yield _HEADER
        for _, rows in groupby(runs, lambda each: (each.configuration, each.placed_by)):
            yield _row(list(rows))


def _workload(result: Result) -> tuple[str, int, int]:
    return result.pod_list, result.every, result.first


def _row(runs: Sequence[Result]) -> str:
    last = [run.steps[-1] for run in runs]
    unplaced = sum((Counter(each.unplaced) for each in last), Counter())
    asked = sum((Counter(each.requested) for each in last), Counter())
    unplaceable = sum(each.unplaceable for each in last)
    possible = asked["8"] - unplaceable
    large = f"{unplaced['8']} of {asked['8']}" + (f", {unplaceable} of them impossible" if unplaceable else "")
    share = f"{100 * (unplaced['8'] - unplaceable) / max(possible, 1):.1f} %"
    cells = (
        runs[0].configuration,
        runs[0].placed_by,
        str(len(runs)),
        _spread([each.allocated for each in last]),
        ", ".join(str(unplaced[size]) for size in ("1", "2", "4", "8")),
        f"{share} ({large})",
        _spread([each.fragmented for each in last]),
        f"{_mean([run.steps[0].empty_nodes for run in runs])}, {_mean([each.empty_nodes for each in last])}",
    )
    return f"| {' | '.join(cells)} |"


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.1f}"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="SVG file to write.")
def main(files: tuple[Path, ...], plot: Path | None) -> None:
    """Print the tables of the results in FILES."""
    results = [result for file in files for result in read_results(file)]
    click.echo("\n".join(tables(results)))
    if plot:
        plot.write_text(svg(results))


if __name__ == "__main__":
    main()
