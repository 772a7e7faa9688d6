"""Parsers of annotation values: each returns the parsed value or raises ValueError with the error detail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

from webhook.kube import quantity
from webhook.kube.names import LABEL_VALUE_RULE, is_label_value, is_qualified_name

MEBIBYTE = 1024 * 1024
_MIB_IN_GIB = 1024
# No card has less. A number without a suffix is one of bytes, and nearly always meant as something else.
_LEAST_CARD_BYTES = _MIB_IN_GIB * MEBIBYTE

_MOST_DIGITS = 4

# Each product adds a toleration and a value in each nodeSelectorTerm.
_MOST_PRODUCTS = 100


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
    if len(found) > _MOST_PRODUCTS:
        raise ValueError(f"must be at most {_MOST_PRODUCTS} products")
    for product in found:
        if not product or not is_label_value(product):
            raise ValueError(f'each product of the comma list {LABEL_VALUE_RULE}, as in "NVIDIA-H20"')
    return found


@dataclass(frozen=True, slots=True)
class CardMemory:
    """The least memory of a card that a node reports, in MiB.

    `origin` states how it follows from the annotation, if the two differ.
    """

    least_mib: int
    origin: str


def card_memory(tolerance_percent: int) -> Callable[[str], CardMemory]:
    """Return a parser of the size that a card is sold by; a card may report `tolerance_percent` less."""

    def parse(text: str) -> CardMemory:
        size_bytes = quantity.value(text)
        if size_bytes <= 0:
            raise ValueError('must be above zero, as in "80Gi"')
        if size_bytes < _LEAST_CARD_BYTES:
            raise ValueError(f'must be at least 1Gi, as in "80Gi"{_meant_card_memory(text)}')
        least_mib = -(-size_bytes * (100 - tolerance_percent) // (100 * MEBIBYTE))
        return CardMemory(least_mib, f"{text} less {tolerance_percent} %" if tolerance_percent else "")

    return parse


def _meant_card_memory(text: str) -> str:
    """Return a question about the size that `text` probably means: a bare number is one of GiB, or of MiB."""
    number = text.rstrip(ascii_letters)
    if not (number.isascii() and number.isdigit() and text[len(number) :] in ("", "m", "k", "M")) or not int(number):
        return ""
    size_gib = int(number) if int(number) < _MIB_IN_GIB else int(number) // _MIB_IN_GIB
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


def topology(aliases: Mapping[str, str]) -> Callable[[str], str]:
    """Return a parser of topology keys that resolves `aliases`; NO_TOPOLOGY stands for none."""

    def parse(text: str) -> str:
        if text in aliases:
            return aliases[text]
        if text == NO_TOPOLOGY or ("/" in text and is_qualified_name(text)):
            return text
        names = ", ".join(f'"{alias}"' for alias in (*aliases, NO_TOPOLOGY))
        raise ValueError(f"must be one of {names}, or a topology key such as kubernetes.io/hostname")

    return parse


def name(text: str) -> str:
    """Return `text`, which must be a non-empty label value."""
    if not text or not is_label_value(text):
        raise ValueError(LABEL_VALUE_RULE)
    return text
