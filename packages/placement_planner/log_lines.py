"""The parts of log reading that replay and simulation share: API server events, and errors of unreadable lines.

Source: k8s.io/apiserver/pkg/apis/audit/v1/types.go, Event
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import FieldError, invalid

OnInvalid = Callable[[FieldError], None]

API_GROUP = "audit.k8s.io/"
_SHOWN_BYTES = 60


def unreadable_line(place: str, line: bytes, wanted: str, error: str) -> FieldError:
    """Return the error of a line that is not `wanted`, such as `an audit record`."""
    shown = line[:_SHOWN_BYTES].decode("utf-8", "replace")
    is_cut_off = not line.rstrip().endswith(b"}")
    problem = "the line was cut off" if is_cut_off else f"must be {wanted}: {error}"
    return invalid(place, shown, f"{problem}; delete the line")


def skippable(error: FieldError) -> FieldError:
    """Return the error of a line, with the flag that skips such lines as the remedy."""
    return replace(error, detail=f"{error.detail}, or leave such lines out with --skip-invalid")


def is_event(content: Any) -> bool:
    """Return whether an object is an event of an API server's audit log, or a list of events."""
    return (
        isinstance(content, dict)
        and content.get("kind") in ("Event", "EventList")
        and str(content.get("apiVersion")).startswith(API_GROUP)
    )


def is_of_pod(event: JsonObject, *verbs: str) -> bool:
    """Return whether the event is about the completion of a request with one of `verbs` on a pod.

    The API server writes an event for several stages of a request. The one at the end of the response has the object.
    """
    reference = field(event, "objectRef")
    is_pod = field(reference or {}, "resource") == "pods" and not field(reference or {}, "subresource")
    return is_pod and event.get("verb") in verbs and event.get("stage") == "ResponseComplete"


def is_dry_run(event: JsonObject) -> bool:
    """Return whether the request was a dry run."""
    return "dryRun" in parse_qs(urlsplit(str(event.get("requestURI"))).query)
