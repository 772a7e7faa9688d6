"""Limits of a namespace on queues, schedulers and cards, as CEL: the denials of a pod beyond them."""

from collections.abc import Iterator

from webhook.mutation.exported.variables import Variable
from webhook.policy.policy import Policy


def limit_variables(policy: Policy) -> Iterator[Variable]:
    """Yield whether the defaults of queue and scheduler are allowed, and the denials."""
    if policy.spec.namespace_limits:
        yield "queueDefaultAllowed", "true"
        yield "schedulerDefaultAllowed", "true"
        yield "limitDenials", "[]"
