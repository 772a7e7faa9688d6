"""Values of CEL, and what can be asked of them; what cannot be told raises, as kube-scheduler gets an error."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from semver import Version


class UndecidedError(Exception):
    """An expression that has no value, or one that is not known here."""


class Defaulting(dict[str, Mapping[str, Any]]):
    """A mapping in which a key that is missing stands for an empty mapping, though it is not `in` it."""

    def __missing__(self, key: str) -> Mapping[str, Any]:
        return {}


class Quantity(NamedTuple):
    """A quantity in thousandths."""

    thousandths: int


def is_number(value: Any) -> bool:
    """Whether `value` is an integer or a decimal."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Whether both are the same; values of types that do not go together are not.

    Raises:
        UndecidedError: one is a list or a mapping, which are not compared here; or a quantity or a version, which
            Kubernetes compares with their like alone.
    """
    kinds = {type(left), type(right)}
    if kinds & {list, dict, Defaulting} or (len(kinds) == 2 and kinds & {Quantity, Version}):
        raise UndecidedError
    if is_number(left) and is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def boolean(value: Any) -> bool:
    """`value`, which must be true or false.

    Raises:
        UndecidedError: it is of another type, or has no value.
    """
    if not isinstance(value, bool):
        raise UndecidedError
    return value


def number(value: Any) -> Any:
    """`value`, which must be an integer or a decimal.

    Raises:
        UndecidedError: it is of another type, or has no value.
    """
    if not is_number(value):
        raise UndecidedError
    return value


def comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Both, if one can be the smaller.

    Raises:
        UndecidedError: it is of another type, or has no value.
    """
    if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return left, right
    raise UndecidedError


def contains(container: Any, item: Any) -> bool:
    """Whether `item` is one of a list, or a key of a mapping.

    Raises:
        UndecidedError: it is of another type, or has no value.
    """
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    if isinstance(container, dict) and isinstance(item, str):
        return item in container
    raise UndecidedError


def value_at(target: Any, key: Any) -> Any:
    """What a mapping has under `key`.

    Raises:
        UndecidedError: it is of another type, or has no value.
    """
    if not isinstance(target, dict) or not isinstance(key, str):
        raise UndecidedError
    try:
        return target[key]
    except KeyError:
        raise UndecidedError from None


def has(target: Any, key: str) -> bool:
    """Whether a mapping has something under `key`.

    Raises:
        UndecidedError: it is of another type, or has no value.
    """
    if not isinstance(target, dict) or isinstance(target, Defaulting):
        raise UndecidedError
    return key in target
