"""Limits of what the pods of a namespace may ask for."""

from typing import Annotated

from pydantic import Field

from webhook.policy.fields import (
    LabelValue,
    NamespacePattern,
    ProductPattern,
    QueuePattern,
    SomeValues,
    StrictModel,
    Values,
)


class NamespaceLimits(StrictModel):
    """The limits of the pods of some namespaces; a field that is absent sets no limit.

    The limits hold for pods with a workload type, beside `allowedNamespaces` of the types and `allowedProducts`: what
    one of them forbids is forbidden.
    """

    namespaces: SomeValues[NamespacePattern]
    """The namespaces, each a name or a pattern with `*`. The first entry of the list with a pattern that matches holds
    for a namespace, and no other."""

    workload_types: Values[LabelValue] | None = None
    """The workload types that they may use."""

    products: Values[ProductPattern] | None = None
    """The products that they may use, each a name or a pattern with `*`; a product includes its variants. Pods that
    name no product are restricted to these: see docs/annotations.md."""

    schedulers: Values[LabelValue] | None = None
    """The schedulers that they may use, by annotation or by `spec.schedulerName`. `default-scheduler` is always
    allowed. Must include the `schedulerName` of each workload type that they may use."""

    queues: Values[QueuePattern] | None = None
    """The queues that they may use, each a name or a pattern with `*`."""

    max_cards_per_pod: Annotated[int, Field(ge=0, le=1024)] | None = None
    """The largest number of cards of one pod: the sum of its requests for the `resources` of `accelerators`. Cards of
    `resourceClaims` do not count."""
