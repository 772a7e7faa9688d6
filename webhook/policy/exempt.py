"""Decide whether the policy exempts a request or a pod, and why."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import field
from webhook.kube.label_selector import selector_matches
from webhook.policy.document import PolicySpec
from webhook.policy.exemption import Exemption, PodLabels
from webhook.policy.patterns import matches_any

_SERVICE_ACCOUNT = "system:serviceaccount:"


def request_exemption(request: AdmissionRequest, spec: PolicySpec) -> str | None:
    """Return why `request` is exempt because of its user; None if it is not."""
    for index, each in enumerate(spec.exemptions):
        if each.concerns_users and _is_of_user(request, each) and _is_of_object(request, each):
            return _reason(index, each)
    return None


def pod_exemption(pod: Mapping[str, Any], namespace: str, spec: PolicySpec) -> str | None:
    """Return why `pod` is exempt regardless of its creator; None if it is not."""
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
    if selector is None:
        return True
    found = field(pod, "metadata", "labels")
    return selector_matches(selector.requirements, found if isinstance(found, Mapping) else {})


def _matches(name: str, patterns: tuple[str, ...], prefix: str = "") -> bool:
    """Return whether a pattern, which can have `prefix`, matches `name`.

    `*` is its only wildcard, because a user name can have any character.
    """
    return _compiled(patterns, prefix).fullmatch(name) is not None


# Every request is compared with the patterns, so they are compiled once for each policy.
@lru_cache(maxsize=1024)
def _compiled(patterns: tuple[str, ...], prefix: str) -> re.Pattern[str]:
    parts = (map(re.escape, each.removeprefix(prefix).split("*")) for each in patterns)
    return re.compile("|".join(".*".join(each) for each in parts), re.DOTALL)
