"""`reclaim`: report cards that are held and not used, what frees them, and what starts then."""

import time
from difflib import get_close_matches

import click

from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Objects
from placement_reclaim.effects import Waiting
from placement_reclaim.held import CLASSES
from placement_reclaim.report import Selection, held_rows
from placement_reclaim.text import print_report, to_json
from webhook.cli.inputs.clusters import cluster_option, complete_node, live_options
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.manifests import namespace_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import text_console
from webhook.cli.output.terminal import echo_json
from webhook.cluster.cache.resources import Resource
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.packing.free_cards import accelerator_of
from webhook.runtime.settings import parse_go_duration

_FOUND = 3
_ENDED = "status.phase!=Running,status.phase!=Pending,status.phase!=Unknown"
_MORE = (
    Resource(
        "Pod", "v1", "pods", "status.phase!=Running,status.phase!=Pending,status.phase!=Unknown", part="ended pods"
    ),
    Resource("Workload", "kueue.x-k8s.io/v1beta1", "workloads", is_extension=True),
)


def _classes(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> frozenset[str]:
    names = [name for text in given for name in text.split(",")]
    for name in names:
        if name not in CLASSES:
            close = get_close_matches(name, CLASSES, 1)
            meant = "".join(f" Did you mean '{each}'?" for each in close)
            raise click.BadParameter(f"no such class: '{name}'.{meant} The classes: {', '.join(CLASSES)}")
    return frozenset(names)


def _seconds(_: click.Context, __: click.Parameter, given: str) -> int:
    found = parse_go_duration(given)
    if found is None or found < 0:
        raise click.BadParameter(f"'{given}' is no duration such as 30m or 6h")
    return int(found)


@click.command()
@with_session(
    cluster_option,
    live_options,
    namespace_option,
    policies_option,
    click.option(
        "--class",
        "classes",
        multiple=True,
        metavar="CLASS",
        callback=_classes,
        help=f"Only these classes, also separated by commas: {', '.join(CLASSES)}.",
    ),
    click.option(
        "--older-than",
        default="5m",
        show_default=True,
        metavar="DURATION",
        callback=_seconds,
        help="Only cards that are not used for at least so long, such as 30m or 6h.",
    ),
    click.option(
        "--node", "nodes", multiple=True, metavar="NODE", shell_complete=complete_node, help="Only cards of this node."
    ),
    output_option,
    needs_pods=False,
)
def reclaim(session: Session, classes: frozenset[str], older_than: int, nodes: tuple[str, ...]) -> int:
    """Report cards that are held and not used: by whom, since when, why, and what frees them.

    Then what starts without the pods that hold them, as kube-scheduler places the pending pods. Nothing is changed.
    Cards on nodes that are down come last, since no other pod can use them. The age of a cluster file is that of its
    newest time. Exit code 3: cards are held.

    \b
    Examples:
      placement-webhook reclaim
      placement-webhook reclaim --cluster cluster.json -o json
      placement-webhook reclaim --class image-pull,crash-loop --older-than 1h -n team-a
    """
    policy = session.rules.default
    objects = Objects(tuple(policy.spec.accelerators))
    snapshot = session.read_with_objects(objects.take, _MORE)
    now = int(time.time()) if session.is_live or not objects.latest else objects.latest
    selection = Selection(older_than, classes, frozenset(nodes), session.namespace)
    rows = held_rows(snapshot, objects, policy, selection, now)
    gang_of = GangOf(snapshot, policy)
    scorer = session.schedulers(policy).for_pending()
    waiting = Waiting(snapshot, objects.pending, objects.pods, gang_of, scorer, policy.spec.schedulers)
    effects = waiting.effects(rows)
    is_open = open_nodes(snapshot, policy.spec.temporary_taints)
    usable = sum(
        int(column[is_open].sum())
        for resource, column in snapshot.allocatable_columns.items()
        if accelerator_of(resource, policy.spec.accelerators)
    )
    if session.is_json:
        echo_json(to_json(rows, usable, effects, now))
    else:
        print_report(text_console(), rows, usable, effects, now)
    return _FOUND if rows else 0
