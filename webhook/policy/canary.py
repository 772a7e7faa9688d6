"""Decide whether the policy is enforced for a request, or only computed and recorded."""

import hashlib
from collections.abc import Mapping
from typing import Any

from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import field
from webhook.policy.document import PolicySpec
from webhook.policy.keys import Keys

_ALL = 100
_SHADOW = "shadow mode"


def shadow_reason(request: AdmissionRequest, spec: PolicySpec) -> str | None:
    """Return why `spec` is not enforced for `request`; None if it is.

    A canary is a share of the owners of pods. Which pods an object other than a pod will have is not known, so with a
    share below all of them it is not enforced for any other object.
    """
    if spec.mode != "shadow" and spec.canary_percent >= _ALL:
        return None
    if request.kind in ("", "Pod") and request.resource in ("", "pods"):
        return pod_shadow_reason(request.object or {}, request.namespace, spec)
    if spec.mode == "shadow":
        return _SHADOW
    return _outside(spec) if spec.canary_percent < _ALL else None


def pod_shadow_reason(pod: Mapping[str, Any], namespace: str, spec: PolicySpec) -> str | None:
    """Return why `spec` is not enforced for `pod`; None if it is."""
    if spec.mode == "shadow":
        return _SHADOW
    if spec.canary_percent >= _ALL or owner_bucket(pod, namespace, Keys(spec.key_domain).gang) < spec.canary_percent:
        return None
    return _outside(spec)


def _outside(spec: PolicySpec) -> str:
    return f"not in the canary of {spec.canary_percent} %"


def owner_bucket(pod: Mapping[str, Any], namespace: str, gang_key: str) -> int:
    """Return a number from 0 to 99 that is the same for every pod of one owner or gang, in every replica and revision.

    It is the first 8 bytes of the SHA-256 of the UID of the pod's controller, an unsigned integer in network byte
    order, modulo 100. A pod without a controller has the text `NAMESPACE/GENERATENAME`, or `NAMESPACE/NAME` without a
    generateName, in place of the UID: at admission it has no UID of its own. A pod with the annotation `gang_key` has
    `NAMESPACE/GANG`, since a gang of which only a part is admitted as such would never start.
    """
    digest = hashlib.sha256(_owner(pod, namespace, gang_key).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % 100


def _owner(pod: Mapping[str, Any], namespace: str, gang_key: str) -> str:
    found = field(pod, "metadata")
    metadata: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    if gang := field(metadata, "annotations", gang_key):
        return f"{namespace}/{gang}"
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") and owner.get("uid"):
            return str(owner["uid"])
    return f"{namespace}/{metadata.get('generateName') or metadata.get('name') or ''}"
