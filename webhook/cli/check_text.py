"""Text output of `check`: for each pod the verdict, a table of the nodes, and suggestions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from webhook.cli.screen import SafeConsole, marked
from webhook.placement.diagnosis import NodeToStatus
from webhook.placement.framework.result import Placement

_COLOURS = {"Feasible": "green", "Waiting": "yellow", "Infeasible": "red", "Unknown": "magenta", "Refused": "red"}
Scored = Mapping[str, int]

# Without a terminal, lines are not folded, and a table has the width of its cells.
_WIDE = 10_000


@dataclass(frozen=True, slots=True)
class Section:
    """One pod (`namespace/name`), its placement, and the reasons of each node that cannot take it."""

    pod: str
    placement: Placement
    reasons: NodeToStatus


def text_console() -> Console:
    """Return a console on standard output, which uses colours and folds lines only on a terminal."""
    console = SafeConsole()
    return console if console.is_terminal else SafeConsole(width=_WIDE)


def print_section(console: Console, section: Section, max_nodes: int) -> None:
    """Print `section` with at most `max_nodes` nodes, the best first; the others are counted by reason."""
    placement = section.placement
    where = f" on [bold]{marked(placement.node)}[/bold]" if placement.node else ""
    console.print(f"[bold]{marked(section.pod)}[/bold]: {_coloured(placement.verdict)}{where}")
    if placement.total:
        console.print(f"  {placement.feasible} of {placement.total} nodes can take it")
    if placement.message:
        console.print(f"  {marked(placement.message)}")
    if placement.deny_exemption:
        console.print(f"  not sure: {marked(placement.deny_exemption)}")
    if placement.unmodelled:
        console.print(f"  not looked at: {', '.join(placement.unmodelled)}")
    _print_nodes(console, section, max_nodes)
    if placement.suggestions:
        console.print("  suggestions:")
        for suggestion in placement.suggestions:
            console.print(f"    - {marked(suggestion)}")


def print_total(console: Console, verdicts: Iterable[str]) -> None:
    """Print the number of pods with each of `verdicts`."""
    counts = Counter(verdicts)
    parts = ", ".join(f"{counts[verdict]} {_coloured(verdict)}" for verdict in _COLOURS if counts[verdict])
    console.print(f"{counts.total()} pods: {parts}")


def _print_nodes(console: Console, section: Section, max_nodes: int) -> None:
    ranked = sorted(section.placement.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    failing = sorted(section.reasons.items(), key=lambda item: (item[1], item[0]))
    scored, failed = ranked[:max_nodes], failing[: max(max_nodes - len(ranked), 0)]
    if scored or failed:
        console.print(Padding(_table(scored, failed), (0, 0, 0, 1), expand=False))
    if left_out := len(ranked) - len(scored):
        console.print(f"  and {left_out} more that can take it")
    reasons = Counter(", ".join(reasons) for _, reasons in failing[len(failed) :])
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        console.print(f"  and {count} more: {marked(reason)}")


def _table(scored: Sequence[tuple[str, Scored]], failed: Sequence[tuple[str, tuple[str, ...]]]) -> Table:
    """Return a table of the nodes that can take the pod with their scores, then of the others with their reasons."""
    plugins = list(dict.fromkeys(plugin for _, scores in scored for plugin in scores if plugin != "total"))
    table = Table(box=None, pad_edge=True)
    table.add_column("node", no_wrap=True)
    for heading in ("total", *plugins) if scored else ():
        table.add_column(heading, justify="right")
    if failed:
        table.add_column("why not")
    for node, scores in scored:
        table.add_row(marked(node), str(scores["total"]), *(str(scores.get(plugin, "")) for plugin in plugins))
    blanks = [""] * (1 + len(plugins)) if scored else []
    for node, reasons in failed:
        table.add_row(marked(node), *blanks, marked(", ".join(reasons)), style="dim" if scored else None)
    return table


def _coloured(verdict: str) -> str:
    return f"[{_COLOURS[verdict]}]{verdict}[/{_COLOURS[verdict]}]"
