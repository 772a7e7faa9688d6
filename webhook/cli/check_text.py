"""Text output of `check`: for each pod the verdict, a table of the nodes, and suggestions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from webhook.cli.screen import SafeConsole, marked
from webhook.cli.table import Column, Row, print_table
from webhook.placement.diagnosis import NodeToStatus
from webhook.placement.framework.result import Placement

_COLOURS = {"Feasible": "green", "Waiting": "yellow", "Infeasible": "red", "Unknown": "magenta", "Refused": "red"}
Scored = Mapping[str, float]

# Without a terminal, lines are not folded, and a table has the width of its cells.
_WIDE = 10_000

# The nodes of one line.
_MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class Section:
    """One pod (`namespace/name`), its placement, and the reasons of each node that cannot take the pod.

    `replicas` is the object that creates the pod with the count of its replicas; empty for a Pod. `without_pods` are
    the nodes that could take a waiting pod if no pod was running, `without_pending` those that could take it without
    the pending pods before it. `reserved` is the text about these; empty if there are none. `gang` are lines about the
    pods that must run together. `qos_class` is None if it is not known. `policy` is empty if there is one alone.
    """

    pod: str
    placement: Placement
    reasons: NodeToStatus
    replicas: str = ""
    without_pods: Sequence[str] = ()
    without_pending: Sequence[str] = ()
    reserved: str = ""
    gang: Sequence[str] = ()
    qos_class: str | None = None
    policy: str = ""


def text_console() -> Console:
    """Return a console on standard output, which uses colours and folds lines only on a terminal."""
    console = SafeConsole()
    return console if console.is_terminal else SafeConsole(width=_WIDE)


def print_section(console: Console, section: Section, max_nodes: int) -> None:
    """Print `section` with at most `max_nodes` nodes, the best first; the others are counted by reason."""
    placement = section.placement
    where = f" on [bold]{marked(placement.node)}[/bold]" if placement.node else ""
    console.print(f"[bold]{marked(section.pod)}[/bold]: {_coloured(placement.verdict)}{where}")
    for line in filter(None, (section.policy and f"policy {section.policy}", section.replicas)):
        console.print(f"  {marked(line)}")
    if placement.total:
        console.print(f"  {placement.feasible} of {placement.total} nodes can take it")
    if placement.message:
        console.print(f"  {marked(placement.message)}")
    for line in section.gang:
        console.print(f"  {marked(line)}")
    _print_pods(console, section)
    if placement.deny_exemption:
        console.print(f"  not sure: {marked(placement.deny_exemption)}")
    if placement.unmodelled:
        console.print(f"  not looked at: {', '.join(placement.unmodelled)}")
    _print_nodes(console, section, max_nodes)
    if section.qos_class:
        console.print(f"  QoS class: {section.qos_class}")
    if placement.suggestions:
        console.print("  suggestions:")
        for suggestion in placement.suggestions:
            console.print(f"    - {marked(suggestion)}")


def _print_pods(console: Console, section: Section) -> None:
    """Print which pods come before the pod, and the nodes that could take it without others."""
    if section.reserved:
        console.print(f"  {marked(section.reserved)}")
    if section.without_pending:
        console.print(f"  would fit without the pods that wait before it: {marked(_shown(section.without_pending))}")
    if section.without_pods:
        console.print(f"  would fit if running pods were gone: {marked(_shown(section.without_pods))}")


def _shown(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return ", ".join(nodes[:_MOST_NODES]) + more


def print_total(console: Console, verdicts: Iterable[str], noun: str = "pods") -> None:
    """Print the number of pods, or of what `noun` names, with each of `verdicts`."""
    counts = Counter(verdicts)
    parts = ", ".join(f"{counts[verdict]} {_coloured(verdict)}" for verdict in _COLOURS if counts[verdict])
    console.print(f"{counts.total()} {noun}: {parts}")


def _print_nodes(console: Console, section: Section, max_nodes: int) -> None:
    ranked = sorted(section.placement.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    failing = sorted(section.reasons.items(), key=lambda item: (item[1], item[0]))
    scored, failed = ranked[:max_nodes], failing[: max(max_nodes - len(ranked), 0)]
    if scored or failed:
        print_table(console, *_table(scored, failed), indent=2)
    if left_out := len(ranked) - len(scored):
        console.print(f"  and {left_out} more that can take it")
    reasons = Counter(", ".join(reasons) for _, reasons in failing[len(failed) :])
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        console.print(f"  and {count} more: {marked(reason)}")


def _table(
    scored: Sequence[tuple[str, Scored]], failed: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[list[Column], list[Row]]:
    """Return a table of the nodes that can take the pod with their scores, then of the others with their reasons."""
    plugins = list(dict.fromkeys(plugin for _, scores in scored for plugin in scores if plugin != "total"))
    columns = [Column("node", least=20)]
    if scored:
        columns.append(Column("total", is_number=True))
        columns += [Column(plugin, is_number=True, drop=1 + _spread(plugin, scored)) for plugin in plugins]
    if failed:
        columns.append(Column("why not", least=30, folds=True))
    rows = [
        Row(
            [
                node,
                str(scores["total"]),
                *(str(scores.get(plugin, "")) for plugin in plugins),
                *([""] if failed else []),
            ]
        )
        for node, scores in scored
    ]
    blanks = [""] * (1 + len(plugins)) if scored else []
    style = "dim" if scored else ""
    rows += [Row([node, *blanks, ", ".join(reasons)], style) for node, reasons in failed]
    return columns, rows


def _spread(plugin: str, scored: Sequence[tuple[str, Scored]]) -> int:
    """Return how far the scores of the plugin are apart: the plugin decides little if they are close."""
    found = [scores.get(plugin, 0) for _, scores in scored]
    return int(max(found) - min(found))


def _coloured(verdict: str) -> str:
    return f"[{_COLOURS[verdict]}]{verdict}[/{_COLOURS[verdict]}]"
