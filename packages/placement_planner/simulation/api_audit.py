"""Read an audit log of the API server as a trace: the created pods, and the times of their deletion."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from placement_planner.log_lines import is_dry_run, is_of_pod
from placement_planner.simulation.arrival import Arrival, CreatedPods, IsCard, from_first
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, invalid, required
from webhook.kube.names import DEFAULT_NAMESPACE


class _Event(NamedTuple):
    """A successful request on a pod, its time in seconds, and the key of the pod, whose name can be empty."""

    place: str
    verb: str
    at: float
    key: tuple[str, str]
    pod: JsonObject | None


def read_api_audit_log(data: bytes, place: str, is_card: IsCard) -> list[Arrival]:
    """Return the created pods, at least one. The first pod is created at 0 seconds.

    A pod runs from its creation to its deletion, because the log does not show another end. A pod that was not deleted
    never ends. The level of the log must be Request or RequestResponse. With Request, the name of a pod with
    `generateName` is not known, and so neither is its deletion.

    Raises:
        InvalidInput: a line is not an event, or the creation of a pod lacks the pod.

    Source: k8s.io/apiserver/pkg/apis/audit/v1/types.go, Event
    """
    found: dict[int, Arrival] = {}
    running: dict[tuple[str, str], int] = {}
    created_pods = CreatedPods(is_card)
    for number, event in enumerate(_events(data, place)):
        if event.verb == "delete":
            if (created := running.pop(event.key, None)) is not None:
                arrival = found[created]
                found[created] = replace(arrival, duration_seconds=max(event.at - arrival.at_seconds, 0))
        elif event.pod is not None and not field(event.pod, "spec", "nodeName"):
            place = f"{event.place}: requestObject"
            found[number] = created_pods.arrival(event.at, event.key[0], event.pod, place)
            if event.key[1]:
                running[event.key] = number
    if not found:
        raise InvalidInput([invalid(place, "no pod", "must have the creation of a pod, at the level Request")])
    return from_first(found.values())


def _events(data: bytes, place: str) -> Iterator[_Event]:
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{place}, line {number}"
        try:
            content = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            detail = f"{error.msg}: column {error.colno}; each line must be an event of the API server's audit log"
            raise InvalidInput([invalid(where, line[:80].decode(errors="replace"), detail)]) from error
        if not isinstance(content, dict) or content.get("kind") != "Event":
            detail = "must be an event of the API server's audit log, kind Event"
            raise InvalidInput([invalid(where, content, detail)])
        if (event := _event(content, where)) is not None:
            yield event


def _event(content: dict[str, Any], place: str) -> _Event | None:
    """Return the event if it is a successful creation or deletion of a pod, or else None."""
    reference, code = content.get("objectRef") or {}, field(content, "responseStatus", "code")
    if not is_of_pod(content, "create", "delete") or is_dry_run(content):
        return None
    if not isinstance(code, int) or not 200 <= code < 300:
        return None
    time = content.get("requestReceivedTimestamp")
    try:
        at = datetime.fromisoformat(str(time)).timestamp()
    except ValueError:
        raise InvalidInput([invalid(f"{place}: requestReceivedTimestamp", time, "must be a time")]) from None
    pod = content.get("requestObject") or {}
    is_pod = isinstance(field(pod, "spec"), dict) and isinstance(field(pod, "metadata") or {}, dict)
    if content["verb"] == "create" and not is_pod:
        raise InvalidInput([required(f"{place}: requestObject", "the level of the log must be Request or more")])
    name = (
        field(content, "responseObject", "metadata", "name") or reference.get("name") or field(pod, "metadata", "name")
    )
    namespace = reference.get("namespace") or DEFAULT_NAMESPACE
    return _Event(place, content["verb"], at, (namespace, str(name or "")), pod)
