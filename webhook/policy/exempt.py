"""The requests that are exempt, and the requests for which the policy is not enforced."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from webhook.documents.documents import field
from webhook.documents.parts import listed, object_at
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.selectors import selector_matches
from webhook.policy.keys import Keys
from webhook.policy.spec.admission import Exemption, PodLabels
from webhook.policy.spec.document import GROUP, KIND, PolicySpec
from webhook.policy.spec.field_types import matches_any

POLICY_OBJECT = GROUP, KIND
"""The API group and kind of a PlacementPolicy, as requests have them."""

_ALL = 100
_SHADOW = "shadow mode"


def shadow_reason(request: AdmissionRequest, spec: PolicySpec) -> str | None:
    """Return the reason why `spec` is not enforced for `request`, or None if it is enforced.

    A canary selects a percentage of the owners of pods. The pods that another object will have are not known, so the
    policy is not enforced for objects other than pods if the percentage is below 100. PlacementPolicies are always
    validated, because they are not objects of users.
    """
    if (spec.mode != "shadow" and spec.canary_percent >= _ALL) or (request.group, request.kind) == POLICY_OBJECT:
        return None
    if request.kind in ("", "Pod") and request.resource in ("", "pods"):
        return pod_shadow_reason(request.object or {}, request.namespace, spec)
    return _SHADOW if spec.mode == "shadow" else _outside(spec)


def pod_shadow_reason(pod: Mapping[str, Any], namespace: str, spec: PolicySpec) -> str | None:
    """Return the reason why `spec` is not enforced for `pod`, or None if it is enforced."""
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
    `NAMESPACE/GANG`, since a gang that is only partly in the canary would never start.
    """
    digest = hashlib.sha256(_owner(pod, namespace, gang_key).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % 100


def _owner(pod: Mapping[str, Any], namespace: str, gang_key: str) -> str:
    metadata = object_at(pod, "metadata")
    if gang := field(metadata, "annotations", gang_key):
        return f"{namespace}/{gang}"
    for owner in listed(metadata, "ownerReferences"):
        if owner.get("controller") and owner.get("uid"):
            return str(owner["uid"])
    return f"{namespace}/{metadata.get('generateName') or metadata.get('name') or ''}"


_SERVICE_ACCOUNT = "system:serviceaccount:"


def request_exemption(request: AdmissionRequest, spec: PolicySpec) -> str | None:
    """Return the reason why `request` is exempt because of its user, or None if it is not exempt."""
    for index, each in enumerate(spec.exemptions):
        if each.concerns_users and _is_of_user(request, each) and _is_of_object(request, each):
            return _reason(index, each)
    return None


def pod_exemption(pod: Mapping[str, Any], namespace: str, spec: PolicySpec) -> str | None:
    """Return the reason why `pod` is exempt regardless of its creator, or None if it is not exempt."""
    for index, each in enumerate(spec.exemptions):
        if not each.concerns_users and _is_in(namespace, each) and _has_labels(pod, each.pod_labels):
            return _reason(index, each)
    return None


def _reason(index: int, exemption: Exemption) -> str:
    return f"exempt by spec.exemptions[{index}]: {exemption.reason}"


def _is_of_user(request: AdmissionRequest, exemption: Exemption) -> bool:
    users, groups, accounts = exemption.users, exemption.groups, exemption.service_accounts
    account = request.user.removeprefix(_SERVICE_ACCOUNT) if request.user.startswith(_SERVICE_ACCOUNT) else None
    return (
        (users is None or _matches(request.user, users))
        and (groups is None or any(_matches(group, groups) for group in request.groups))
        and (accounts is None or (account is not None and _matches(account, accounts, _SERVICE_ACCOUNT)))
    )


def _is_of_object(request: AdmissionRequest, exemption: Exemption) -> bool:
    if not _is_in(request.namespace, exemption):
        return False
    if exemption.pod_labels is None:
        return True
    return request.kind in ("", "Pod") and _has_labels(request.object or {}, exemption.pod_labels)


def _is_in(namespace: str, exemption: Exemption) -> bool:
    return exemption.namespaces is None or matches_any(namespace, exemption.namespaces)


def _has_labels(pod: Mapping[str, Any], selector: PodLabels | None) -> bool:
    return selector is None or selector_matches(selector.requirements, object_at(pod, "metadata", "labels"))


def _matches(name: str, patterns: tuple[str, ...], prefix: str = "") -> bool:
    """Return whether one of `patterns`, each with or without `prefix`, matches `name`.

    `*` is its only wildcard, because a user name can have any character.
    """
    return _compiled(patterns, prefix).fullmatch(name) is not None


# Every request is compared with the patterns, so they are compiled once for each policy.
@lru_cache(maxsize=1024)
def _compiled(patterns: tuple[str, ...], prefix: str) -> re.Pattern[str]:
    parts = (map(re.escape, each.removeprefix(prefix).split("*")) for each in patterns)
    return re.compile("|".join(".*".join(each) for each in parts), re.DOTALL)
