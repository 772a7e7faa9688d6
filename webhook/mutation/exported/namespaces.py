"""What a namespace may use: limits and permissions by patterns of its name, as CEL."""

from collections.abc import Iterable

from webhook.mutation.exported.cel import Cel, any_of, choose, matches_any
from webhook.policy.policy import Policy
from webhook.policy.spec.admission import NamespaceLimits

NAMESPACE: Cel = "request.namespace"
_LIMIT = "variables.limit"


def limit_index(policy: Policy) -> Cel:
    """Return the index of the entry of `namespaceLimits` for the namespace, -1 if there is none."""
    entries = enumerate(policy.spec.namespace_limits)
    return choose(((matches_any(NAMESPACE, each.namespaces), str(index)) for index, each in entries), "-1")


def within_limits(allows: Iterable[tuple[int, Cel]]) -> Cel:
    """Return whether the entry for the namespace allows something; `allows` has the conditions by its index."""
    conditions = dict(allows)
    return choose(((f"{_LIMIT} == {index}", allowed) for index, allowed in conditions.items()), "true")


def limited(policy: Policy, field: str) -> list[tuple[int, NamespaceLimits]]:
    """Return index and entry of the limits that set `field`."""
    return [(i, each) for i, each in enumerate(policy.spec.namespace_limits) if getattr(each, field) is not None]


def may_use_type(policy: Policy, type_name: Cel) -> Cel:
    """Return whether pods of the namespace may use the workload type `type_name`, which exists."""
    allowed = [
        (f'{type_name} == "{name}"', matches_any(NAMESPACE, each.allowed_namespaces))
        for name, each in policy.spec.workload_types.items()
    ]
    limits = [
        (index, any_of(f'{type_name} == "{name}"' for name in each.workload_types or ()))
        for index, each in limited(policy, "workload_types")
    ]
    return f"({choose(allowed, 'false')} && {within_limits(limits)})"
