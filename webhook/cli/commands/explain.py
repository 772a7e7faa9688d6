"""`explain`: print what was injected into pods that exist, and where they are or why they wait."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import click
import orjson
from rich.console import Console

from webhook.audit.selection import is_of_pod
from webhook.cli.commands.check import print_answer
from webhook.cli.inputs.clusters import cluster_option, live_options, read_objects, release_option
from webhook.cli.inputs.existing_objects import (
    POD,
    FileObjects,
    LiveObjects,
    Objects,
    event_time,
    events_of,
    pods_of,
    top_owner,
    type_named,
)
from webhook.cli.inputs.files import STANDARD_INPUT, file_option, output_option
from webhook.cli.inputs.manifests import namespace_option
from webhook.cli.inputs.pending import PendingQueue
from webhook.cli.inputs.policies import NamespacePolicies, policies_option
from webhook.cli.inputs.profiles import scheduler_options
from webhook.cli.inputs.session import Session, max_nodes_option, pending_option, with_session
from webhook.cli.inputs.workloads import print_misplaced
from webhook.cli.output.screen import marked, print_lines, text_console
from webhook.cli.output.terminal import echo, echo_json
from webhook.cli.predictions.admission import Admissions
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cli.predictions.injected import (
    ENDING,
    Injected,
    admissions_of,
    injected,
    is_being_deleted,
    left_alone,
    stray_lines,
)
from webhook.cli.predictions.replica_check import Checks
from webhook.cli.records.audit_source import Source, webhook_namespace_option
from webhook.cli.records.autoscaler_reports import Report, autoscaler_reports
from webhook.cli.records.replica_logs import NAMESPACE, ReplicaSelection
from webhook.cluster.node_info import key_of
from webhook.documents.documents import Document, JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.documents.listing import some
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.workloads.pod_set import pod_name
from webhook.placement.packing.free_cards import accelerator_of
from webhook.placement.packing.held_cards import held_class

_MOST_EVENTS, _MOST_PODS = 5, 3
# The record is written before the API server stores the pod.
_BEFORE = timedelta(minutes=1)
_MOST_FINALIZERS = 3


@dataclass(frozen=True, slots=True)
class _Explained:
    """The facts of a pod that exists or would be created. `answer` is None for a pod that is bound or being deleted."""

    pod: JsonObject
    exists: bool
    injected: Injected
    answer: Answer | None
    events: Sequence[JsonObject]
    autoscalers: Sequence[Report] = ()
    record: Mapping[str, Any] | None = None
    held: str = ""
    """The class for which a bound pod does not use its cards, or empty."""
    stray: Sequence[str] = ()
    """The warnings about its labels and annotations that have no effect, or for which the policy would deny it."""

    @property
    def phase(self) -> str:
        return str(field(self.pod, "status", "phase") or "Pending")

    @property
    def node(self) -> str:
        return str(field(self.pod, "spec", "nodeName") or "")

    @property
    def ending(self) -> str:
        """Return the reason why a pod without a node gets none any more, or an empty string."""
        if self.node or not is_being_deleted(self.pod):
            return ""
        finalizers = [str(each) for each in field(self.pod, "metadata", "finalizers") or ()]
        kept = f" once these finalizers are removed: {some(finalizers, _MOST_FINALIZERS)}" if finalizers else ""
        return f"{ENDING}, and it ends{kept}"

    @property
    def scheduled(self) -> str:
        conditions = field(self.pod, "status", "conditions") or ()
        return next((str(each.get("message") or "") for each in conditions if each.get("type") == "PodScheduled"), "")


@click.command()
@click.argument("target", metavar="TYPE/NAME")
@with_session(
    namespace_option,
    cluster_option,
    live_options,
    release_option,
    scheduler_options,
    policies_option,
    pending_option,
    file_option("--audit", multiple=True, help="Audit files with the record of the pod."),
    click.option("--no-audit", is_flag=True, help="Do not read the audit records of the running replicas."),
    webhook_namespace_option,
    max_nodes_option("Maximum nodes in the table of those that can take a pod."),
    output_option,
    needs_pods=False,
)
def explain(
    session: Session,
    target: str,
    audit: tuple[str, ...],
    no_audit: bool,
    webhook_namespace: str | None,
) -> int:
    """Print what was injected into a pod, by which rule and policy, and where the pod is or why it waits.

    For a pod that waits: the reason of each node, the pods that come before it, and suggestions, as `check` prints
    them. Then its last Events, what Karpenter and Cluster Autoscaler reported last, and its audit record, that of the
    running replicas or of --audit. TYPE is `pod` or a kind that creates pods, such as `deploy` or `job`; NAME without a
    kind is a pod. Of an object with several pods, those that wait come first.

    \b
    Examples:
      placement-webhook explain pod/worker-0 -n team-a
      placement-webhook explain job/train -n team-a --audit audit.jsonl
    """
    if session.cluster == STANDARD_INPUT:
        raise click.UsageError("explain reads --cluster twice: give a file.")
    kind_name, slash, name = target.rpartition("/")
    snapshot, namespace = session.snapshot, session.default_namespace
    policy = NamespacePolicies(session.rules, snapshot).of_namespace(namespace)
    kind = type_named(kind_name, policy.kinds.values()) if slash else POD
    objects: Objects = LiveObjects(session.source)
    if session.cluster is not None:
        objects = FileObjects(read_objects(session.cluster))
    owner = objects.get(kind, namespace, name)
    top = top_owner(objects, owner, policy.kinds.values())
    if top["kind"] != POD.kind:
        print_misplaced(session.workloads_of([Document(target, top)], snapshot), snapshot)
    queue = session.queue(snapshot)
    pods = sorted(pods_of(objects, owner, namespace), key=lambda pod: not _waits(pod))
    replicas = None
    if session.is_live and not (audit or no_audit):
        where = webhook_namespace or NAMESPACE
        replicas = ReplicaSelection(session.source, where)
    console = text_console()
    if not pods and not session.is_json:
        console.print(f"{marked(target)} has no pods now; as they would be created:")
    for content in pods[:_MOST_PODS] or [owner]:
        found = _explained(session, objects, queue, content, exists=bool(pods))
        if pods and (audit or replicas):
            found = replace(found, record=_record(Source(audit, replicas), content))
        if session.is_json:
            echo_json(_to_json(found, None if kind == POD else f"{owner['kind']} {pod_name(owner)}"))
        else:
            _print(console, found, session.max_nodes)
    if (left_out := pods[_MOST_PODS:]) and not session.is_json:
        waiting = sum(map(_waits, left_out))
        console.print(f"and {len(left_out)} more pods, {waiting} of them wait")
    return 0


def _explained(
    session: Session, objects: Objects, queue: PendingQueue, content: JsonObject, *, exists: bool
) -> _Explained:
    document = Document(f"{str(content['kind']).lower()}/{field(content, 'metadata', 'name')}", content)
    workloads = session.workloads_of([document], session.snapshot)
    policy = workloads[0].policy
    found = injected(content, policy, is_known=session.is_known(policy))
    answer = None
    is_bound = bool(field(content, "spec", "nodeName"))
    if not (is_bound or (exists and is_being_deleted(content))):
        admissions = admissions_of(found, session.schedulers) if exists else Admissions(True, session.schedulers)
        answer = Checks(queue, admissions).answers(workloads)[0]
    events = events_of(objects, content) if exists else []
    reports = [] if is_bound else autoscaler_reports(objects, content, events)
    defaults = session.snapshot.namespace_annotations(str(field(content, "metadata", "namespace") or ""))
    stray: tuple[str, ...] = ()
    if exists and found.in_force:
        stray = (*stray_lines(content, policy), *left_alone(found, content, policy, defaults))
    return _Explained(content, exists, found, answer, events, reports, held=_held_class(session, content), stray=stray)


def _held_class(session: Session, content: JsonObject) -> str:
    """Return the class for which a bound pod holds cards and does not use them, or an empty string."""
    snapshot, accelerators = session.snapshot, session.rules.default.spec.accelerators
    row, identity = snapshot.rows.get(str(field(content, "spec", "nodeName"))), PodIdentity.of(content)
    node, pods = (None, ()) if row is None else snapshot.nodes[row][:2]
    pod = next((each for each in pods if key_of(each) == (identity.namespace, identity.name)), None)
    if node is None or pod is None:
        return ""
    has_cards = any(amount and accelerator_of(name, accelerators) for name, amount in pod.requests.items())
    return held_class(pod, node, int(time.time())) if has_cards else ""


def _waits(pod: JsonObject) -> bool:
    return not (field(pod, "spec", "nodeName") or is_being_deleted(pod))


def _record(source: Source, pod: JsonObject) -> Mapping[str, Any] | None:
    created = field(pod, "metadata", "creationTimestamp")
    if source.replicas is not None and isinstance(created, str):
        since = datetime.fromisoformat(created) - _BEFORE
        source = replace(source, replicas=replace(source.replicas, since=since))
    name, last = pod_name(pod), None
    try:
        with source.opened() as sources:
            for entry in sources.entries(lambda _: None):
                last = entry if is_of_pod(entry.record, name) else last
    except (InvalidInput, click.ClickException) as error:
        if source.replicas is None:
            raise
        echo(f"not known: the audit record: {error}", err=True)
    found: Mapping[str, Any] | None = None if last is None else orjson.loads(last.line)
    return found


def _to_json(found: _Explained, target_object: str | None) -> dict[str, Any]:
    return {
        "pod": pod_name(found.pod),
        "object": target_object,
        "exists": found.exists,
        "phase": found.phase if found.exists else None,
        "node": found.node or None,
        "ending": found.ending or None,
        "scheduler": found.scheduled or None,
        "held": found.held or None,
        "injected": found.injected.to_json(),
        "check": found.answer and found.answer.to_json(),
        "stray": [*found.stray],
        "events": [
            {"time": event_time(each)} | {key: each.get(key) for key in ("type", "reason", "message", "count")}
            for each in found.events
        ],
        "autoscalers": [each._asdict() for each in found.autoscalers],
        "audit": found.record,
    }


def _print(console: Console, found: _Explained, max_nodes: int) -> None:
    if found.exists:
        where = f" on [bold]{marked(found.node)}[/bold]" if found.node else ""
        console.print(f"[bold]{marked(pod_name(found.pod))}[/bold]: {marked(found.phase)}{where}")
        print_lines(console, [*found.injected.lines, *found.stray])
        held = f"it holds cards and does not use them ({found.held}): see placement-webhook reclaim"
        print_lines(console, [held if found.held else "", found.ending])
        print_lines(console, [found.scheduled and f"its scheduler reports: {found.scheduled}"])
    if found.answer is not None:
        print_answer(console, found.answer, max_nodes)
    print_lines(console, [*_event_lines(found.events), *_report_lines(found.autoscalers)])
    if found.record is not None:
        record = found.record
        print_lines(console, [f"audit record {record['decision']}: {record['outcome']} at {record['time']}"])


def _event_lines(events: Sequence[JsonObject]) -> Iterator[str]:
    if events:
        yield "events, the last ones:"
    for each in events[-_MOST_EVENTS:]:
        times = f" ({each['count']} times)" if (each.get("count") or 1) > 1 else ""
        stated = " ".join(str(each[key]) for key in ("type", "reason") if each.get(key))
        yield f"  {event_time(each)} {stated}: {each.get('message')}{times}"


def _report_lines(reports: Sequence[Report]) -> Iterator[str]:
    if reports:
        yield "autoscalers, their last reports:"
    yield from (f"  {each.time} {each.source}: {each.message}" for each in reports)
