"""Output of `capacity`: text and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from webhook.cli.capacity_counts import Counted
from webhook.cli.screen import marked
from webhook.cli.table import Column, Row, print_table
from webhook.placement.capacity.counting import Count
from webhook.placement.capacity.free_blocks import FreeBlock

# The nodes of one line.
_MOST_NAMES = 5


def to_json(counted: Counted, stopped_pod: str | None, blocks: Sequence[FreeBlock]) -> dict[str, Any]:
    """Return the line of the pods in `capacity -o json`; `stopped_pod` is the first pod that does not fit."""
    count, workload = counted.count, counted.workload
    line = {
        "pod": workload.name,
        "fits": count.fits,
        "nodes": dict(count.nodes),
        "stoppedBy": count.stopped.message if count.stopped else None,
        "complete": count.is_complete,
        "endedEarly": count.ended_early or None,
        "range": [count.range.lowest, count.range.highest] if count.range else None,
        "refused": counted.is_refused,
        "largestBlocks": [_block(each) for each in blocks],
        **workload.policy_json,
    }
    if counted.turns is not None:
        line |= {"share": counted.share, "turns": counted.turns, "stoppedPod": stopped_pod}
    if counted.reserved:
        line |= {"reserved": counted.reserved.to_json()}
    pods = workload.pods
    return line | ({"object": workload.owner, "role": pods.role if pods else ""} if workload.owner else {})


def _block(block: FreeBlock) -> dict[str, Any]:
    return {
        "pool": block.pool,
        "resource": block.resource,
        "product": block.product,
        "cards": block.cards,
        "nodes": block.nodes,
    }


def print_counted(console: Console, counted: Counted, stopped_pod: str | None, max_nodes: int) -> None:
    """Print how many of the pods fit, on which nodes, and what stops the next one."""
    count, workload = counted.count, counted.workload
    console.print(f"[bold]{marked(workload.name)}[/bold]: {_fits(count)}")
    if workload.chosen_policy:
        console.print(f"  policy {marked(workload.chosen_policy)}")
    if workload.title:
        console.print(f"  {marked(workload.title)}")
    if counted.reserved:
        console.print(f"  {marked(counted.reserved.text)}")
    if counted.turns is not None:
        noun = "turn" if counted.turns == 1 else "turns"
        console.print(f"  {counted.turns} whole {noun} with {counted.share} of this pod each")
    if count.range and count.range.lowest != count.range.highest:
        found = f"{count.range.lowest} to {count.range.highest} fit in {count.range.runs} runs"
        console.print(f"  {found}: kube-scheduler chooses at random between nodes of equal scores")
    for line in _node_lines(count.nodes, max_nodes):
        console.print(f"  {marked(line)}")
    if count.ended_early:
        console.print(f"  the count ended early: {marked(count.ended_early)}")
    elif count.stopped:
        next_one = f"the next {stopped_pod}" if stopped_pod else "the next one"
        console.print(f"  {marked(next_one)}: {marked(count.stopped.message)}")


def _fits(count: Count) -> str:
    if count.ended_early and not count.fits:
        return "not known how many more fit"
    least = "at least " if count.ended_early else ""
    verb = "fits" if count.fits == 1 else "fit"
    asked = "" if count.ended_early or count.stopped else ", all that were asked for"
    return f"{least}{count.fits} more {verb}{asked}"


def _node_lines(nodes: Mapping[str, int], max_nodes: int) -> list[str]:
    """Return the nodes that take equally many pods on one line, those that take the most first."""
    by_number: dict[int, list[str]] = {}
    for node, number in sorted(nodes.items()):
        by_number.setdefault(number, []).append(node)
    lines = []
    for number, names in sorted(by_number.items(), reverse=True)[:max_nodes]:
        each = f"each of {len(names)} nodes: " if len(names) > 1 else ""
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        lines.append(f"{number} on {each}{', '.join(names[:_MOST_NAMES])}{more}")
    left_out = sorted(by_number, reverse=True)[max_nodes:]
    if left_out:
        more_nodes = sum(len(by_number[number]) for number in left_out)
        lines.append(f"{left_out[-1]} to {left_out[0]} on each of {more_nodes} more nodes")
    return lines


def print_blocks(console: Console, blocks: Sequence[FreeBlock]) -> None:
    """Print the table of the largest free blocks."""
    if not blocks:
        return
    console.print("largest free blocks on one node, as the cluster stands:")
    columns = [
        Column("pool", least=8),
        Column("resource", least=12),
        Column("product", least=12),
        Column("free cards", is_number=True),
        Column("nodes", is_number=True),
    ]
    rows = [
        Row([each.pool or "-", each.resource, each.product or "-", str(each.cards), str(each.nodes)]) for each in blocks
    ]
    print_table(console, columns, rows, indent=2)
