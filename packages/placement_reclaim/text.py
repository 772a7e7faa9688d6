"""The report as text and as JSON."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from placement_reclaim.cluster import full_name
from placement_reclaim.effects import Effects
from placement_reclaim.held import Held, Since
from webhook.cli.output.screen import Column, Row, marked, print_lines, print_table
from webhook.documents.listing import plural, some

_COLUMNS = (
    Column("CARDS", is_number=True),
    Column("NODE", least=8),
    Column("HELD BY", least=14, folds=True),
    Column("SINCE", least=8, folds=True),
    Column("WHY", least=16, folds=True),
    Column("FREES IT", least=16, folds=True),
)
_MOST_NAMED = 3


def print_report(
    console: Console, rows: Sequence[Held], usable: Mapping[str, int], effects: Effects, now: int, kubectl: str
) -> None:
    """Print the rows, those on nodes that are down last, the commands, and the `effects`. `usable` is by resource."""
    if not rows:
        console.print("no cards are held and not used")
        return
    here, down = [each for each in rows if not each.is_down], [each for each in rows if each.is_down]
    commands = {command: condition for each in rows for command, condition in each.remedy.commands.items()}
    numbers = {command: number for number, command in enumerate(commands, start=1)}
    on_nodes = sum(n for each in here if each.nodes for resource, n in each.cards.items() if resource in usable)
    on_down = plural(sum(each.count for each in down), "card")
    for title, some_rows, end in (
        (f"held on usable nodes: {on_nodes} of {sum(usable.values())} cards", here, ""),
        (f"held on nodes that are down: {on_down}", down, "; no other pod can use them"),
    ):
        if some_rows:
            holders = plural(sum(max(1, len(each.pods)) for each in some_rows), "holder")
            console.print(f"[bold]{title}, {holders}{end}[/bold]")
            print_table(console, _COLUMNS, (_row(each, numbers, now) for each in some_rows))
    if commands:
        console.print("commands for a person who has checked the condition:")
    for command, condition in commands.items():
        print_lines(console, [f"({numbers[command]}) if {condition}:"])
        console.print(f"      {marked(f'{kubectl} {command}')}", soft_wrap=True)
    print_lines(console, _effect_lines(effects, rows), indent=0)


def _row(held: Held, numbers: Mapping[str, int], now: int) -> Row:
    frees = held.remedy.text + "".join(f" ({numbers[command]})" for command in held.remedy.commands)
    name = f"{held.namespace}/{held.name}" if held.namespace else f"node {held.name}"
    nodes = some(held.nodes, _MOST_NAMED) or "-"
    return Row([str(held.count), nodes, name, _since_text(held.since, now), held.why, frees])


def _since_text(since: Since, now: int) -> str:
    """Return the time until `now`, such as `41m`, `2h10m` or `at least 3d4h`."""
    hours, minutes = divmod(since.age(now) // 60, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (0 if days else minutes, "m"))
    age = "".join(f"{number}{unit}" for number, unit in parts if number) or "0m"
    return f"at least {age}" if since.is_least else age if since.is_known else "unknown"


def _effect_lines(effects: Effects, rows: Sequence[Held]) -> list[str]:
    """Return lines about the pods that start without the held pods, and about held pods that are created again."""
    starting = effects.starting
    gangs = sum(name in effects.gangs for name in starting)
    waiting = ((gangs, effects.gangs, "gang"), (len(starting) - gangs, effects.pods, "pod"))
    counts = [f"{number} of {plural(len(names), f'waiting {noun}')}" for number, names, noun in waiting if names]
    verb = "starts" if 1 in (len(starting), len(effects.gangs) + len(effects.pods)) else "start"
    lines = [f"without them {' and '.join(counts)} {verb}" if counts else "no gang and no pod waits for cards"]
    if starting:
        lines[0] += f": {some(starting)}"
    if not effects.is_complete:
        lines.append("too many pods wait: only the first of the queue are placed")
    if returning := sum(len(each.pods) for each in rows if each.returns):
        verb = "returns" if returning == 1 else "return"
        lines.append(f"{plural(returning, 'pod')} of them {verb} at once: a controller makes them again")
    return lines


def to_json(
    rows: Sequence[Held], usable: Mapping[str, int], effects: Effects, now: int, kubectl: str
) -> dict[str, Any]:
    """Return the document of `reclaim -o json`."""
    return {
        "usableCards": sum(usable.values()),
        "held": [_row_to_json(each, now, kubectl) for each in rows],
        "waiting": {"gangs": effects.gangs, "pods": effects.pods},
        "starts": effects.starting,
        "complete": effects.is_complete,
    }


def _row_to_json(held: Held, now: int, kubectl: str) -> dict[str, Any]:
    """Return the JSON of a row. `since` is null if the API has no such time."""
    commands = held.remedy.commands.items()
    since = datetime.fromtimestamp(held.since.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "class": held.reason,
        "cards": held.count,
        "resources": dict(held.cards),
        "nodes": held.nodes,
        "namespace": held.namespace or None,
        "name": held.name,
        "pods": [full_name(pod)[1] for pod in held.pods],
        "since": since if held.since.is_known else None,
        "atLeast": held.since.is_least,
        "seconds": held.since.age(now) if held.since.is_known else None,
        "why": held.why,
        "freedBy": held.remedy.text,
        "commands": [{"command": f"{kubectl} {each}", "onlyIf": condition} for each, condition in commands],
        "nodeDown": held.is_down,
        "returns": held.returns,
    }
