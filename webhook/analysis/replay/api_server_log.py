"""The creations of pods in the audit log of an API server, of the level Request or RequestResponse.

The log has the object as the client sent it: before any webhook, and without what other admission plugins add.

Source: k8s.io/apiserver/pkg/apis/audit/v1/types.go, Event
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from webhook.admission.pod_content import JsonObject
from webhook.analysis.api_audit_event import is_dry_run, is_event, is_of_pod
from webhook.analysis.replay.admission import Admission, admission_of
from webhook.analysis.replay.source_line import OnInvalid, unreadable_line
from webhook.documents.documents import field
from webhook.kube.names import DEFAULT_NAMESPACE

NOT_A_POD = "event that is not the creation of a pod"
NO_OBJECT = "creation of a pod without requestObject: set the level Request for pods in the audit policy"
DRY_RUN = "dry run"

_EVENT = "an event of audit.k8s.io"


def admissions_of_events(
    lines: Iterable[tuple[str, bytes]], left_out: Counter[str], on_invalid: OnInvalid
) -> Iterator[Admission]:
    """Yield the creations of pods in the `lines`, each with its place; count the other events in `left_out`.

    A line that is no event goes to `on_invalid`.
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
            if reason := _reason_to_leave_out(event):
                left_out[reason] += 1
            else:
                yield _admission(event, place)


def _reason_to_leave_out(event: Any) -> str:
    if not isinstance(event, dict) or not is_of_pod(event, "create"):
        return NOT_A_POD
    if is_dry_run(event):
        return DRY_RUN
    pod = event.get("requestObject") or {}
    is_pod = isinstance(field(pod, "metadata"), dict) and isinstance(field(pod, "spec"), dict)
    return "" if is_pod else NO_OBJECT


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
    """Return the kind and name of the controller of a pod, such as `Job/train`; empty without one."""
    owners = field(pod, "metadata", "ownerReferences")
    for each in owners if isinstance(owners, list) else ():
        if field(each, "controller"):
            return f"{each.get('kind')}/{each.get('name')}"
    return ""
