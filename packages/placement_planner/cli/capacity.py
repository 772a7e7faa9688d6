"""`capacity`: report how many more of each pod fit, on which nodes, and what stops the next one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from placement_planner.capacity.counting import Count
from placement_planner.capacity_counts import Counted, Counts
from placement_planner.capacity_moves import drained, print_room, room_for, room_to_json
from placement_planner.cli.nodes import by_option, print_nodes
from placement_planner.domain_cards import topology_key
from webhook.cli.inputs.clusters import cluster_option, complete_node, live_options, release_option
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.manifests import pods_options
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.profiles import scheduler_options
from webhook.cli.inputs.session import (
    Session,
    max_nodes_option,
    pending_option,
    policy_or_as_written_option,
    with_session,
)
from webhook.cli.output.screen import Column, Row, marked, print_lines, print_table, text_console
from webhook.cli.output.terminal import Progress, echo_json
from webhook.cli.predictions.admission import Admissions
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.documents.listing import plural, some
from webhook.placement.packing.free_cards import FreeBlock, largest_free_blocks

_FITS_NOWHERE, _REFUSED = 3, 5


@click.command()
@click.argument("nodes", nargs=-1, metavar="", shell_complete=complete_node)
@with_session(
    pods_options,
    cluster_option,
    live_options,
    release_option,
    scheduler_options,
    policy_or_as_written_option,
    policies_option,
    click.option(
        "--together",
        is_flag=True,
        help="Count all pods on one cluster, in turns of one Pod or of the replicas of an object. Default: each by "
        "itself.",
    ),
    click.option(
        "--until",
        type=click.IntRange(min=1),
        metavar="N",
        help="Stop after N of each pod, or with --together after N turns. Default: when the next one does not fit.",
    ),
    click.option(
        "--drain",
        multiple=True,
        metavar="NODE...",
        shell_complete=complete_node,
        help="Report whether the pods of these nodes fit elsewhere after `kubectl drain`; -f then counts on what is "
        "left.",
    ),
    click.option(
        "--make-room",
        is_flag=True,
        help="For each pod that does not fit: the fewest running pods to move so that it fits, with the commands.",
    ),
    by_option,
    pending_option,
    max_nodes_option("Maximum lines about nodes for a pod in the text."),
    output_option,
    explains=False,
    needs_pods=False,
    unbinds=True,
)
def capacity(
    session: Session,
    nodes: tuple[str, ...],
    together: bool,
    until: int | None,
    drain: tuple[str, ...],
    make_room: bool,
    by: str | None,
) -> int:
    """Report how many more of each pod fit, placed one after the other as kube-scheduler would.

    The policy is applied to each pod or object first, as the webhook does. Each pod is counted by itself, after the
    pending pods of the cluster; an object such as a Deployment stands for the pods of its template. With --together,
    the pods take their places in proportion, such as 2 launchers and 8 workers in each turn. Running pods
    stay where they are, and nothing is changed in a live cluster.
    Without -f and --drain, the nodes and cards are printed, as `nodes` does.
    With --by, each domain, such as a rack, has the largest gang of the pod that it could start now.
    Exit code 0 also if nothing fits; 3: a pod of a drained node fits nowhere; 5: a pod would be denied.

    \b
    Examples:
      placement-webhook capacity -f pod.yaml --cluster cluster.json
      placement-webhook capacity -f pod.yaml --cluster cluster.json --until 100 -o json
      placement-webhook capacity -f pod.yaml --context staging
      placement-webhook capacity -f pod.yaml --by rack
      placement-webhook capacity --drain node-1 node-2 --cluster cluster.json
      placement-webhook capacity -f pod.yaml --cluster cluster.json --make-room
    """
    _check_flags(session, drain, nodes, together=together, with_room=make_room, by=by)
    if not session.has_pods and not drain:
        print_nodes(session, by)
        return 0
    console, progress = text_console(), Progress()
    snapshot = session.view[0] if drain or make_room else session.snapshot
    queue, is_drained = session.queue(snapshot), True
    if drain:
        queue, is_drained = drained(session, (*drain, *nodes), console, progress)
    workloads = session.workloads(queue.assumed.base, may_be_none=False)
    admissions = Admissions(session.with_policy, session.schedulers)
    counts = Counts(queue, admissions, until, progress.of, session.report, by or "")
    blocks = _blocks(session, counts.snapshot)
    is_refused = False
    for counted in counts.together(workloads) if together else counts.each(workloads):
        progress.end()
        is_refused |= counted.is_refused
        stopped = counted.count.stopped_at if together and counted.count.stopped else None
        stopped_pod = None if stopped is None else workloads[stopped].name
        room = room_for(counts, counted, session.view[1], progress) if make_room else None
        if session.is_json:
            room_json = {"makeRoom": room and room_to_json(room, session.view[1].budgets)} if make_room else {}
            echo_json(_to_json(counted, stopped_pod, blocks) | (_domains_json(counted, by) if by else {}) | room_json)
        elif not counted.is_refused:
            _print_counted(console, counted, stopped_pod, session.max_nodes)
            if by:
                _print_domains(console, counted, by)
            if room:
                print_room(console, room, session.view[1].budgets)
    if session.has_pods and blocks and not session.is_json:
        _print_blocks(console, blocks)
    return _REFUSED if is_refused else 0 if is_drained else _FITS_NOWHERE


def _blocks(session: Session, snapshot: Snapshot) -> Sequence[FreeBlock]:
    rules, spec = session.rules, session.rules.spec
    return largest_free_blocks(snapshot, rules.default.node_usage_key, spec.accelerators, spec.temporary_taints)


def _check_flags(
    session: Session,
    drained: tuple[str, ...],
    nodes: tuple[str, ...],
    *,
    together: bool,
    with_room: bool,
    by: str | None,
) -> None:
    """Raise a usage error for flags that cannot be given together."""
    if by and together:
        raise click.UsageError("--by counts each pod by itself: leave --together out.")
    if nodes and not drained:
        raise click.UsageError(f"Got unexpected extra argument ({' '.join(nodes)}); files follow -f, nodes --drain.")
    if not session.has_pods and (with_room or together):
        raise click.UsageError("Missing option '-f' / '--filename', which names the pods to count.")
    if with_room and (drained or together):
        raise click.UsageError(
            f"--make-room moves pods of the cluster as it is: leave {'--drain' if drained else '--together'} out."
        )


def _to_json(counted: Counted, stopped_pod: str | None, blocks: Sequence[FreeBlock]) -> dict[str, Any]:
    """Return the line of the pods in `capacity -o json`. `stopped_pod` is the first pod that does not fit."""
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
        "largestBlocks": [asdict(each) for each in blocks],
        **workload.policy_json,
    }
    if counted.turns is not None:
        line |= {"share": counted.share, "turns": counted.turns, "stoppedPod": stopped_pod}
    if counted.reserved:
        line |= {"reserved": counted.reserved.to_json()}
    pods = workload.pods
    return line | ({"object": workload.owner, "role": pods.role if pods else ""} if workload.owner else {})


def _print_counted(console: Console, counted: Counted, stopped_pod: str | None, max_nodes: int) -> None:
    """Print the number of pods that fit, their nodes, and the reason why the next one does not fit."""
    count, workload, fits = counted.count, counted.workload, counted.count.range
    turns = (
        "" if counted.turns is None else f"{plural(counted.turns, 'whole turn')} with {counted.share} of this pod each"
    )
    runs = "kube-scheduler chooses at random between nodes of equal scores"
    is_random = fits is not None and fits.lowest != fits.highest
    lines = [
        workload.chosen_policy and f"policy: {workload.chosen_policy}",
        workload.title,
        counted.reserved.text,
        "its scheduling gates count as removed" if field(workload.document.content, "spec", "schedulingGates") else "",
        turns,
        f"{fits.lowest} to {fits.highest} fit in {fits.runs} runs: {runs}" if fits and is_random else "",
        *_node_lines(count.nodes, max_nodes),
    ]
    if count.ended_early:
        lines.append(f"the count ended early: {count.ended_early}")
    elif count.stopped:
        lines.append(f"the next {stopped_pod or 'one'}: {count.stopped.message}")
    if counted.bypass:
        lines.append(f"the webhook leaves it alone: {counted.bypass}")
    console.print(f"[bold]{marked(workload.name)}[/bold]: {_fits(count)}")
    print_lines(console, lines)


def _domains_json(counted: Counted, by: str) -> dict[str, Any]:
    known = None if counted.domains is None else [each._asdict() for each in counted.domains]
    domains = known and [{"fitsEmpty" if key == "fits_empty" else key: each[key] for key in each} for each in known]
    return {"by": topology_key(counted.workload.policy, by), "domains": domains}


def _print_domains(console: Console, counted: Counted, by: str) -> None:
    """Print the room of each domain for a gang of the pods, the largest first."""
    if not counted.domains:
        print_lines(console, [f"by {by}: {'not known' if counted.domains is None else 'no node has the label'}"])
        return
    columns = [Column(by, least=8), *(Column(each, is_number=True) for each in ("gang", "if empty", "free", "largest"))]
    rows = [
        Row([each.value or '""', *("-" if fact is None else str(fact) for fact in each[1:])])
        for each in sorted(counted.domains, key=lambda each: (-each.fits, each.value))
    ]
    console.print(f"  the largest gang that each {marked(by)} could start now, and its free cards:")
    print_table(console, columns, rows, indent=4)


def _fits(count: Count) -> str:
    if count.ended_early and not count.fits:
        return "not known how many more fit"
    least = "at least " if count.ended_early else ""
    verb = "fits" if count.fits == 1 else "fit"
    asked = "" if count.ended_early or count.stopped else ", all that were asked for"
    return f"{least}{count.fits} more {verb}{asked}"


def _node_lines(nodes: Mapping[str, int], max_nodes: int) -> list[str]:
    """Return lines of nodes. Nodes that take the same number of pods share a line; the largest number comes first."""
    by_number: dict[int, list[str]] = {}
    for node, number in sorted(nodes.items()):
        by_number.setdefault(number, []).append(node)
    lines = []
    for number, names in sorted(by_number.items(), reverse=True)[:max_nodes]:
        each = f"each of {len(names)} nodes: " if len(names) > 1 else ""
        lines.append(f"{number} on {each}{some(names)}")
    left_out = sorted(by_number, reverse=True)[max_nodes:]
    if left_out:
        more_nodes = sum(len(by_number[number]) for number in left_out)
        lines.append(f"{left_out[-1]} to {left_out[0]} on each of {more_nodes} more nodes")
    return lines


def _print_blocks(console: Console, blocks: Sequence[FreeBlock]) -> None:
    """Print the table of the largest free blocks."""
    console.print("largest free blocks on one node, as the cluster stands:")
    texts = [Column("pool", least=8), Column("resource", least=12), Column("product", least=12)]
    columns = [*texts, Column("free cards", is_number=True), Column("nodes", is_number=True)]
    rows = [
        Row([each.pool or "-", each.resource, each.product or "-", str(each.cards), str(each.nodes)]) for each in blocks
    ]
    print_table(console, columns, rows, indent=2)
