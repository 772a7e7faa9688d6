"""An event of an API server's audit log, as far as replay and simulation read it alike.

Source: k8s.io/apiserver/pkg/apis/audit/v1/types.go, Event
"""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from webhook.documents.documents import JsonObject, field

API_GROUP = "audit.k8s.io/"


def is_event(content: Any) -> bool:
    """Return whether an object is an event of an audit log, or a list of them."""
    return (
        isinstance(content, dict)
        and content.get("kind") in ("Event", "EventList")
        and str(content.get("apiVersion")).startswith(API_GROUP)
    )


def is_of_pod(event: JsonObject, *verbs: str) -> bool:
    """Return whether the event is the end of a request with one of `verbs` on a pod.

    An event is written again when the response ends, and has its object then.
    """
    reference = field(event, "objectRef")
    is_pod = field(reference or {}, "resource") == "pods" and not field(reference or {}, "subresource")
    return is_pod and event.get("verb") in verbs and event.get("stage") == "ResponseComplete"


def is_dry_run(event: JsonObject) -> bool:
    """Return whether the request changed nothing."""
    return "dryRun" in parse_qs(urlsplit(str(event.get("requestURI"))).query)
