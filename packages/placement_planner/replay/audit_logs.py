"""Read creations of pods from audit logs: the records of `serve --audit-pods`, and the log of an API server.

The log of an API server, with the level Request or RequestResponse, contains the object as the client sent it, without
changes by webhooks or other admission plugins.

Source: k8s.io/apiserver/pkg/apis/audit/v1/types.go, Event
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import orjson

from placement_planner.log_lines import OnInvalid, is_dry_run, is_event, is_of_pod, unreadable_line
from placement_planner.replay.admission import Admission, admission_of
from webhook.admission.recorded_pod import RecordedPod
from webhook.audit.pods import PodIndex
from webhook.audit.record import POD
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, invalid
from webhook.kube.names import DEFAULT_NAMESPACE

_EVENT = "an event of audit.k8s.io"


class _Named(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""
    revision: str = ""


class _Record(msgspec.Struct, gc=False, rename="camel"):
    """The keys of a record that a replay reads. All keys are in `webhook.audit.record`."""

    time: str
    decision: str
    namespace: str
    name: str
    operation: str
    user: str
    dry_run: bool
    hash: str
    outcome: str = ""
    owner: _Named | None = None
    policy: _Named | None = None
    kind: str = POD
    pod: str = ""


_decode = msgspec.json.Decoder(_Record).decode


def admissions_of_records(
    lines: Iterable[tuple[str, bytes]], pods: PodIndex, left_out: Counter[str], on_invalid: OnInvalid
) -> Iterator[Admission]:
    """Yield the creations of pods in the `lines`, each with its place; count the other records in `left_out`.

    A line that is not a record is passed to `on_invalid`.
    """
    for place, line in lines:
        try:
            record = _decode(line)
        except (msgspec.DecodeError, UnicodeError) as error:
            on_invalid(unreadable_line(place, line, "an audit record", str(error)))
            continue
        if reason := _reason_of_record(record, pods):
            left_out[reason] += 1
            continue
        owner, policy = record.owner, record.policy
        yield Admission(
            record.namespace or DEFAULT_NAMESPACE,
            record.name,
            bytes.fromhex(record.pod),
            partial(_read, pods, record.pod, place),
            record.user,
            f"{owner.kind}/{owner.name}" if owner is not None else "",
            place,
            record.time,
            f"{policy.name}@{policy.revision}" if policy is not None else "",
            record.outcome,
        )


def _reason_of_record(record: _Record, pods: PodIndex) -> str:
    if record.kind != POD or record.operation != "CREATE":
        return "record of another object or operation"
    if record.dry_run:
        return "dry run"
    if not record.pod:
        return "record without a pod: of a server without --audit-pods, or of a pod that was not kept"
    if record.pod not in pods:
        return "record whose pod is not in FILE.pods: it was replaced by newer ones, or the file is not here"
    return ""


def _read(pods: PodIndex, digest: str, place: str) -> RecordedPod:
    content = pods.content(digest) or b""
    try:
        return RecordedPod.parse(content)
    except ValueError as error:
        raise InvalidInput([invalid(f"{place}: pod", digest, f"cannot be read in FILE.pods: {error}")]) from error


def admissions_of_events(
    lines: Iterable[tuple[str, bytes]], left_out: Counter[str], on_invalid: OnInvalid
) -> Iterator[Admission]:
    """Yield the creations of pods in the `lines`, each with its place; count the other events in `left_out`.

    A line that is not an event is passed to `on_invalid`.
    """
    for place, line in lines:
        try:
            content = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            on_invalid(unreadable_line(place, line, _EVENT, str(error)))
            continue
        if not is_event(content):
            on_invalid(unreadable_line(place, line, _EVENT, "it is another object"))
            continue
        items = content.get("items") if content["kind"] == "EventList" else None
        for event in items if isinstance(items, list) else (content,):
            if reason := _reason_of_event(event):
                left_out[reason] += 1
            else:
                yield _admission(event, place)


def _reason_of_event(event: Any) -> str:
    if not isinstance(event, dict) or not is_of_pod(event, "create"):
        return "event that is not the creation of a pod"
    if is_dry_run(event):
        return "dry run"
    pod = event.get("requestObject") or {}
    is_pod = isinstance(field(pod, "metadata"), dict) and isinstance(field(pod, "spec"), dict)
    return (
        "" if is_pod else "creation of a pod without requestObject: set the level Request for pods in the audit policy"
    )


def _admission(event: JsonObject, place: str) -> Admission:
    pod, metadata = event["requestObject"], event["requestObject"]["metadata"]
    groups = field(event, "user", "groups")
    return admission_of(
        pod,
        str(field(event, "objectRef", "namespace") or metadata.get("namespace") or DEFAULT_NAMESPACE),
        name=str(field(event, "objectRef", "name") or metadata.get("name") or metadata.get("generateName") or ""),
        user=str(field(event, "user", "username") or ""),
        groups=[str(each) for each in groups] if isinstance(groups, list) else (),
        owner=controller_of(pod),
        place=place,
        time=str(event.get("requestReceivedTimestamp") or ""),
    )


def controller_of(pod: JsonObject) -> str:
    """Return the kind and name of the controller of a pod, such as `Job/train`, or an empty string if there is none."""
    owners = field(pod, "metadata", "ownerReferences")
    for each in owners if isinstance(owners, list) else ():
        if field(each, "controller"):
            return f"{each.get('kind')}/{each.get('name')}"
    return ""
