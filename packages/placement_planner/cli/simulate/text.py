"""The text output of `simulate`, and its plot as SVG. Each configuration is shown with the mean over its seeds."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from rich.console import Console

from placement_planner.simulation.outcome import Evictions, Outcome, Waits
from webhook.cli.output.screen import Column, Row, print_line, print_table
from webhook.documents.listing import plural
from webhook.documents.text import printable

_CONFIGURATION = (Column("policy", least=12), Column("profile", least=8))
_COLUMNS = (
    *_CONFIGURATION,
    *(Column(title, is_number=True) for title in ("pods", "denied", "allocated %", "range", "most %", "at the end %")),
    *(Column(title, is_number=True) for title in ("fragmented %", "wait p50", "wait p99", "never placed")),
)
_EVICTED = [Column(title, is_number=True) for title in ("evictions", "ended", "pod-hours lost", "card-hours lost")]
_SIZES = [Column(title, is_number=True) for title in ("pods", "wait p50", "wait p99", "never placed")]
_HEADINGS = {
    "cards": "By the cards that a pod requests:",
    "gang": "By the number of pods that start together:",
    "type": "By workload type:",
    "priority": "By priority:",
}
_MOST_REASONS = 3
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))
_LEFT, _TOP, _WIDTH, _HEIGHT, _ROW = 60, 30, 640, 280, 18
# Colours that people with colour deficiencies distinguish. Source: Okabe and Ito, Color Universal Design, 2008
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def print_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print a table of the configurations, and tables of their waits by cards, by workload type and by priority."""
    first = outcomes[0]
    seeds = len({each.seed for each in outcomes})
    place = f"{plural(first.nodes, 'node')}, {plural(first.cards, 'card')}"
    print_line(console, f"{place}; the mean of {plural(seeds, 'seed')}; waits are of the pods that were placed")
    print_line(console, "")
    found = _configurations(outcomes)
    print_table(console, _COLUMNS, [Row(_summary(runs)) for runs in found])
    for by, heading in _HEADINGS.items():
        rows = [Row(cells) for runs in found for cells in _waits(runs, by)]
        if len(rows) > len(found):
            print_line(console, "")
            print_line(console, heading)
            print_table(console, (*_CONFIGURATION, Column(by, is_number=by != "type"), *_SIZES), rows)
    if first.evictions is not None:
        print_line(console, "")
        print_line(console, "Evicted, by the priority of the victims:")
        rows = [Row(cells) for runs in found for cells in _evicted(runs)]
        print_table(console, (*_CONFIGURATION, Column("priority", is_number=True), *_EVICTED), rows)
    if rows := [Row(cells) for runs in found for cells in _unplaced(runs)]:
        print_line(console, "")
        print_line(console, "Never placed, and why:")
        print_table(console, (*_CONFIGURATION, Column("pods", is_number=True), Column("reason")), rows)


