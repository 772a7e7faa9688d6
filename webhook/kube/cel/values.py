"""CEL values and their operations. An operation raises if kube-scheduler would get an error from it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from semver import Version

_LONGEST_VERSION = 256
_LARGEST_NUMBER = 2**64 - 1


class UndecidedError(Exception):
    """An expression without a value, or with an unknown value."""


class Defaulting(dict[str, Mapping[str, Any]]):
    """A mapping that returns an empty mapping for a missing key. The key is still not `in` the mapping."""

    def __missing__(self, key: str) -> Mapping[str, Any]:
        return {}


class Quantity(NamedTuple):
    """A quantity in thousandths."""

    thousandths: int


def is_number(value: Any) -> bool:
    """Return true if `value` is an integer or a double."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Return true if both are equal. Values of different types are not equal.

    Raises:
        UndecidedError: a value is a list or a mapping, which are not compared here; or one value is a quantity or a
            version and the other is not.
    """
    kinds = {type(left), type(right)}
    if kinds & {list, dict, Defaulting} or (len(kinds) == 2 and kinds & {Quantity, Version}):
        raise UndecidedError
    if is_number(left) and is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def boolean(value: Any) -> bool:
    """Return `value`, which must be a boolean.

    Raises:
        UndecidedError: it is of another type.
    """
    if not isinstance(value, bool):
        raise UndecidedError
    return value


def number(value: Any) -> Any:
    """Return `value`, which must be an integer or a double.

    Raises:
        UndecidedError: it is of another type.
    """
    if not is_number(value):
        raise UndecidedError
    return value


def comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both values, which must be ordered: two numbers or two strings.

    Raises:
        UndecidedError: the types do not match.
    """
    if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return left, right
    raise UndecidedError


def contains(container: Any, item: Any) -> bool:
    """Return true if `item` is in a list, or is a key of a mapping.

    Raises:
        UndecidedError: the types do not match.
    """
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    if isinstance(container, dict) and isinstance(item, str):
        return item in container
    raise UndecidedError


def value_at(target: Any, key: Any) -> Any:
    """Return the value of `key` in a mapping.

    Raises:
        UndecidedError: `target` is not a mapping, or has no such key.
    """
    if not isinstance(target, dict) or not isinstance(key, str):
        raise UndecidedError
    try:
        return target[key]
    except KeyError:
        raise UndecidedError from None


def has(target: Any, key: str) -> bool:
    """Return true if a mapping has `key`.

    Raises:
        UndecidedError: `target` is not a mapping with known keys.
    """
    if not isinstance(target, dict) or isinstance(target, Defaulting):
        raise UndecidedError
    return key in target


def parse_semver(text: str) -> Version:
    """Return the version in `text`. Comparisons ignore build metadata.

    Raises:
        ValueError: it is not a semantic version 2.0.0, or one of its numbers needs more than 64 bits.

    Source: github.com/blang/semver/v4, Parse and Compare
    """
    if len(text) <= _LONGEST_VERSION:
        version = Version.parse(text)
        # The library accepts numbers of any length.
        if max(version.major, version.minor, version.patch) <= _LARGEST_NUMBER:
            return version
    raise ValueError(f"must have at most {_LONGEST_VERSION} characters, and numbers up to {_LARGEST_NUMBER}")


def is_semver(text: object) -> bool:
    """Return true if `text` is a semantic version."""
    try:
        parse_semver(text if isinstance(text, str) else "")
    except ValueError:
        return False
    return True
