"""The annotations: their keys and values."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from string import ascii_letters
from typing import Any, Generic, TypeVar, get_args, overload

from webhook.kube import quantity
from webhook.kube.names import LABEL_VALUE_RULE, is_label_value, is_qualified_name
from webhook.policy.spec.admission import CheckMode
from webhook.policy.spec.document import PolicySpec

MEBIBYTE = 1024 * 1024
_MIB_IN_GIB = 1024
# No card has less. A number without a suffix is one of bytes, and nearly always meant as something else.
_LEAST_CARD_BYTES = _MIB_IN_GIB * MEBIBYTE

_MOST_DIGITS = 4
_GIGABYTES = re.compile(r"\s*([0-9]{1,4})\s*(?:g|gb|gi|gib)\s*", re.ASCII | re.IGNORECASE)

# Each product adds a toleration and a value in each nodeSelectorTerm.
MOST_PRODUCTS = 100


class UnsupportedValueError(ValueError):
    """Raised for a value that is not one of `supported`."""

    def __init__(self, supported: Sequence[str]) -> None:
        super().__init__(f"must be one of {', '.join(supported)}")
        self.supported = supported


def one_of(supported: Sequence[str]) -> Callable[[str], str]:
    """Return a parser that accepts the `supported` texts."""

    def parse(text: str) -> str:
        if text not in supported:
            raise UnsupportedValueError(supported)
        return text

    return parse


def products(text: str) -> tuple[str, ...]:
    """Return the label values of a comma-separated list, each once."""
    found = tuple(dict.fromkeys(product.strip() for product in text.split(",")))
    if len(found) > MOST_PRODUCTS:
        raise ValueError(f"must be at most {MOST_PRODUCTS} products")
    for product in found:
        if not product or not is_label_value(product):
            raise ValueError(f'each product of the comma list {LABEL_VALUE_RULE}, as in "NVIDIA-H20"')
    return found


@dataclass(frozen=True, slots=True)
class CardMemory:
    """The minimum memory of a card in bytes, as nodes report it.

    If it differs from the annotation, `origin` describes how it was derived from the annotation.
    """

    least_bytes: int
    origin: str


def card_memory(tolerance_percent: int) -> Callable[[str], CardMemory]:
    """Return a parser of the nominal size of a card. A card may report up to `tolerance_percent` less."""

    def parse(text: str) -> CardMemory:
        try:
            size_bytes = quantity.value(text)
        except ValueError as error:
            if misspelt := _GIGABYTES.fullmatch(text):
                raise ValueError(f"{error}; did you mean {misspelt[1]}Gi?") from None
            raise
        if size_bytes <= 0:
            raise ValueError('must be above zero, as in "80Gi"')
        if size_bytes < _LEAST_CARD_BYTES:
            raise ValueError(f'must be at least 1Gi, as in "80Gi"{_meant_card_memory(text)}')
        least_bytes = -(-size_bytes * (100 - tolerance_percent) // 100)
        return CardMemory(least_bytes, f"{text} less {tolerance_percent} %" if tolerance_percent else "")

    return parse


def _meant_card_memory(text: str) -> str:
    """Return a question about the size that `text` probably means. A number without a unit is taken as GiB or MiB."""
    number = text.rstrip(ascii_letters)
    if not (number.isascii() and number.isdigit() and text[len(number) :] in ("", "m", "k", "M")) or not int(number):
        return ""
    size_gib = int(number)
    if size_gib >= _MIB_IN_GIB:
        # A card reports a little less than the size that it is sold by.
        sold_gib = -(-size_gib // _MIB_IN_GIB)
        is_close = 100 * size_gib >= 95 * _MIB_IN_GIB * sold_gib
        size_gib = sold_gib if is_close else size_gib // _MIB_IN_GIB
    return f"; did you mean {size_gib}Gi?" if size_gib < _MIB_IN_GIB else ""


def positive(text: str) -> int:
    """Return the integer `text`, at least 1."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise ValueError('must be an integer above zero, as in "8"')
    return int(text)


def fraction(text: str) -> str:
    """Return the decimal `text`, above 0 and below 1, in its shortest form."""
    digits = text.removeprefix("0").removeprefix(".").rstrip("0")
    if "." not in text or not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise ValueError(f'must be a decimal above 0 and below 1 of at most {_MOST_DIGITS} digits, as in "0.5"')
    return f"0.{digits}"


NO_TOPOLOGY = "none"
# The comparison is slow, and the value of an annotation may have 256 KiB.
_LONGEST_COMPARED = 63


def topology(aliases: Mapping[str, str]) -> Callable[[str], str]:
    """Return a parser of topology keys that resolves `aliases`. NO_TOPOLOGY means that there is no key."""

    def parse(text: str) -> str:
        if text in aliases:
            return aliases[text]
        if text == NO_TOPOLOGY or ("/" in text and is_qualified_name(text)):
            return text
        words = (*sorted(aliases), NO_TOPOLOGY)
        names = ", ".join(f'"{word}"' for word in words)
        meant = "".join(f'; did you mean "{word}"?' for word in get_close_matches(text[:_LONGEST_COMPARED], words, 1))
        raise ValueError(f"must be one of {names}, or a topology key such as kubernetes.io/hostname{meant}")

    return parse


def name(text: str) -> str:
    """Return `text`, which must be a non-empty label value."""
    if not text or not is_label_value(text):
        raise ValueError(LABEL_VALUE_RULE)
    return text


T = TypeVar("T")


@dataclass(eq=False)
class Annotation(Generic[T]):
    """One annotation. As an example, the attribute `gpu_memory` of `Keys` is the annotation `KEY-DOMAIN/gpu-memory`.

    `parser` returns the parser of its values for a policy. `values` and `meaning` are the texts in docs/annotations.md.
    `rule` is the name of the mutation rule that uses it, or empty if no rule uses it.
    """

    parser: Callable[[PolicySpec], Callable[[str], T]]
    values: str
    meaning: str
    rule: str = field(default="", kw_only=True)
    attribute: str = field(default="", init=False)

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
    """The annotations.

    A class attribute is an `Annotation`; the instance attribute of the same name is its key in a domain.
    """

    workload_type = Annotation(
        lambda spec: one_of(sorted(spec.workload_types)),
        "a type of the policy; built in: `training`, `inference`",
        "turns the webhook on for this pod",
        rule="NodeUsageAffinity",
    )
    gpu_product = Annotation(
        _any_policy(products),
        "one product or a comma list of at most 100, such as `NVIDIA-H20,NVIDIA-A100-SXM4-80GB`",
        "the accepted cards",
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
        lambda spec: one_of(sorted(spec.allowed_schedulers)),
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
    within = Annotation(
        lambda spec: topology(spec.topology_aliases),
        "`host`, `rack`, `nvlink`, `zone` (aliases of the policy), a topology key, or `none`",
        "the pods of a gang together, within one domain of that topology; overrides the type's `within.topology`",
        rule="BatchScheduler",
    )
    within_mode = Annotation(
        _any_policy(one_of(("required", "preferred"))),
        "`required`, `preferred`",
        "whether the gang waits for such a domain; overrides the type's `within.mode`",
        rule="BatchScheduler",
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
    reclaim = Annotation(
        _any_policy(one_of(("never",))), "`never`", "[`reclaim --evict`](reclaim.md#evict) leaves the pod alone"
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
