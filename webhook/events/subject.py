"""The object that identifies the pod of an admission request: its controller, or the pod itself.

At admission, a pod has no uid and no creation time. If the API server generates its name, it has no name. The fields
are not validated yet, so values that no object can have are left out.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.documents.parts import items_at, object_at
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import is_dns_subdomain

_API_VERSION = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[a-z0-9]{1,63}")
_KIND = re.compile(r"[A-Za-z0-9]{1,63}")
_UID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# A user decides how many owners there are.
_MOST_READ = 64


class ObjectReference(NamedTuple):
    """An object that an Event is about; `uid` is empty for a pod that is not stored yet."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def subject_of(request: AdmissionRequest) -> ObjectReference | None:
    """Return the controller of the pod in `request`, or else the pod itself without uid, or None if it has no name."""
    metadata = object_at(request.object or {}, "metadata")
    if not is_dns_subdomain(request.namespace):
        return None
    name = str(metadata.get("name") or "")
    pod = ObjectReference("v1", "Pod", request.namespace, name, "") if is_dns_subdomain(name) else None
    return controller_of(metadata, request.namespace) or pod


def controller_of(metadata: Mapping[str, Any], namespace: str) -> ObjectReference | None:
    """Return the owner in `namespace` that controls the object with this `metadata`."""
    owners = items_at(metadata, "ownerReferences")[:_MOST_READ]
    owner = next((each for each in owners if field(each, "controller") is True), None)
    if owner is None:
        return None
    api_version, kind, name, uid = (str(owner.get(key) or "") for key in ("apiVersion", "kind", "name", "uid"))
    is_valid = _API_VERSION.fullmatch(api_version) and _KIND.fullmatch(kind) and _UID.fullmatch(uid)
    return ObjectReference(api_version, kind, namespace, name, uid) if is_valid and is_dns_subdomain(name) else None
