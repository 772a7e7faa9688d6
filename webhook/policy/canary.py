"""Decide whether the policy is enforced for a request, or only computed and recorded."""

import hashlib
from collections.abc import Mapping

from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import JsonObject, field
from webhook.policy.document import PolicySpec


def shadow_reason(request: AdmissionRequest, spec: PolicySpec) -> str | None:
    """Return why `spec` is not enforced for `request`; None if it is.

    A canary is a share of the owners of pods. Which pods an object other than a pod will have is not known, so with a
    share below all of them it is not enforced for any other object.
    """
    if spec.mode == "shadow":
        return "shadow mode"
    percent = spec.canary_percent
    if percent >= 100 or (_is_pod(request) and owner_bucket(request) < percent):
        return None
    return f"not in the canary of {percent} %"


def _is_pod(request: AdmissionRequest) -> bool:
    return request.kind in ("", "Pod") and request.resource in ("", "pods")


def owner_bucket(request: AdmissionRequest) -> int:
    """Return a number from 0 to 99 that is the same for every pod of one owner, in every replica and revision.

    It is the first 8 bytes of the SHA-256 of the UID of the pod's controller, an unsigned integer in network byte
    order, modulo 100. A pod without a controller has the text `NAMESPACE/GENERATENAME`, or `NAMESPACE/NAME` without a
    generateName, in place of the UID: at admission it has no UID of its own.
    """
    digest = hashlib.sha256(_owner(request).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % 100


def _owner(request: AdmissionRequest) -> str:
    metadata: JsonObject = field(request.object or {}, "metadata") or {}
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") and owner.get("uid"):
            return str(owner["uid"])
    return f"{request.namespace}/{metadata.get('generateName') or metadata.get('name') or ''}"
