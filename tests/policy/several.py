"""Policies of several namespaces."""

from typing import Any

from tests.support.admission import policy_with
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet


def named(name: str, selector: dict[str, Any] | None = None, priority: int = 0) -> Policy:
    spec = {"priority": priority} | ({} if selector is None else {"namespaceSelector": selector})
    return Policy(policy_with(**spec).document.model_copy(update={"metadata": metadata(name)}))


def metadata(name: str) -> Any:
    return type(policy_with().document.metadata)(name=name)


def with_unknown(handling: str, selector: dict[str, Any]) -> PolicySet:
    return PolicySet.of(policy_with(unknownNamespace=handling), [named("a", selector)])
