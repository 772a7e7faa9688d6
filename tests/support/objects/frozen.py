"""Pods that raise an error when code writes to them."""

from typing import Any, NoReturn


def _refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the original was written to")


class FrozenObject(dict[str, Any]):
    """An object that cannot be written to; its copies can."""

    __setitem__ = __delitem__ = __ior__ = setdefault = update = pop = popitem = clear = _refuse


class FrozenList(list[Any]):
    """A list that cannot be written to; its copies can."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = extend = insert = _refuse
    pop = remove = clear = sort = reverse = _refuse


def frozen(value: Any) -> Any:
    """Return `value` with all its objects and lists frozen."""
    if isinstance(value, dict):
        return FrozenObject({key: frozen(inner) for key, inner in value.items()})
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value
