"""Functions and methods of CEL that selectors of devices call, on texts, quantities and versions."""

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from webhook.kube.cel.semver import Semver
from webhook.kube.cel.values import Quantity, UndecidedError
from webhook.kube.quantity import milli_value

Call = Callable[..., Any]

# A pattern that Python and RE2 read alike, and that is matched in no time: each quantifier goes through a text once
# more, and each group of alternatives tries all that follows once for each, so few are let through, and no quantifier
# on a group.
_CHARACTER = r"(?:[A-Za-z0-9 _,:;/=%#@!~<>&'\"-]|\\[.\\+*?()|/_-]|\\d|\.|\[(?!\^?\])\^?[A-Za-z0-9_. -]+\])"
_ATOM = rf"(?:{_CHARACTER}[*+?]?)"
_GROUP = rf"\((?:\?:)?{_ATOM}*(?:\|{_ATOM}*)*\)(?![*+?{{])"
_PATTERN = re.compile(rf"(?:\(\?i\))?\^?(?:{_ATOM}|{_GROUP})*\$?", re.ASCII)
_MOST_CHOICES = 2
_MOST_BARS = 16
_LONGEST_PATTERN = 256
# Source: k8s.io/api/resource/v1/types.go, DeviceAttributeMaxValueLength
_LONGEST_TEXT = 64


def _on(kind: type, call: Call) -> Call:
    """`call`, all of whose arguments must be of `kind`."""

    def checked(*arguments: Any) -> Any:
        if not all(type(each) is kind for each in arguments):
            raise UndecidedError
        return call(*arguments)

    return checked


def _made(make: Callable[[str], Any]) -> Call:
    """A function that makes a value out of a text."""

    def made(text: Any) -> Any:
        if not isinstance(text, str):
            raise UndecidedError
        try:
            return make(text)
        except ValueError:
            raise UndecidedError from None

    return made


def _ordered(holds: Callable[[Any, Any], Any]) -> Call:
    """A comparison of two quantities, or of two versions."""

    def compared(left: Any, right: Any) -> Any:
        if type(left) is not type(right) or not isinstance(left, (Quantity, Semver)):
            raise UndecidedError
        return holds(left, right)

    return compared


def _size(value: Any) -> int:
    if not isinstance(value, (str, list, dict)):
        raise UndecidedError
    return len(value)


def _lower(text: str) -> str:
    return text.encode().lower().decode()


def _upper(text: str) -> str:
    return text.encode().upper().decode()


def _matches(text: str, pattern: str) -> bool:
    # Only patterns of a bounded length may reach the cache.
    expression = _compiled(pattern) if len(pattern) <= _LONGEST_PATTERN else None
    if expression is None or len(text) > _LONGEST_TEXT:
        raise UndecidedError
    return expression.search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """`pattern` of RE2, None where it is not one that is evaluated here."""
    if _PATTERN.fullmatch(pattern) is None:
        return None
    bars = pattern.count("|")
    # Those that are escaped count, too: rather too many than too few.
    if bars > _MOST_BARS or sum(map(pattern.count, "*+?")) + min(bars, pattern.count("(")) > _MOST_CHOICES:
        return None
    python = pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
    try:
        return re.compile(python, re.ASCII)
    except re.error:
        return None


FUNCTIONS: Mapping[tuple[str, int], Call] = {
    ("quantity", 1): _made(lambda text: Quantity(milli_value(text))),
    ("semver", 1): _made(Semver),
    ("size", 1): _size,
}
"""The functions by name and number of arguments."""

METHODS: Mapping[tuple[str, int], Call] = {
    ("compareTo", 1): _ordered(lambda left, right: (left > right) - (left < right)),
    ("isGreaterThan", 1): _ordered(operator.gt),
    ("isLessThan", 1): _ordered(operator.lt),
    ("major", 0): _on(Semver, operator.attrgetter("major")),
    ("minor", 0): _on(Semver, operator.attrgetter("minor")),
    ("patch", 0): _on(Semver, operator.attrgetter("patch")),
    ("startsWith", 1): _on(str, str.startswith),
    ("endsWith", 1): _on(str, str.endswith),
    ("contains", 1): _on(str, operator.contains),
    ("matches", 1): _on(str, _matches),
    ("lowerAscii", 0): _on(str, _lower),
    ("upperAscii", 0): _on(str, _upper),
    ("size", 0): _size,
}
"""The methods by name and number of arguments; what they are called on comes first."""
