"""Draw the GPUs allocated in each replay as an SVG: a row for each configuration, a dot for each seed."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from bench.outcome.configurations import CONFIGURATIONS
from bench.outcome.results import Result

_ORDER = {each.name: number for number, each in enumerate(CONFIGURATIONS)}
_LEFT, _WIDTH, _ROW, _TITLE = 230, 480, 20, 30
_LOWEST = 65.0
_COLOURS = {"kube-scheduler": "#1f5fa8", "simulation": "#b8860b"}


def svg(results: Iterable[Result]) -> str:
    """Return the plot; the scale begins at 65 %. A line marks the mean of the seeds."""
    ordered = sorted(results, key=_key)
    lines: list[str] = []
    y = 10
    for (pod_list, nodes, gpus, _), group in groupby(ordered, lambda each: _key(each)[:4]):
        y += _TITLE
        lines.append(_text(10, y - 8, f"{pod_list}: {nodes} nodes, {gpus} GPUs", weight="bold"))
        rows = [list(runs) for _, runs in groupby(group, _key)]
        lines += _scale(y, len(rows))
        for runs in rows:
            lines += _dots(y, runs)
            y += _ROW
        y += _ROW
    lines.append(_legend(y + 10))
    height = y + 25
    width = _LEFT + _WIDTH + 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *lines, "</svg>", ""])


def _key(result: Result) -> tuple[str, int, int, int, int, str]:
    sample = result.pod_list, result.nodes, result.gpus, result.first
    return *sample, _ORDER[result.configuration], result.placed_by


def _x(percent: float) -> float:
    return round(_LEFT + _WIDTH * (max(percent, _LOWEST) - _LOWEST) / (100 - _LOWEST), 1)


def _scale(top: int, rows: int) -> Iterator[str]:
    bottom = top + rows * _ROW
    for percent in range(int(_LOWEST), 101, 5):
        x = _x(percent)
        yield f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="#ddd"/>'
        yield _text(x - 10, bottom + 12, f"{percent} %", size=9)


def _dots(top: int, runs: Sequence[Result]) -> Iterator[str]:
    first = runs[0]
    middle = top + _ROW / 2
    colour = _COLOURS[first.placed_by]
    values = [run.steps[-1].allocated for run in runs]
    yield _text(10, middle + 4, f"{first.configuration}, {first.placed_by}")
    mean = _x(statistics.fmean(values))
    yield f'<line x1="{mean}" y1="{middle - 7}" x2="{mean}" y2="{middle + 7}" stroke="{colour}" stroke-width="2"/>'
    for value in values:
        yield f'<circle cx="{_x(value)}" cy="{middle}" r="3" fill="{colour}" fill-opacity="0.6"/>'


def _legend(y: float) -> str:
    return _text(
        10, y, "GPUs allocated when the pods have requested all GPUs: a dot a seed, a line at the mean", size=10
    )


def _text(x: float, y: float, text: str, *, size: int = 12, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
