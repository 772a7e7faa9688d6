"""Write Events: create an Event, or increase the count of the Event that this or another replica has created.

Events are of core/v1, with a count and a lastTimestamp, so that `kubectl describe` prints "(x12 over 3m)" and `kubectl
get events --sort-by=.lastTimestamp` sorts them. Neither works with events.k8s.io/v1. The name of an Event is derived
from object, reason and topic, so that all replicas count in one Event.

Writing only needs the verbs create and patch, because an empty patch returns the Event without changing it.
"""

from datetime import UTC, datetime
from hashlib import blake2b

from webhook.documents.documents import JsonObject, field
from webhook.events.backlog import PendingReport
from webhook.events.subject import ObjectReference
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.watch.api_errors import ApiServerError, is_accepted
from webhook.watch.api_server import CONFLICT, NOT_FOUND, ApiServer

COMPONENT = "placement-webhook"
_LONGEST_NAME = 253
_ATTEMPTS = 5
_QUERY = {"fieldManager": COMPONENT}


async def write(
    server: ApiServer, pending: PendingReport, target: ObjectReference, count: int, replica: str, action: str = "Admit"
) -> None:
    """Create the Event on `target` about `action`, or add `count` to the existing Event.

    An existing Event on a pod does not change, because a pod is admitted once.

    Raises:
        ApiServerError: the API server did not accept it.
    """
    event = _manifest(pending, target, count, replica, action)
    path = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
    named = f"{path}/{event['metadata']['name']}"
    for _ in range(_ATTEMPTS):
        if await is_accepted(server.create(path, event, _QUERY), CONFLICT) or target.kind == "Pod":
            return
        # Another replica can raise the count meanwhile, or the API server drop the Event.
        if await is_accepted(_raise(server, named, event), CONFLICT, NOT_FOUND):
            return
    raise ApiServerError(f"the Event {named} changes all the time", CONFLICT)


async def _raise(server: ApiServer, named: str, event: JsonObject) -> None:
    """Add the count of `event` to the stored Event, unless the stored Event changes in the meantime."""
    stored = await server.patch(named, {}, _QUERY)
    count, version = field(stored, "count"), field(stored, "metadata", "resourceVersion")
    raised = (count if isinstance(count, int) else 1) + event["count"]
    changed = {key: event[key] for key in ("lastTimestamp", "message")}
    await server.patch(named, {"metadata": {"resourceVersion": version}, "count": raised, **changed}, _QUERY)


def _manifest(pending: PendingReport, target: ObjectReference, count: int, replica: str, action: str) -> JsonObject:
    report = pending.report
    identity = f"{target.uid}\0{target.name}\0{report.reason}\0{report.topic}"
    suffix = f".{blake2b(identity.encode(), digest_size=8).hexdigest()}"
    name = target.name[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix
    return {
        "apiVersion": "v1",
        "kind": "Event",
        # The API server takes an Event on a cluster-scoped object only in `default`.
        "metadata": {"name": name, "namespace": target.namespace or DEFAULT_NAMESPACE},
        "involvedObject": {
            "apiVersion": target.api_version,
            "kind": target.kind,
            "namespace": target.namespace,
            "name": target.name,
            "uid": target.uid,
        },
        "type": "Warning",
        "reason": report.reason,
        "message": report.note,
        "action": action,
        "count": count,
        "firstTimestamp": _rfc3339(pending.first_at),
        "lastTimestamp": _rfc3339(pending.last_at),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": replica,
    }


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
