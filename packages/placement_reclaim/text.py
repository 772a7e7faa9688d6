"""The report as text and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
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
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def age_text(seconds: int) -> str:
    """Return an age in its largest units: `41m`, `2h10m`, `3d4h`."""
    if seconds < _HOUR:
        return f"{max(seconds, 0) // _MINUTE}m"
    if seconds < _DAY:
        hours, minutes = divmod(seconds // _MINUTE, 60)
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    days, hours = divmod(seconds // _HOUR, 24)
    return f"{days}d{hours}h" if hours else f"{days}d"


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
    steps = {step: None for each in rows for step in each.steps}
    numbers = {step: number for number, step in enumerate(steps, start=1)}
    if here:
        on_nodes = sum(n for each in here if each.nodes for resource, n in each.cards.items() if resource in usable)
        console.print(
            f"[bold]held on usable nodes: {on_nodes} of {sum(usable.values())} cards, {_holders(here)}[/bold]"
        )
        print_table(console, _COLUMNS, (_row(each, numbers, now) for each in here))
    if down:
        cards = plural(sum(each.count for each in down), "card")
        console.print(f"[bold]held on nodes that are down: {cards}, {_holders(down)}; no other pod can use them[/bold]")
        print_table(console, _COLUMNS, (_row(each, numbers, now) for each in down))
    if steps:
        console.print("commands for a person who has checked the condition:")
    for step, number in numbers.items():
        print_lines(console, [f"({number}) if {step.only_if}:"])
        console.print(f"      {marked(step.command)}", soft_wrap=True)
    print_lines(console, effect_lines(effects, rows), indent=0)


def _holders(rows: Iterable[Held]) -> str:
    return plural(sum(max(1, len(each.pods)) for each in rows), "holder")


def _row(held: Held, numbers: Mapping[Any, int], now: int) -> Row:
    marks = "".join(f" ({numbers[step]})" for step in held.steps)
    name = f"{held.namespace}/{held.name}" if held.namespace else f"node {held.name}"
    nodes = some(held.nodes, _MOST_NAMED) or "-"
    return Row([str(held.count), nodes, name, since_text(held.since, now), held.why, held.frees + marks])


def effect_lines(effects: Effects, rows: Sequence[Held]) -> list[str]:
    """Return lines about the pods that start without the held pods, and about held pods that are created again."""
    gangs, pods = len(effects.gangs), len(effects.pods)
    starting_gangs = effects.starting_gangs
    starting_pods = len(effects.starting) - starting_gangs
    counts = [f"{starting_gangs} of {plural(gangs, 'waiting gang')}"] if gangs else []
    counts += [f"{starting_pods} of {plural(pods, 'waiting pod')}"] if pods else []
    verb = "start" if len(effects.starting) > 1 else "starts"
    lines = [f"without them {' and '.join(counts)} {verb}" if counts else "no gang and no pod waits for cards"]
    if effects.starting:
        lines[0] += f": {some(effects.starting)}"
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
        "waiting": {"gangs": list(effects.gangs), "pods": list(effects.pods)},
        "starts": list(effects.starting),
        "complete": effects.is_complete,
    }


def row_to_json(held: Held, now: int) -> dict[str, Any]:
    """Return the JSON of a row. `since` is null if the API has no such time."""
    since = datetime.fromtimestamp(held.since.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "class": held.reason,
        "cards": held.count,
        "resources": dict(held.cards),
        "nodes": list(held.nodes),
        "namespace": held.namespace or None,
        "name": held.name,
        "pods": [str(pod["metadata"]["name"]) for pod in held.pods],
        "since": since if held.since.is_known else None,
        "atLeast": held.since.is_least,
        "seconds": now - held.since.seconds if held.since.is_known else None,
        "why": held.why,
        "freedBy": held.frees,
        "commands": [{"command": each.command, "onlyIf": each.only_if} for each in held.steps],
        "nodeDown": held.is_down,
        "returns": held.returns,
    }


def print_result(result: "Result", *, is_json: bool, is_confirmed: bool) -> str:
    """Print the result of an eviction, and return it as text."""
    held, name = result.held, "/".join(full_name(result.pod))
    evicted = "evicted" if is_confirmed else "would be evicted"
    words = {"Evicted": evicted, "Denied": "refused", "Error": "no answer"}
    shown = words.get(result.outcome, "left alone")
    returns = held.returns and result.outcome == "Evicted"
    if is_json:
        line = {"pod": name, "class": held.reason, "result": shown, "message": result.detail or None}
        echo_json({**line, "dryRun": not is_confirmed, "returns": returns})
    else:
        end = "; returns at once: a controller makes it again" if returns else ""
        echo(f"{shown}: {name}: {result.detail or held.reason}{end}")
    return shown