def _configurations(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Return the outcomes grouped by policy and profile. `outcomes` must be in this order."""
    return [[*runs] for _, runs in groupby(outcomes, key=lambda each: (each.policy, each.profile))]


def _names(runs: Sequence[Outcome]) -> list[str]:
    return [runs[0].policy, runs[0].profile or "of each pod"]


def _summary(runs: Sequence[Outcome]) -> list[str]:
    allocated = [each.allocated for each in runs]
    whole = [next(waits for waits in each.waits if waits.by == "all") for each in runs]
    return [
        *_names(runs),
        _mean([each.pods for each in runs], 0),
        _mean([each.denied for each in runs], 0),
        _mean(allocated, 2),
        f"{min(allocated):.2f}–{max(allocated):.2f}" if len(runs) > 1 else "",
        _mean([each.most_allocated for each in runs], 2),
        _mean([each.last_allocated for each in runs], 2),
        _mean([each.fragmented for each in runs], 2),
        *_wait_cells(whole, len(runs)),
    ]


def _waits(runs: Sequence[Outcome], by: str) -> Iterator[list[str]]:
    found = [waits for each in runs for waits in each.waits if waits.by == by]
    values = sorted({waits.value for waits in found}, key=_order)
    for value in values:
        of_value = [waits for waits in found if waits.value == value]
        pods = sum(waits.pods for waits in of_value) / len(runs)
        yield [*_names(runs), value or "-", f"{pods:.0f}", *_wait_cells(of_value, len(runs))]


def _order(value: str) -> tuple[int, str]:
    """Return a sort key that orders numbers by value, and texts by themselves."""
    return (int(value), "") if value.removeprefix("-").isdecimal() else (0, value)


def _evicted(runs: Sequence[Outcome]) -> Iterator[list[str]]:
    """Yield the table cells for each priority with evicted pods, and for all priorities."""
    found = [[*(each.evictions or ())] for each in runs]
    for priority in sorted({each.priority for evictions in found for each in evictions}):
        of_priority = [[each for each in evictions if each.priority == priority] for evictions in found]
        yield [*_names(runs), str(priority), *_eviction_cells(of_priority)]
    yield [*_names(runs), "all", *_eviction_cells(found)]


def _unplaced(runs: Sequence[Outcome]) -> Iterator[list[str]]:
    """Yield the table cells for the most frequent reasons, with the mean number of pods."""
    pods = Counter[str]()
    for each in (unplaced for run in runs for unplaced in run.unplaced):
        pods[each.reason] += each.pods
    for reason, count in pods.most_common(_MOST_REASONS):
        yield [*_names(runs), f"{count / len(runs):.1f}".removesuffix(".0"), reason]


def _eviction_cells(found: Sequence[Sequence[Evictions]]) -> list[str]:
    return [
        _mean([sum(each.pods for each in evictions) for evictions in found], 1).removesuffix(".0"),
        _mean([sum(each.ended for each in evictions) for evictions in found], 1).removesuffix(".0"),
        _mean([sum(each.pod_hours for each in evictions) for evictions in found], 2),
        _mean([sum(each.card_hours for each in evictions) for evictions in found], 2),
    ]


def _wait_cells(waits: Sequence[Waits], runs: int) -> list[str]:
    """Return the means of the waits over those that have any, and of the pods without a node over all `runs`."""
    p50, p99 = _duration(each.p50 for each in waits), _duration(each.p99 for each in waits)
    never = sum(each.never_placed for each in waits) / runs
    return [p50, p99, f"{never:.1f}".removesuffix(".0")]


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{statistics.fmean(values):.{digits}f}"


def _duration(seconds: Iterable[float | None]) -> str:
    """Return the mean as text, such as `12 s`, `3.5 min` or `2.0 h`, or `-` without a value."""
    known = [each for each in seconds if each is not None]
    if not known:
        return "-"
    mean = statistics.fmean(known)
    for size, unit in _UNITS:
        if mean >= size:
            return f"{mean / size:.1f} {unit}"
    return f"{mean:.1f} s".replace(".0 s", " s")


def svg(outcomes: Sequence[Outcome]) -> str:
    """Return the plot. Each line is the mean over the seeds of a configuration."""
    found = _configurations(outcomes)
    span = max(each.series[-1].seconds - each.series[0].seconds for each in outcomes) or 1
    lines = [*_axes(span)]
    row = _ROW if outcomes[0].evictions is None else 2 * _ROW
    for number, runs in enumerate(found):
        colour = _COLOURS[number % len(_COLOURS)]
        # Lines of more configurations than colours are dashed.
        dash = f' stroke-dasharray="{4 * (number // len(_COLOURS))}"' if number >= len(_COLOURS) else ""
        points = " ".join(f"{x},{y}" for x, y in _points(runs, span))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>')
        y = _TOP + _HEIGHT + 50 + number * row
        lines.append(
            f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + 24}" y2="{y}" stroke="{colour}" stroke-width="3"{dash}/>'
        )
        name = f"{', '.join(_names(runs))}: {statistics.fmean(each.allocated for each in runs):.2f} %"
        lines.append(_text(_LEFT + 32, y + 4, name))
        if runs[0].evictions is not None:
            lines.append(_text(_LEFT + 32, y + 4 + _ROW, _evictions_in_words(runs)))
    width, height = _LEFT + _WIDTH + 30, _TOP + _HEIGHT + 60 + len(found) * row
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *lines, "</svg>", ""])


def _evictions_in_words(runs: Sequence[Outcome]) -> str:
    """Return a text about the evictions of a configuration and its waits by priority."""
    pods, _, _, card_hours = _eviction_cells([each.evictions or () for each in runs])
    waits = [f"{priority} {p99}" for _, _, priority, _, _, p99, _ in _waits(runs, "priority")]
    return f"evictions: {pods}; card-hours lost: {card_hours}; wait p99 by priority: {', '.join(waits)}"


def _points(runs: Sequence[Outcome], span: float) -> Iterator[tuple[float, float]]:
    """Yield the mean over samples with the same number, because seeds end at different times."""
    for samples in zip(*(each.series for each in runs), strict=False):
        seconds = statistics.fmean(
            sample.seconds - each.series[0].seconds for sample, each in zip(samples, runs, strict=True)
        )
        percent = statistics.fmean(sample.allocated for sample in samples)
        yield round(_LEFT + _WIDTH * seconds / span, 1), _y(percent)


def _axes(span: float) -> Iterator[str]:
    yield _text(_LEFT, _TOP - 12, "cards allocated, %")
    for percent in range(0, 101, 20):
        y = _y(percent)
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="#ddd"/>'
        yield _text(_LEFT - 34, y + 4, str(percent))
    size, unit = next(((size, unit) for size, unit in _UNITS if span >= 2 * size), (1, "s"))
    for step in range(5):
        x = _LEFT + _WIDTH * step / 4
        yield _text(x - 12, _TOP + _HEIGHT + 18, f"{span / size * step / 4:.3g} {unit}")


def _y(percent: float) -> float:
    return round(_TOP + _HEIGHT * (1 - percent / 100), 1)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="12">{escape(printable(text))}</text>'
