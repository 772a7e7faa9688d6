"""ResourceQuotas of a cluster, as far as checks read them. Pure.

Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go
"""

from webhook.doctor.cluster import JsonObject, listed, texts
from webhook.documents.documents import field
from webhook.kube import quantity

_COUNTS = ("pods", "count/pods")
_PRIORITY_CLASS = "PriorityClass"


def scopes(quota: JsonObject) -> set[str]:
    """Return the scopes of a quota."""
    given = field(quota, "spec", "scopes")
    found = {str(each.get("scopeName")) for each in listed(quota, "spec", "scopeSelector", "matchExpressions")}
    return found | set(map(str, given if isinstance(given, list) else ()))


def priority_classes(quota: JsonObject) -> set[str] | None:
    """Return the PriorityClasses whose pods a quota counts, empty for all; None if another scope decides."""
    if not scopes(quota) <= {_PRIORITY_CLASS}:
        return None
    expressions = listed(quota, "spec", "scopeSelector", "matchExpressions")
    return {str(value) for each in expressions for value in each.get("values") or ()}


def is_full(quota: JsonObject) -> bool:
    """Return whether a quota has no room for one pod. Before its controller has seen it, the status is empty."""
    hard = texts(quota, "status", "hard") or texts(quota, "spec", "hard")
    used = texts(quota, "status", "used")
    return any(amount(hard[each]) <= amount(used.get(each, "0")) for each in _COUNTS if each in hard)


def amount(text: str) -> float:
    """Return the thousandths of a quantity; those of a malformed one are infinite."""
    try:
        return quantity.milli_value(text)
    except ValueError:
        return float("inf")
