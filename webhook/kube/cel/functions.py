"""CEL functions and methods of device selectors, for strings, quantities and versions."""

import operator
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import re2
from semver import Version

from webhook.kube.cel.values import Quantity, UndecidedError, parse_semver
from webhook.kube.quantity import milli_value

Call = Callable[..., Any]

# Bounds the program and the matching states of a pattern: a match takes 0.1 ms at most, and the cached patterns
# 3 MiB. Users control patterns, so the limit is a hundredth of kube-scheduler's.
_PATTERN_BYTES = 16 * 1024
# Source: k8s.io/api/resource/v1/types.go, DeviceAttributeMaxValueLength
_LONGEST_TEXT = 64


def _on(kind: type, call: Call) -> Call:
    def checked(*arguments: Any) -> Any:
        if not all(type(each) is kind for each in arguments):
            raise UndecidedError
        return call(*arguments)

    return checked


def _made(make: Callable[[str], Any]) -> Call:
    def made(text: Any) -> Any:
        if not isinstance(text, str):
            raise UndecidedError
        try:
            return make(text)
        except ValueError:
            raise UndecidedError from None

    return made


def _ordered(holds: Callable[[Any, Any], Any]) -> Call:
    def compared(left: Any, right: Any) -> Any:
        if type(left) is not type(right) or not isinstance(left, (Quantity, Version)):
            raise UndecidedError
        return holds(left, right)

    return compared


def _size(value: Any) -> int:
    if not isinstance(value, (str, list, dict)):
        raise UndecidedError
    return len(value)


def _matches(text: str, pattern: str) -> bool:
    expression = _compiled(pattern)
    if expression is None or len(text) > _LONGEST_TEXT:
        raise UndecidedError
    return expression.search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """Return the compiled `pattern`, or None if RE2 rejects it or it is too large."""
    # CEL uses Go's regexp, which has RE2's syntax except \C, a single byte.
    if r"\C" in pattern:
        return None
    try:
        return re2.compile(pattern, _options())
    except re2.error:
        return None


@cache
def _options() -> Any:
    options = re2.Options()
    options.max_mem = _PATTERN_BYTES
    options.never_capture = True
    options.log_errors = False
    return options


FUNCTIONS: Mapping[tuple[str, int], Call] = {
    ("quantity", 1): _made(lambda text: Quantity(milli_value(text))),
    ("semver", 1): _made(parse_semver),
    ("size", 1): _size,
}
"""The functions by name and number of arguments."""

METHODS: Mapping[tuple[str, int], Call] = {
    ("compareTo", 1): _ordered(lambda left, right: (left > right) - (left < right)),
    ("isGreaterThan", 1): _ordered(operator.gt),
    ("isLessThan", 1): _ordered(operator.lt),
    ("major", 0): _on(Version, operator.attrgetter("major")),
    ("minor", 0): _on(Version, operator.attrgetter("minor")),
    ("patch", 0): _on(Version, operator.attrgetter("patch")),
    ("startsWith", 1): _on(str, str.startswith),
    ("endsWith", 1): _on(str, str.endswith),
    ("contains", 1): _on(str, operator.contains),
    ("matches", 1): _on(str, _matches),
    ("lowerAscii", 0): _on(str, lambda text: text.encode().lower().decode()),
    ("upperAscii", 0): _on(str, lambda text: text.encode().upper().decode()),
    ("size", 0): _size,
}
"""The methods by name and number of arguments; the receiver is the first argument."""
