"""`reclaim`: report cards that are held and not used, or evict the pods that hold them."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from typing import Any

import click
from click.core import ParameterSource

from placement_reclaim.choice import Limits, choose
from placement_reclaim.classes.idle import PodUse
from placement_reclaim.cluster import Name, Objects
from placement_reclaim.effects import effects_of
from placement_reclaim.held import CLASSES, IDLE, Held
from placement_reclaim.reading import read_cluster
from placement_reclaim.report import Selection, held_rows
from placement_reclaim.text import print_report, print_result, to_json
from webhook.cli.inputs.clusters import cluster_option, complete_node, known_nodes, live_options
from webhook.cli.inputs.files import DurationType, Option, file_option, output_option
from webhook.cli.inputs.manifests import namespace_option
from webhook.cli.inputs.policies import NamespacePolicies, policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import text_console
from webhook.cli.output.terminal import echo, echo_json, warn

_FOUND, _INTERRUPTED = 3, 130
_OF_EVICTIONS = ("confirm", "audit", "most", "most_per_owner", "pause_seconds")


def _classes(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> frozenset[str]:
    names = [name for text in given for name in text.split(",")]
    for name in names:
        if name not in CLASSES:
            meant = "".join(f" Did you mean '{each}'?" for each in get_close_matches(name, CLASSES, 1))
            raise click.BadParameter(f"no such class: '{name}'.{meant} The classes: {', '.join(CLASSES)}")
    return frozenset(names)


def _option(flag: str, name: str, kind: click.ParamType[Any], default: str, text: str) -> Option:
    return click.option(flag, name, type=kind, default=default, show_default=True, help=text)


_DURATION, _COUNT = DurationType(allows_zero=True), click.IntRange(min=1)


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
    _option("--older-than", "older_than", _DURATION, "5m", "Only cards that are not used for so long; 0 means all."),
    click.option(
        "--prometheus",
        metavar="URL",
        help="Report pods with idle cards, too, by the metrics of dcgm-exporter in this Prometheus: cards that have "
        "done nothing for 30m, or for --older-than if that is longer.",
    ),
    click.option("--node", "nodes", multiple=True, shell_complete=complete_node, help="Only cards of this node."),
    click.option(
        "--evict",
        "evicts",
        is_flag=True,
        help="Ask the API server whether it would evict the pods of these rows, on dry run. The policy must list their "
        "namespace in spec.reclaim.namespaces.",
    ),
    click.option("--confirm", is_flag=True, help="With --evict: evict them, with a record in --audit."),
    _option("--max", "most", _COUNT, "5", "The most pods to evict."),
    _option("--max-per-owner", "most_per_owner", _COUNT, "1", "The most pods of one owner. A gang is never split."),
    _option("--pause", "pause_seconds", _DURATION, "5s", "Time between two evictions."),
    file_option("--audit", help="The audit file for evictions; - for standard output."),
    output_option,
    needs_pods=False,
)
def reclaim(
    session: Session,
    classes: frozenset[str],
    older_than: float,
    prometheus: str | None,
    nodes: tuple[str, ...],
    evicts: bool,
    confirm: bool,
    audit: str | None,
    **limits: Any,
) -> int:
    """Report cards that are held and not used: by whom, since when, why, and what frees them.

    Then what starts without the pods that hold them, as kube-scheduler places the pending pods. Cards on nodes that
    are down come last, since no other pod can use them. A cluster file is as old as its newest creation or the
    median heartbeat of its nodes. Nothing is changed without --evict and --confirm. Exit code 3: cards are held.

    \b
    Examples:
      placement-webhook reclaim
      placement-webhook reclaim --cluster cluster.json -o json
      placement-webhook reclaim --class image-pull,crash-loop --older-than 1h -n team-a
      placement-webhook reclaim --class image-pull --evict
    """
    if evicts and not session.is_live:
        raise click.UsageError("--evict asks a live cluster: leave --cluster out.")
    if not evicts and any(map(_is_given, _OF_EVICTIONS)):
        raise click.UsageError("--confirm, --audit, --max, --max-per-owner and --pause need --evict.")
    if confirm and audit is None:
        raise click.UsageError("--confirm needs --audit FILE, where each eviction is on record.")
    if IDLE in classes and prometheus is None:
        raise click.UsageError(f"--class {IDLE} needs --prometheus URL.")
    objects, now = read_cluster(session)
    namespaces = objects.snapshot.namespaces
    if session.namespace and namespaces and session.namespace not in namespaces:
        warn(f"--namespace: the cluster has no namespace {session.namespace}")
    on_nodes = frozenset(known_nodes("--node", nodes, objects.snapshot))
    selection = Selection(older_than, classes, on_nodes, session.namespace)
    uses = {} if prometheus is None else _read_uses(prometheus, selection.idle_seconds, now)
    found = held_rows(objects, selection, now, uses)
    rows = [each.in_context(session.context) for each in found] if session.context else found
    if evicts:
        is_interrupted = _evict(
            session, rows, objects, audit, Limits(**limits, least_seconds=older_than), is_confirmed=confirm
        )
        return _INTERRUPTED if is_interrupted else _FOUND if rows else 0
    effects = effects_of(rows, objects, session.schedulers(objects.policy).for_pending())
    usable = objects.usable_cards()
    if session.is_json:
        echo_json(to_json(rows, usable, effects, now))
    else:
        print_report(text_console(), rows, usable, effects, now)
    return _FOUND if rows else 0


def _is_given(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def _read_uses(url: str, seconds: int, now: int) -> Mapping[Name, PodUse]:
    # Imported here, so that a report without it does not import the client.
    from placement_reclaim.prometheus import ACTIVITY, PrometheusError, read_uses

    try:
        uses = asyncio.run(read_uses(url, seconds, now))
    except PrometheusError as error:
        raise click.ClickException(str(error)) from error
    if not uses:
        echo(f"idle cards are not known: Prometheus has no {' and no '.join(ACTIVITY)}", err=True)
    return uses


def _evict(
    session: Session, rows: Sequence[Held], objects: Objects, audit: str | None, limits: Limits, *, is_confirmed: bool
) -> bool:
    """Evict the pods of `rows`, print each result and a summary, and return whether the user has interrupted it."""
    # Imported here, so that a report on a file does not import the client.
    from placement_reclaim.eviction import Evictions
    from webhook.audit.writer import AuditWriter
    from webhook.cli.inputs.live import ask
    from webhook.watch.api_errors import ApiServerError
    from webhook.watch.api_server import ApiServer

    counts = Counter[str]()
    policy_of = NamespacePolicies(session.rules, objects.snapshot).of_namespace
    chosen = choose(rows, policy_of, objects.snapshot, limits)

    async def evict(server: ApiServer) -> bool:
        evictions = Evictions(server, objects, policy_of, limits, is_confirmed=is_confirmed)
        async for result in evictions.run(chosen, writer):
            counts[print_result(result, is_json=session.is_json, is_confirmed=is_confirmed)] += 1
        return evictions.stop.is_set()

    is_interrupted = False
    with AuditWriter(audit) if audit else nullcontext() as writer:
        try:
            is_interrupted = ask(session.source, evict)
        except ApiServerError as error:
            raise click.ClickException(str(error)) from error
        finally:
            none = "no pod has a result" if rows else "no pod is held"
            summary = ", ".join(f"{count} {result}" for result, count in counts.items()) or none
            end = "" if is_confirmed else "; nothing is evicted without --confirm"
            echo(f"{'interrupted: ' if is_interrupted else ''}{summary}{end}", err=session.is_json)
    return is_interrupted
