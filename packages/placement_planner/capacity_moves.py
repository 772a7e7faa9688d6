"""The parts of `capacity` that move running pods: drain nodes, and make room for a pod."""

import shlex
from collections.abc import Iterator
from typing import Any

import orjson
from rich.console import Console

from placement_planner.capacity.drain import Drain, DrainedPod, drain
from placement_planner.capacity.make_room import Room, Tried, make_room
from placement_planner.capacity.moves import cordoned
from placement_planner.capacity.proof import Move, Plan
from placement_planner.capacity_counts import Counted, Counts
from webhook.cli.inputs.clusters import known_nodes
from webhook.cli.inputs.pending import PendingQueue, Reserved
from webhook.cli.inputs.session import Session
from webhook.cli.output.screen import Column, Row, marked, print_lines, print_table
from webhook.cli.output.terminal import Progress, echo_json
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.eviction_refusal import budgets_of
from webhook.cluster.objects.disruption_budget import Budgets
from webhook.cluster.pods.bound_pods import BoundPod
from webhook.documents.listing import plural, some
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.placement.reasons.evictions import certainty, eviction_text, violations
from webhook.placement.waiting.assumed_pods import AssumedPods

_UNKNOWN_BUDGETS = "PodDisruptionBudgets are not known; `kubectl get nodes,pods,namespaces,pdb -A -o json` prints them"


def drained(
    session: Session, names: tuple[str, ...], console: Console, progress: Progress
) -> tuple[PendingQueue, bool]:
    """Print the nodes on which the pods of drained nodes fit.

    Return the pending pods on the cluster after the drain, and whether all replaced pods fit.

    Raises:
        InvalidInput: a node is not in the cluster, or a field of a pod that is read is malformed.
    """
    snapshot, disruptions = session.view
    nodes = known_nodes("--drain", names, snapshot)
    # Pods that wait now are bound, to other nodes than the cordoned ones, before a pod is evicted.
    pending = session.queue(cordoned(snapshot, nodes))
    found = drain(
        pending.assumed.all_shown,
        disruptions.bound,
        disruptions.budgets,
        nodes,
        session.schedulers(session.rules.default),
        lambda done, total: progress.show(f"drain: {done} of {total} pods placed"),
    )
    progress.end()
    if session.is_json:
        echo_json(_drain_to_json(found, pending.reserved))
    else:
        _print_drain(console, found, pending.reserved, session.max_nodes)
    return PendingQueue(AssumedPods(found.snapshot)), found.fitting == found.replaced


def room_for(counts: Counts, counted: Counted, disruptions: Disruptions, progress: Progress) -> Room | None:
    """Return the Room for a counted pod, or None for a pod that was not evaluated.

    Raises:
        InvalidInput: a field of a pod that is read is malformed.
    """
    count = counted.count
    is_unknown = count.stopped.verdict == "Unknown" if count.stopped else bool(count.ended_early and not count.fits)
    if counted.is_refused or is_unknown:
        return None

    def show(moves: int, sets: int) -> None:
        progress.show(f"{counted.workload.name}: {sets} sets of pods tried, of {moves} pods now")

    pod, snapshot = counts.next_pod(counted)
    schedulers = counts.admissions.schedulers(counted.workload.policy)
    found = make_room(snapshot, disruptions.bound, disruptions.budgets, pod, schedulers, show)
    progress.end()
    return found


def _drain_to_json(found: Drain, reserved: Reserved) -> dict[str, Any]:
    """Return the line of the drain in `capacity -o json`. The pending pods `reserved` were placed first."""
    line = {
        "drain": list(found.nodes),
        "fits": found.fitting,
        "of": found.replaced,
        "pods": [_pod_to_json(each) for each in found.pods],
        "stays": [pod.full_name for pod in found.staying],
        "terminating": [pod.full_name for pod in found.ending],
        "budgetsKnown": found.knows_budgets,
    }
    return line | ({"reserved": reserved.to_json()} if reserved else {})


def _pod_to_json(each: DrainedPod) -> dict[str, Any]:
    line = {
        "pod": each.pod.full_name,
        "controller": str(each.pod.controller) if each.pod.controller else None,
        "from": each.pod.node,
        "to": each.node,
        "outcome": each.outcome,
        "message": each.message,
        "evictionRefused": each.refusal or None,
        "losesLocalData": each.pod.has_empty_dir,
        "losesWork": _loses_work(each.pod),
    }
    if each.preemption is None:
        return line
    return line | {"preempts": [*each.preemption.names()], "preemption": each.preemption.to_json()}


def _loses_work(pod: BoundPod) -> bool:
    """Return true if the work of the pod is lost when it is deleted."""
    return pod.controller is None or pod.controller.is_job


def _print_drain(console: Console, found: Drain, reserved: Reserved, max_nodes: int) -> None:
    """Print the results of the pods, those that fit nowhere first, further consequences, and the counts.

    At most `max_nodes` of the pods that fit have a line. The pending pods `reserved` were placed first.
    """
    console.print(f"[bold]drain of {marked(some(found.nodes))}[/bold]:")
    print_lines(console, [reserved.text])
    fitting = [each for each in found.pods if each.outcome == "Fits"]
    others = [each for each in found.pods if each.outcome not in ("Fits", "Lost")]
    shown = [*others, *fitting[:max_nodes]]
    if shown:
        columns = [Column("pod", least=20), Column("from", least=8), Column("to", least=8)]
        columns += [Column("why not", least=30, folds=True)] if others else []
        cells = [[each.pod.full_name, each.pod.node, each.node or "-", each.message] for each in shown]
        print_table(console, columns, [Row(each[: len(columns)]) for each in cells], indent=2)
    if left_out := len(fitting) - len(fitting[:max_nodes]):
        console.print(f"  and {left_out} more that fit")
    print_lines(console, _remarks(found))
    console.print(f"[bold]{found.text}[/bold]")


