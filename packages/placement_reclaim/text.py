"""The report as text and as JSON."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console

from placement_reclaim.cluster import full_name
from placement_reclaim.effects import Effects
from placement_reclaim.held import Held, Since
from webhook.cli.output.screen import Column, Row, marked, print_lines, print_table
from webhook.cli.output.terminal import echo, echo_json
from webhook.documents.listing import plural, some

if TYPE_CHECKING:
    from placement_reclaim.eviction import Result

_COLUMNS = (
    Column("CARDS", is_number=True),
    Column("NODE", least=8),
    Column("HELD BY", least=14, folds=True),
    Column("SINCE", least=8, folds=True),
    Column("WHY", least=16, folds=True),
    Column("FREES IT", least=16, folds=True),
)
_MOST_NAMED = 3


def age_text(seconds: int) -> str:
    """Return an age in its largest units: `41m`, `2h10m`, `3d4h`."""
    hours, minutes = divmod(max(seconds, 0) // 60, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (0 if days else minutes, "m"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0m"


def since_text(since: Since, now: int) -> str:
    """Return a text about how long cards have been unused at `now`, in Unix seconds."""
    age = age_text(now - since.seconds)
    return f"at least {age}" if since.is_least else age if since.is_known else "unknown"


def print_report(console: Console, rows: Sequence[Held], usable: Mapping[str, int], effects: Effects, now: int) -> None:
    """Print the rows on usable nodes, the rows on nodes that are down, the commands, and the `effects`.

    `usable` are the cards of usable nodes by resource.
    """
    if not rows:
        console.print("no cards are held and not used")
        return
    here, down = [each for each in rows if not each.is_down], [each for each in rows if each.is_down]
    steps = {step: None for each in rows for step in each.remedy.steps}
    numbers = {step: number for number, step in enumerate(steps, start=1)}
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
    if steps:
        console.print("commands for a person who has checked the condition:")
    for step, number in numbers.items():
        print_lines(console, [f"({number}) if {step.only_if}:"])
        console.print(f"      {marked(step.command)}", soft_wrap=True)
    print_lines(console, effect_lines(effects, rows), indent=0)


def _row(held: Held, numbers: Mapping[Any, int], now: int) -> Row:
    frees = held.remedy.text + "".join(f" ({numbers[step]})" for step in held.remedy.steps)
    name = f"{held.namespace}/{held.name}" if held.namespace else f"node {held.name}"
    nodes = some(held.nodes, _MOST_NAMED) or "-"
    return Row([str(held.count), nodes, name, since_text(held.since, now), held.why, frees])


def effect_lines(effects: Effects, rows: Sequence[Held]) -> list[str]:
    """Return lines about the pods that start without the held pods, and about held pods that are created again."""
    starting = effects.starting
    gangs = sum(name in effects.gangs for name in starting)
    waiting = ((gangs, effects.gangs, "gang"), (len(starting) - gangs, effects.pods, "pod"))
    counts = [f"{number} of {plural(len(names), f'waiting {noun}')}" for number, names, noun in waiting if names]
    verb = "start" if len(starting) > 1 else "starts"
    lines = [f"without them {' and '.join(counts)} {verb}" if counts else "no gang and no pod waits for cards"]
    if starting:
        lines[0] += f": {some(starting)}"
    if not effects.is_complete:
        lines.append("too many pods wait: only the first of the queue are placed")
    if returning := sum(len(each.pods) for each in rows if each.returns):
        verb = "returns" if returning == 1 else "return"
        lines.append(f"{plural(returning, 'pod')} of them {verb} at once: a controller makes them again")
    return lines


def to_json(rows: Sequence[Held], usable: Mapping[str, int], effects: Effects, now: int) -> dict[str, Any]:
    """Return the document of `reclaim -o json`."""
    return {
        "usableCards": sum(usable.values()),
        "held": [row_to_json(each, now) for each in rows],
        "waiting": {"gangs": effects.gangs, "pods": effects.pods},
        "starts": effects.starting,
        "complete": effects.is_complete,
    }


def row_to_json(held: Held, now: int) -> dict[str, Any]:
    """Return the JSON of a row. `since` is null if the API has no such time."""
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
        "seconds": now - held.since.seconds if held.since.is_known else None,
        "why": held.why,
        "freedBy": held.remedy.text,
        "commands": [{"command": each.command, "onlyIf": each.only_if} for each in held.remedy.steps],
        "nodeDown": held.is_down,
        "returns": held.returns,
    }


def print_result(result: "Result", *, is_json: bool, is_confirmed: bool) -> str:
    """Print the result of an eviction, and return it as text."""
    held, name = result.held, "/".join(full_name(result.pod))
    evicted = "evicted" if is_confirmed else "would be evicted"
    shown = {"Evicted": evicted, "Denied": "refused", "Error": "no answer"}.get(result.outcome, "left alone")
    returns = held.returns and result.outcome == "Evicted"
    if is_json:
        line = {"pod": name, "class": held.reason, "result": shown, "message": result.detail or None}
        echo_json({**line, "dryRun": not is_confirmed, "returns": returns})
    else:
        end = "; returns at once: a controller makes it again" if returns else ""
        echo(f"{shown}: {name}: {result.detail or held.reason}{end}")
    return shown
