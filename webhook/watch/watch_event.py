"""Read the events of a watch."""

from typing import Any

import orjson

from webhook.documents.documents import field
from webhook.kube.pod.stored_pod import StoredPod
from webhook.watch.api_errors import ApiServerError

_CHANGES = ("ADDED", "MODIFIED", "DELETED")


def read_event(line: bytes, kind: str) -> tuple[str, Any, str | None]:
    """Return type, content (None: BOOKMARK) and resourceVersion of `line`; a well-formed pod is a StoredPod.

    Raises:
        ApiServerError: the line is an ERROR event, or not an event.
    """
    if kind == "Pod" and (found := StoredPod.in_event(line)) is not None and found[0] in _CHANGES:
        return *found, found[1].view.metadata.resource_version
    try:
        event = orjson.loads(line)
    except ValueError as error:
        raise ApiServerError(f"the watch sent invalid JSON: {error}") from error
    name, content = (event.get("type"), event.get("object", {})) if isinstance(event, dict) else (None, {})
    if name == "ERROR":
        raise ApiServerError(f"the watch ended with an error: {field(content, 'message')}", field(content, "code"))
    if name not in (*_CHANGES, "BOOKMARK") or not isinstance(content, dict):
        raise ApiServerError(f"the watch sent an unknown event: {name}")
    return name, content, field(content, "metadata", "resourceVersion")
