"""`capacity --make-room`: the pods to move so that another one fits, and the commands that move them."""

import shlex
from collections.abc import Iterator
from typing import Any

import orjson
from rich.console import Console

from webhook.cli.capacity_drain import UNKNOWN_BUDGETS, loses_work
from webhook.cli.screen import marked
from webhook.cluster.bound_pods import BoundPod
from webhook.cluster.disruption_budget import Budgets, budgets_of
from webhook.placement.capacity.make_room import Room, Tried
from webhook.placement.capacity.proof import Move, Plan


def room_to_json(room: Room, budgets: Budgets | None) -> dict[str, Any]:
    """Return the value of `makeRoom` in `capacity -o json`."""
    plan, tried = room.plan, room.tried
    return {
        "verdict": room.verdict,
        "message": room.message,
        "node": plan.node if plan else room.node,
        "boundTo": plan.chosen if plan else room.node,
        "moves": [_move_to_json(plan, move, budgets) for move in plan.moves] if plan else [],
        "commands": list(_commands(plan, budgets)) if plan else [],
        "budgetsKnown": budgets is not None,
        "tried": tried
        and {
            "nodes": tried.nodes,
            "sets": tried.sets,
            "moves": tried.moves,
            "complete": tried.is_complete,
            "notMoved": dict(tried.unmovable),
        },
    }


def _move_to_json(plan: Plan, move: Move, budgets: Budgets | None) -> dict[str, Any]:
    return {
        "pod": move.pod.full_name,
        "controller": str(move.pod.controller),
        "from": plan.node,
        "to": move.target,
        "cordon": [plan.node, *move.cordons],
        "nodesThatFit": move.choices,
        "anyOfThemDoes": move.may_go_anywhere,
        "losesLocalData": move.pod.has_empty_dir,
        "losesWork": loses_work(move.pod),
        "command": _removal(move.pod, budgets),
    }


def print_room(console: Console, room: Room, budgets: Budgets | None) -> None:
    """Print the moves in their order and their commands; or what was tried."""
    if room.plan is None:
        if room.tried is not None:
            for line in _tried(room.tried):
                console.print(f"  {marked(line)}")
        return
    plan = room.plan
    noun = "pod" if len(plan.moves) == 1 else "pods"
    console.print(f"  [bold]to make room on {marked(plan.node)}, move {len(plan.moves)} {noun}[/bold]:")
    for number, move in enumerate(plan.moves, start=1):
        console.print(f"    {number}. {marked(_move_text(plan, move))}")
    console.print("  commands, in this order; between the moves, wait until the new pod is bound:")
    for command in _commands(plan, budgets):
        console.print(f"    {marked(command)}", soft_wrap=True)
    console.print(f"  then the pod fits on {marked(plan.chosen)}, if no other pod takes the room first")
    if budgets is None:
        console.print(f"  {marked(UNKNOWN_BUDGETS)}")


def _move_text(plan: Plan, move: Move) -> str:
    others = f" (or to another of the {move.choices} nodes that fit)"
    where = others if move.may_go_anywhere and move.choices > 1 else ""
    remarks = ["its work begins again"] if loses_work(move.pod) else []
    remarks += ["the data of its emptyDir volumes are lost"] if move.pod.has_empty_dir else []
    text = f"{move.pod.full_name} of {move.pod.controller} from {plan.node} to {move.target}{where}"
    return "; ".join([text, *remarks])


def _commands(plan: Plan, budgets: Budgets | None) -> Iterator[str]:
    """Yield the shell commands: nodes are cordoned so that the new pods go where the plan has proven that they fit."""
    yield f"kubectl cordon {shlex.quote(plan.node)}"
    for move in plan.moves:
        cordons = " ".join(map(shlex.quote, move.cordons))
        if cordons:
            yield f"kubectl cordon {cordons}"
        yield _removal(move.pod, budgets)
        if cordons:
            yield f"kubectl uncordon {cordons}"
    yield f"kubectl uncordon {shlex.quote(plan.node)}"


def _removal(pod: BoundPod, budgets: Budgets | None) -> str:
    """Return the command that removes `pod`: an eviction, which respects budgets, unless the pod has none."""
    if budgets is not None and not budgets_of(pod, budgets):
        return f"kubectl delete pod {shlex.quote(pod.name)} --namespace {shlex.quote(pod.namespace)}"
    metadata = {"name": pod.name, "namespace": pod.namespace}
    eviction = orjson.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}).decode()
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
    return f"echo {shlex.quote(eviction)} | kubectl create --raw {shlex.quote(path)} -f -"


def _tried(tried: Tried) -> Iterator[str]:
    nodes = "no node" if not tried.nodes else "1 node" if tried.nodes == 1 else f"{tried.nodes} nodes"
    if not tried.sets:
        yield f"no moves make room: {nodes} could be freed of enough pods"
    else:
        sizes = f"1 to {tried.moves} pods" if tried.moves > 1 else "1 pod"
        noun = "set" if tried.sets == 1 else "sets"
        yield f"no moves make room: {tried.sets} {noun} of {sizes} tried on {nodes}"
    if not tried.is_complete:
        yield "the search ended early: not every set was tried"
    for reason, count in sorted(tried.unmovable.items(), key=lambda item: (-item[1], item[0])):
        yield f"not moved: {count} {'pod' if count == 1 else 'pods'} {reason}"
