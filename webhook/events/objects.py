"""The objects that Events belong on: the pod of an admission request, its owner, and the owner of that.

At admission a pod has no uid, no creation time and, if the API server generates it, no name. Nothing of it is validated
yet: a value that no object can have is left out.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import is_dns_subdomain
from webhook.watch.api_errors import ApiServerError, TooLargeError
from webhook.watch.api_server import METADATA_LIST, NOT_READABLE, ApiServer

_API_VERSION = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[a-z0-9]{1,63}")
_KIND = re.compile(r"[A-Za-z0-9]{1,63}")
_UID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# A user decides how many owners there are.
_MOST_READ = 64
# Metadata alone: a pod can have 1.5 MiB, and its spec is not needed.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_MOST_PODS = 500
# 500 pods have about 1.5 MiB. A user can give each pod 256 KiB of annotations, and decoding blocks the event loop.
_MOST_BYTES = 2 * 1024 * 1024
# A creationTimestamp has whole seconds, and the clocks of two machines differ slightly.
_CLOSE_SECONDS = 5.0


class ObjectReference(NamedTuple):
    """An object that an Event is about; `uid` is empty for a pod that is not stored yet."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def subject_of(request: AdmissionRequest) -> ObjectReference | None:
    """Return the controller of the pod in `request`, else the pod itself, which has no uid yet; None without a name."""
    metadata = field(request.object or {}, "metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if not is_dns_subdomain(request.namespace):
        return None
    name = str(metadata.get("name") or "")
    pod = ObjectReference("v1", "Pod", request.namespace, name, "") if is_dns_subdomain(name) else None
    return controller_of(metadata, request.namespace) or pod


def controller_of(metadata: Mapping[str, Any], namespace: str) -> ObjectReference | None:
    """Return the owner in `namespace` that controls the object with this `metadata`."""
    owners = metadata.get("ownerReferences")
    read = owners[:_MOST_READ] if isinstance(owners, list) else []
    owner = next((each for each in read if field(each, "controller") is True), None)
    if owner is None:
        return None
    api_version, kind, name, uid = (str(owner.get(key) or "") for key in ("apiVersion", "kind", "name", "uid"))
    is_valid = _API_VERSION.fullmatch(api_version) and _KIND.fullmatch(kind) and _UID.fullmatch(uid)
    return ObjectReference(api_version, kind, namespace, name, uid) if is_valid and is_dns_subdomain(name) else None


async def pods_of(server: ApiServer, subject: ObjectReference, since: float) -> list[ObjectReference] | None:
    """Return the pods of `subject` created after `since` (wall clock) without a node; None if there are too many.

    Raises:
        ApiServerError: they cannot be read.
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
    """Return `owner` and, for a ReplicaSet, the object that controls it: users look at the Deployment.

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
