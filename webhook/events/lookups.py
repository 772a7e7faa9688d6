"""Look up the objects that Events are about: the admitted pods, and the owner of their owner."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webhook.documents.documents import field
from webhook.events.subject import ObjectReference, controller_of
from webhook.watch.api_errors import ApiServerError, TooLargeError
from webhook.watch.api_server import METADATA_LIST, NOT_READABLE, ApiServer

# Only metadata: a pod can have 1.5 MiB, and its spec is not needed.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_MOST_PODS = 500
# 500 pods have about 1.5 MiB. A user can give each pod 256 KiB of annotations, and decoding blocks the event loop.
_MOST_BYTES = 2 * 1024 * 1024
# A creationTimestamp has whole seconds, and the clocks of two machines differ slightly.
_CLOSE_SECONDS = 5.0


async def pods_of(server: ApiServer, subject: ObjectReference, since: float) -> list[ObjectReference] | None:
    """Return the pods of `subject` without a node, created after `since` (wall clock), or None if they are too many.

    Raises:
        ApiServerError: the pods cannot be read.
    """
    name = "" if subject.uid else f",metadata.name={subject.name}"
    query: dict[str, str | int] = {"fieldSelector": f"spec.nodeName={name}", "limit": _MOST_PODS}
    path = f"/api/v1/namespaces/{subject.namespace}/pods"
    try:
        content = await server.get(path, query, METADATA_LIST, most_bytes=_MOST_BYTES)
    except TooLargeError:
        return None
    found = [
        ObjectReference("v1", "Pod", subject.namespace, str(each["name"]), str(each["uid"]))
        for each in sorted((each["metadata"] for each in content.get("items") or ()), key=_created_at)
        if _created_at(each) >= since - _CLOSE_SECONDS
        and not each.get("deletionTimestamp")
        and controller_of(each, subject.namespace) == (subject if subject.uid else None)
    ]
    return None if field(content, "metadata", "continue") else found


def _created_at(metadata: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(str(metadata.get("creationTimestamp"))).timestamp()


async def with_owner(server: ApiServer, owner: ObjectReference) -> tuple[ObjectReference, ...]:
    """Return `owner` and, for a ReplicaSet, the object that controls it, because users look at the Deployment.

    Raises:
        ApiServerError: the API server does not answer.
    """
    if (owner.api_version, owner.kind) != ("apps/v1", "ReplicaSet"):
        return (owner,)
    path = f"/apis/apps/v1/namespaces/{owner.namespace}/replicasets/{owner.name}"
    try:
        metadata = (await server.get(path, {}, _METADATA, most_bytes=_MOST_BYTES)).get("metadata") or {}
    except ApiServerError as error:
        if isinstance(error, TooLargeError) or error.code in NOT_READABLE:
            return (owner,)
        raise
    controller = controller_of(metadata, owner.namespace) if field(metadata, "uid") == owner.uid else None
    return (owner,) if controller is None else (owner, controller)
