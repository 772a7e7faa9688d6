"""`capacity`: report how many more of each pod fit, on which nodes, and what stops the next one."""

from pathlib import Path

import click

from webhook.cli.capacity_counts import Counted, Counts
from webhook.cli.capacity_moving import Moving
from webhook.cli.capacity_text import print_blocks, print_counted, to_json
from webhook.cli.clusters import cluster_option, live_options, release_option
from webhook.cli.files import check_standard_input, optional_pods_option, pending_option
from webhook.cli.policies import policies_option, read_policies
from webhook.cli.profiles import read_schedulers, scheduler_options
from webhook.cli.terminal import echo_json
from webhook.cli.workloads import Workload, print_misplaced, read_pods
from webhook.kube.release import Release
from webhook.placement.capacity.free_blocks import largest_free_blocks

_REFUSED = 5


@click.command()
@click.argument("nodes", nargs=-1, metavar="")
@optional_pods_option
@cluster_option
@live_options
@release_option
@scheduler_options
@click.option("--mutate", "with_policy", is_flag=True, help="Apply the policy to the pods first, as the webhook does.")
@policies_option
@click.option(
    "--together",
    is_flag=True,
    help="Count all pods on one cluster, in turns of one Pod or of the replicas of an object. Default: each by itself.",
)
@click.option(
    "--until",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after N of each pod, or with --together after N turns. Default: when the next one does not fit.",
)
@click.option(
    "--drain",
    "drained",
    multiple=True,
    metavar="NODE...",
    help="Report whether the pods of these nodes fit elsewhere after `kubectl drain`; -f then counts on what is left.",
)
@click.option(
    "--make-room",
    "with_room",
    is_flag=True,
    help="For each pod that does not fit: the fewest running pods to move so that it fits, with the commands.",
)
@pending_option
@click.option(
    "--max-nodes",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum lines about nodes for a pod in the text.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def capacity(
    ctx: click.Context,
    nodes: tuple[str, ...],
    filenames: tuple[str, ...],
    cluster: str | None,
    kubeconfig: Path | None,
    context: str | None,
    release: Release | None,
    scheduler_profile: str | None,
    scheduler_config: str | None,
    with_policy: bool,
    policies: tuple[Path, ...],
    together: bool,
    until: int | None,
    drained: tuple[str, ...],
    with_room: bool,
    pending: str,
    max_nodes: int,
    output: str,
) -> None:
    """Report how many more of each pod fit, placed one after the other as kube-scheduler would.

    Each pod is counted by itself, after the pending pods of the cluster; an object such as a Deployment stands for the
    pods of its template. With --together, the pods take their places in proportion, such as 2 launchers and 8 workers
    in each turn. Running pods stay where they are, and nothing is changed in a live cluster.
    Exit code 0 also if nothing fits; 5: a pod would be denied (--mutate).

    \b
    Examples:
      placement-webhook capacity -f pod.yaml --cluster cluster.json
      placement-webhook capacity -f pod.yaml --cluster cluster.json --until 100 -o json
      placement-webhook capacity -f pod.yaml --context staging --mutate
      placement-webhook capacity --drain node-1 node-2 --cluster cluster.json
      placement-webhook capacity -f pod.yaml --cluster cluster.json --make-room
    """
    _check_flags(filenames, drained, nodes, together=together, with_room=with_room)
    files = (("--filename", each) for each in filenames)
    check_standard_input(*files, ("--cluster", cluster), ("--scheduler-config", scheduler_config))
    rules = read_policies(policies)
    schedulers = read_schedulers(scheduler_config, scheduler_profile, suggestions=0)
    moving = Moving(schedulers, rules.default, max_nodes, with_room, pending == "count", output == "json")
    queue = moving.read((*drained, *nodes), cluster, kubeconfig, context, release)
    workloads = read_pods(filenames, rules, queue.assumed.base) if filenames else []
    print_misplaced(workloads)
    counts = Counts(queue, schedulers, with_policy, until, moving.progress.of)
    blocks = largest_free_blocks(counts.snapshot, rules.default.node_usage_key, rules.spec.accelerators)
    is_refused = False
    for counted in counts.together(workloads) if together else counts.each(workloads):
        moving.progress.end()
        is_refused |= counted.is_refused
        stopped_pod = _stopped_pod(counted, workloads) if together else None
        room = moving.room(counts, counted)
        if moving.is_json:
            echo_json(to_json(counted, stopped_pod, blocks) | moving.room_to_json(room))
        elif not counted.is_refused:
            print_counted(moving.console, counted, stopped_pod, max_nodes)
            moving.print_room(room)
    if filenames and not moving.is_json:
        print_blocks(moving.console, blocks)
    ctx.exit(_REFUSED if is_refused else 0)


def _check_flags(
    filenames: tuple[str, ...], drained: tuple[str, ...], nodes: tuple[str, ...], *, together: bool, with_room: bool
) -> None:
    """Return if the flags can be given together.

    Raises:
        click.UsageError: they cannot.
    """
    if nodes and not drained:
        raise click.UsageError(f"Got unexpected extra argument ({' '.join(nodes)}); nodes follow --drain.")
    if not filenames and (with_room or not drained):
        raise click.UsageError("Missing option '-f' / '--filename'. Only --drain works without it.")
    if with_room and (drained or together):
        raise click.UsageError(
            f"--make-room moves pods of the cluster as it is: leave {'--drain' if drained else '--together'} out."
        )


def _stopped_pod(counted: Counted, workloads: list[Workload]) -> str | None:
    """Return the name of the pod that does not fit; None if all fit that were asked for."""
    return workloads[counted.count.stopped_at].name if counted.count.stopped else None
