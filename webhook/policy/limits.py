"""Find the limits of a namespace."""

from webhook.policy.document import PolicySpec
from webhook.policy.namespace_limits import NamespaceLimits
from webhook.policy.patterns import matches_any


def limits_of(spec: PolicySpec, namespace: str) -> NamespaceLimits | None:
    """Return the first entry of `namespaceLimits` for `namespace`; None if there is none."""
    return next((each for each in spec.namespace_limits if matches_any(namespace, each.namespaces)), None)