def _remarks(found: Drain) -> Iterator[str]:
    pods = [each.pod for each in found.pods]
    placed = [each.pod for each in found.pods if each.outcome != "Lost"]
    groups = {
        "without a controller: lost; kubectl drain refuses them without --force": [
            each.pod for each in found.pods if each.outcome == "Lost"
        ],
        "with emptyDir volumes: the data are lost; kubectl drain refuses them without --delete-emptydir-data": [
            pod for pod in pods if pod.has_empty_dir
        ],
        "of Jobs: their work begins again": [pod for pod in placed if pod.controller and pod.controller.is_job],
        "of other schedulers: placed here as kube-scheduler would": [
            pod for pod in placed if pod.scheduler != DEFAULT_SCHEDULER
        ],
        "of DaemonSets: they stay; kubectl drain refuses them without --ignore-daemonsets": [
            pod for pod in found.staying if not pod.is_mirror
        ],
        "managed by the kubelet (mirror pods): they stay": [pod for pod in found.staying if pod.is_mirror],
        "that are already being deleted": [*found.ending],
    }
    for each in found.pods:
        if each.refusal:
            when = "later" if each.is_refused_later else "now"
            groups.setdefault(f"whose eviction is refused {when}: {each.refusal}", []).append(each.pod)
    for text, those in groups.items():
        if those:
            yield f"{plural(len(those), 'pod')} {text}: {some([pod.full_name for pod in those])}"
    if not found.knows_budgets:
        yield _UNKNOWN_BUDGETS


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
        **({"preemption": room.preemption.to_json()} if room.preemption and room.preemption.evicts else {}),
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
        "losesWork": _loses_work(move.pod),
        "command": _removal(move.pod, budgets),
    }


def print_room(console: Console, room: Room, budgets: Budgets | None) -> None:
    """Print the evictions of kube-scheduler, and the moves in order with their commands, or what was tried."""
    if room.preemption and room.preemption.evicts:
        evictions = f"without moves, {eviction_text(room.preemption)}"
        print_lines(console, [evictions, *violations(room.preemption), *certainty(room.preemption)])
    if room.plan is None:
        print_lines(console, _tried(room.tried) if room.tried else ())
        return
    plan = room.plan
    console.print(f"  [bold]to make room on {marked(plan.node)}, move {plural(len(plan.moves), 'pod')}[/bold]:")
    moves = (f"{number}. {_move_text(plan, move)}" for number, move in enumerate(plan.moves, start=1))
    print_lines(console, moves, indent=4)
    console.print("  commands, in this order; between the moves, wait until the new pod is bound:")
    for command in _commands(plan, budgets):
        console.print(f"    {marked(command)}", soft_wrap=True)
    console.print(f"  then the pod fits on {marked(plan.chosen)}, if no other pod takes the room first")
    print_lines(console, [_UNKNOWN_BUDGETS] if budgets is None else ())


def _move_text(plan: Plan, move: Move) -> str:
    others = f" (or to another of the {move.choices} nodes that fit)"
    where = others if move.may_go_anywhere and move.choices > 1 else ""
    remarks = ["its work begins again"] if _loses_work(move.pod) else []
    remarks += ["the data of its emptyDir volumes are lost"] if move.pod.has_empty_dir else []
    text = f"{move.pod.full_name} of {move.pod.controller} from {plan.node} to {move.target}{where}"
    return "; ".join([text, *remarks])


def _commands(plan: Plan, budgets: Budgets | None) -> Iterator[str]:
    """Yield the shell commands. Nodes are cordoned so that the new pods get the nodes of the plan."""
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
    """Return the command that removes `pod`: an eviction, which respects budgets, or a deletion if it has no budget."""
    if budgets is not None and not budgets_of(pod, budgets):
        return f"kubectl delete pod {shlex.quote(pod.name)} --namespace {shlex.quote(pod.namespace)}"
    metadata = {"name": pod.name, "namespace": pod.namespace}
    eviction = orjson.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}).decode()
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
    return f"echo {shlex.quote(eviction)} | kubectl create --raw {shlex.quote(path)} -f -"


def _tried(tried: Tried) -> Iterator[str]:
    nodes = plural(tried.nodes, "node") if tried.nodes else "no node"
    if not tried.sets:
        yield f"no moves make room: {nodes} could be freed of enough pods"
    else:
        sizes = f"1 to {tried.moves} pods" if tried.moves > 1 else "1 pod"
        yield f"no moves make room: {plural(tried.sets, 'set')} of {sizes} tried on {nodes}"
    if not tried.is_complete:
        yield "the search ended early: not every set was tried"
    for reason, count in sorted(tried.unmovable.items(), key=lambda item: (-item[1], item[0])):
        yield f"not moved: {plural(count, 'pod')} {reason}"
