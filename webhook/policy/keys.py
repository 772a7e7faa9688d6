"""The table of the annotations that users write on a pod or its namespace, one row each."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, get_args, overload

from webhook.policy.annotation_values import card_memory, fraction, name, one_of, positive, products, topology
from webhook.policy.document import PolicySpec
from webhook.policy.placement_check import CheckMode

T = TypeVar("T")


class Annotation(Generic[T]):
    """One annotation, a row of `Keys`: the attribute `gpu_memory` is the annotation `KEY-DOMAIN/gpu-memory`.

    `parser` returns the parser of its values for a policy. `values` and `meaning` are its cells in
    docs/annotations.md. `rule` is the name of the mutation rule that uses it; empty: no rule does.
    """

    def __init__(
        self,
        parser: Callable[[PolicySpec], Callable[[str], T]],
        values: str,
        meaning: str,
        *,
        rule: str = "",
    ) -> None:
        self.parser = parser
        self.values = values
        self.meaning = meaning
        self.rule = rule
        self.attribute = ""

    def __set_name__(self, owner: type["Keys"], attribute: str) -> None:
        self.attribute = attribute

    @overload
    def __get__(self, keys: None, owner: type["Keys"]) -> "Annotation[T]": ...

    @overload
    def __get__(self, keys: "Keys", owner: type["Keys"]) -> str: ...

    def __get__(self, keys: "Keys | None", owner: type["Keys"]) -> "Annotation[T] | str":
        return self if keys is None else keys.of(self)


def _any_policy(parse: Callable[[str], T]) -> Callable[[PolicySpec], Callable[[str], T]]:
    return lambda _: parse


class Keys:
    """The annotations. The class attributes are the rows of the table, the instance attributes the keys of a domain."""

    workload_type = Annotation(
        lambda spec: one_of(list(spec.workload_types)),
        "a type of the policy; built in: `training`, `inference`",
        "turns the webhook on for this pod",
        rule="NodeUsageAffinity",
    )
    gpu_product = Annotation(
        _any_policy(products),
        "one product or a comma list of at most 100, such as `NVIDIA-H20,NVIDIA-A100-SXM4-80GB`",
        "which cards will do",
        rule="GpuProduct",
    )
    gpu_memory = Annotation(
        lambda spec: card_memory(spec.gpu_memory_tolerance_percent),
        "quantity, such as `80Gi`",
        "least memory of one card, as it is sold: a card may report 5 % less (policy)",
        rule="GpuProduct",
    )
    gpu_count = Annotation(_any_policy(positive), "integer, 1 or more", "least cards on the node", rule="GpuProduct")
    gpu_driver = Annotation(
        _any_policy(positive), "integer, 1 or more", "least major version of the driver", rule="GpuProduct"
    )
    bin_packing = Annotation(
        _any_policy(one_of(("true", "false"))),
        '`"true"`, `"false"`',
        "overrides the type's `binPacking`",
        rule="BinPacking",
    )
    spread = Annotation(
        lambda spec: topology(spec.topology_aliases),
        "`host`, `rack`, `zone` (aliases of the policy), a topology key, or `none`",
        "the replicas of one owner apart, over that topology; overrides the type's `spread.topology`",
        rule="Spread",
    )
    scheduler = Annotation(
        lambda spec: one_of(spec.allowed_schedulers),
        "one of the policy's `allowedSchedulers`",
        "overrides the type's `schedulerName`",
        rule="SchedulerName",
    )
    queue = Annotation(_any_policy(name), "a label value", "queue of a batch scheduler", rule="BatchScheduler")
    gang = Annotation(
        _any_policy(name), "a label value", "group of pods that start together or not at all", rule="BatchScheduler"
    )
    gang_size = Annotation(
        _any_policy(positive), "integer, 1 or more", "number of the pods of that group", rule="BatchScheduler"
    )
    gpu_fraction = Annotation(
        _any_policy(fraction),
        "decimal between 0 and 1, such as `0.5`",
        "share of one card, instead of whole cards, where the scheduler can share cards",
        rule="BatchScheduler",
    )
    preemptible = Annotation(
        _any_policy(one_of(("true", "false"))),
        '`"true"`, `"false"`',
        "whether the pod may be evicted for others, in the terms of the scheduler",
        rule="BatchScheduler",
    )
    placement_check = Annotation(
        _any_policy(one_of(get_args(CheckMode))),
        "`off`, `warn`, `deny`",
        "overrides the policy's mode, never to one laxer than its floor",
    )
    inject = Annotation(
        _any_policy(one_of(("enabled", "disabled"))),
        "`disabled`; `enabled` against a namespace's `disabled`",
        "leave this pod alone",
    )

    def __init__(self, domain: str) -> None:
        self._keys = {row.attribute: f"{domain}/{row.attribute.replace('_', '-')}" for row in ANNOTATIONS}
        # Shadows the rows of the class: the keys are read for every pod.
        vars(self).update(self._keys)

    def of(self, annotation: Annotation[Any]) -> str:
        """Return the key of `annotation`, with its domain."""
        return self._keys[annotation.attribute]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys.values())


ANNOTATIONS = tuple(row for row in vars(Keys).values() if isinstance(row, Annotation))
