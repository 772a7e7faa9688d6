"""ResourceQuotas that deny pods with pod affinity across namespaces."""

from typing import Any

import pytest

from webhook.cluster.objects.resource_quota import CROSS_NAMESPACE_SCOPE, ResourceQuota


def quota(hard: dict[str, str], used: dict[str, str], *scopes: str) -> dict[str, Any]:
    metadata = {"namespace": "team-a", "name": "no-cross"}
    return {"metadata": metadata, "spec": {"scopes": [*scopes]}, "status": {"hard": hard, "used": used}}


@pytest.mark.parametrize(
    ("hard", "used", "scopes", "denies"),
    [
        ({"pods": "0"}, {"pods": "0"}, (CROSS_NAMESPACE_SCOPE,), True),
        ({"count/pods": "2"}, {"count/pods": "2"}, (CROSS_NAMESPACE_SCOPE,), True),
        ({"pods": "2"}, {"pods": "1"}, (CROSS_NAMESPACE_SCOPE,), False),
        ({"cpu": "0"}, {"cpu": "0"}, (CROSS_NAMESPACE_SCOPE,), False),
        ({"pods": "0"}, {}, (CROSS_NAMESPACE_SCOPE,), False),
        ({"pods": "0"}, {"pods": "0"}, (CROSS_NAMESPACE_SCOPE, "BestEffort"), False),
        ({"pods": "0"}, {"pods": "0"}, (), False),
    ],
)
def test_a_quota_denies_once_its_pods_are_used_up(
    hard: dict[str, str], used: dict[str, str], scopes: tuple[str, ...], denies: bool
) -> None:
    assert ResourceQuota.of(quota(hard, used, *scopes)) == ("team-a", "no-cross", denies)


def test_a_scope_may_be_a_selector() -> None:
    selecting = quota({"pods": "0"}, {"pods": "0"})
    selecting["spec"] = {"scopeSelector": {"matchExpressions": [{"scopeName": CROSS_NAMESPACE_SCOPE}]}}

    assert ResourceQuota.of(selecting).denies_cross_namespace
