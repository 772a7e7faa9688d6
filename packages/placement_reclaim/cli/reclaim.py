"""`reclaim`: report cards that are held and not used, or evict the pods that hold them."""

import time
from itertools import chain
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from placement_reclaim.cluster import Objects, written_at
from placement_reclaim.effects import effects_of
from placement_reclaim.held import CLASSES, IDLE
from placement_reclaim.report import NO_USES, Limits, held_rows, idle_seconds
from placement_reclaim.text import print_report, to_json
from webhook.cli.inputs.clusters import cluster_option, complete_node, known_nodes, live_options, read_objects
from webhook.cli.inputs.files import DurationType, NamesType, Option, file_option, output_option
from webhook.cli.inputs.manifests import namespace_option_with
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import text_console
from webhook.cli.output.terminal import echo, echo_json, warn
from webhook.cluster.cache.resources import Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import JsonObject

_FOUND, _INTERRUPTED = 3, 130
_OF_EVICTIONS = ("confirm", "audit", "most", "most_per_owner", "pause_seconds")
_CLASS = f"Only these classes, also separated by commas: {', '.join(CLASSES)}."
_PROMETHEUS = "Report also pods whose cards do nothing for 30m, or --older-than if longer, by dcgm-exporter's metrics."
_EVICT = "Ask the API server, on dry run, about these pods of namespaces in spec.reclaim.namespaces of the policy."
_DURATION, _COUNT = DurationType(allows_zero=True), click.IntRange(min=1)
_HAS_ENDED = "status.phase!=Running,status.phase!=Pending,status.phase!=Unknown"
_ENDED = Resource("Pod", "v1", "pods", _HAS_ENDED, part="ended pods")


def _option(flag: str, name: str, kind: click.ParamType[Any], default: str, text: str) -> Option:
    return click.option(flag, name, type=kind, default=default, show_default=True, help=text)


@click.command()
@with_session(
    cluster_option,
    live_options,
    namespace_option_with("Only cards of this namespace. Default: all."),
    policies_option,
    click.option("--class", "classes", type=NamesType(CLASSES), multiple=True, metavar="CLASS", help=_CLASS),
    _option("--older-than", "older_than", _DURATION, "5m", "Only cards that are not used for so long; 0 means all."),
    click.option("--prometheus", metavar="URL", help=_PROMETHEUS),
    click.option("--node", "nodes", multiple=True, shell_complete=complete_node, help="Only cards of this node."),
    click.option("--evict", "evicts", is_flag=True, help=_EVICT),
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
    classes: tuple[tuple[str, ...], ...],
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
    are down come last. Nothing is changed without --evict and --confirm. Exit code 3: cards are held.

    \b
    Examples:
      placement-webhook reclaim
      placement-webhook reclaim --cluster cluster.json -o json
      placement-webhook reclaim --class image-pull,crash-loop --older-than 1h -n team-a
      placement-webhook reclaim --class image-pull --evict
    """
    chosen = frozenset(chain.from_iterable(classes))
    if evicts and not session.is_live:
        raise click.UsageError("--evict asks a live cluster: leave --cluster out.")
    source_of = click.get_current_context().get_parameter_source
    if not evicts and any(source_of(each) is ParameterSource.COMMANDLINE for each in _OF_EVICTIONS):
        raise click.UsageError("--confirm, --audit, --max, --max-per-owner and --pause need --evict.")
    if confirm and audit is None:
        raise click.UsageError("--confirm needs --audit FILE, where each eviction is on record.")
    if IDLE in chosen and prometheus is None:
        raise click.UsageError(f"--class {IDLE} needs --prometheus URL.")
    objects, now = _read_live(session) if session.is_live else _read_file(session)
    if session.namespace and session.namespace not in (objects.snapshot.namespaces or {session.namespace}):
        warn(f"--namespace: the cluster has no namespace {session.namespace}")
    on_nodes, uses = frozenset(known_nodes("--node", nodes, objects.snapshot)), NO_USES
    # Imported here, so that a report on a file does not import the clients.
    if prometheus is not None:
        from placement_reclaim.prometheus import read_uses

        uses = read_uses(prometheus, idle_seconds(older_than), now)
    rows = [
        each
        for each in held_rows(objects, now, older_than, uses)
        if each.reason in (chosen or CLASSES) and session.namespace in (None, each.namespace)
        if not on_nodes or not on_nodes.isdisjoint(each.nodes)
    ]
    if evicts:
        from placement_reclaim.eviction import evict

        is_interrupted = evict(session, objects, rows, Limits(**limits, least_seconds=older_than), audit, confirm)
        return _INTERRUPTED if is_interrupted else _FOUND if rows else 0
    effects = effects_of(rows, objects, session.schedulers(objects.policy).for_pending())
    kubectl = f"kubectl --context {quote(session.context)}" if session.context else "kubectl"
    if session.is_json:
        echo_json(to_json(rows, objects.usable_cards(), effects, now, kubectl))
    else:
        print_report(text_console(), rows, objects.usable_cards(), effects, now, kubectl)
    return _FOUND if rows else 0


def _read_file(session: Session) -> tuple[Objects, int]:
    """Return the objects of the file with cards of the policy, and about the time of the file, in Unix seconds."""
    documents = read_objects(session.cluster or "")
    objects = Objects(session.rules.default, snapshot_from_documents(documents))
    for document in documents:
        objects.take(document.content)
    return objects, written_at(each.content for each in documents) or int(time.time())


def _read_live(session: Session) -> tuple[Objects, int]:
    """Return the objects of the live cluster with cards of the policy, and the time in Unix seconds."""
    from webhook.cli.inputs.live import list_resources, read_live_cluster

    # A kubeconfig that cannot be read is an error, before it is a reason that the policy is not known.
    list_resources(session.source, (), lambda *_: None)
    objects = Objects(session.rules.default)
    lists: dict[str, dict[Any, Any]] = {"Pod": objects.pods, _ENDED.part: objects.ended}
    lists |= {"ResourceClaim": objects.claims, "Workload.kueue.x-k8s.io": objects.workloads}

    def on_page(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            lists.get(resource.name_in_cache, {}).clear()
        for each in items:
            objects.take(each)

    objects.snapshot = read_live_cluster(session.source, on_page=on_page)
    list_resources(session.source, (_ENDED,), on_page)
    if objects.snapshot.release.note:
        echo(objects.snapshot.release.note, err=True)
    return objects, int(time.time())
