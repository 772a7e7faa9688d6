"""The text of `simulate`: the configurations side by side, each with the mean over its seeds."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console

from webhook.analysis.simulation.outcome import Outcome, Waits
from webhook.cli.output.screen import Column, Row, print_line, print_table
from webhook.cli.output.terminal import plural

_CONFIGURATION = (Column("policy", least=12), Column("profile", least=8))
_COLUMNS = (
    *_CONFIGURATION,
    *(Column(title, is_number=True) for title in ("pods", "denied", "allocated %", "range", "most %", "at the end %")),
    *(Column(title, is_number=True) for title in ("fragmented %", "wait p50", "wait p99", "never placed")),
)
_SIZES = (
    *_CONFIGURATION,
    *(Column(title, is_number=True) for title in ("pods", "wait p50", "wait p99", "never placed")),
)
_OWN = "of each pod"
_TITLES = {"cards": ("cards", "By the cards that a pod requests:"), "type": ("type", "By workload type:")}
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def print_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print a table of the configurations, and one of their waits by cards and by workload type."""
    first = outcomes[0]
    seeds = len({each.seed for each in outcomes})
    place = f"{plural(first.nodes, 'node')}, {plural(first.cards, 'card')}"
    print_line(console, f"{place}; the mean of {plural(seeds, 'seed')}; waits are of the pods that were placed")
    print_line(console, "")
    print_table(console, _COLUMNS, [Row(_summary(runs)) for runs in configurations(outcomes)])
    for by, (title, heading) in _TITLES.items():
        rows = [Row(cells) for runs in configurations(outcomes) for cells in _waits(runs, by)]
        if len(rows) > len([*configurations(outcomes)]):
            print_line(console, "")
            print_line(console, heading)
            columns = (*_SIZES[:2], Column(title, is_number=by == "cards"), *_SIZES[2:])
            print_table(console, columns, rows)


def configurations(outcomes: Iterable[Outcome]) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each policy and profile, which are in this order."""
    for _, runs in groupby(outcomes, key=lambda each: (each.policy, each.profile)):
        yield list(runs)


def profile_name(outcome: Outcome) -> str:
    """Return the name of the profile in texts."""
    return outcome.profile or _OWN


def _summary(runs: Sequence[Outcome]) -> list[str]:
    allocated = [each.allocated for each in runs]
    whole = [next(waits for waits in each.waits if waits.by == "all") for each in runs]
    return [
        runs[0].policy,
        profile_name(runs[0]),
        _mean([each.pods for each in runs], 0),
        _mean([each.denied for each in runs], 0),
        _mean(allocated, 2),
        f"{min(allocated):.2f}–{max(allocated):.2f}" if len(runs) > 1 else "",
        _mean([each.most_allocated for each in runs], 2),
        _mean([each.last_allocated for each in runs], 2),
        _mean([each.fragmented for each in runs], 2),
        *_wait_cells(whole),
    ]


def _waits(runs: Sequence[Outcome], by: str) -> Iterator[list[str]]:
    found = [waits for each in runs for waits in each.waits if waits.by == by]
    values = sorted({waits.value for waits in found}, key=lambda value: (len(value), value))
    for value in values:
        of_value = [waits for waits in found if waits.value == value]
        pods = sum(waits.pods for waits in of_value) / len(runs)
        yield [runs[0].policy, profile_name(runs[0]), value or "-", f"{pods:.0f}", *_wait_cells(of_value)]


def _wait_cells(waits: Sequence[Waits]) -> list[str]:
    p50, p99 = (
        [each.p50 for each in waits if each.p50 is not None],
        [each.p99 for each in waits if each.p99 is not None],
    )
    never = statistics.fmean(each.never_placed for each in waits)
    return [_duration(p50), _duration(p99), f"{never:.1f}".removesuffix(".0")]


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{statistics.fmean(values):.{digits}f}"


def _duration(seconds: Sequence[float]) -> str:
    """Return the mean in words, such as `12 s`, `3.5 min` or `2.0 h`; `-` without a value."""
    if not seconds:
        return "-"
    mean = statistics.fmean(seconds)
    for size, unit in _UNITS:
        if mean >= size:
            return f"{mean / size:.1f} {unit}"
    return f"{mean:.1f} s".replace(".0 s", " s")
