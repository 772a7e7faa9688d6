"""Read raw objects with the types of the API. Type errors are collected instead of raised."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar

from msgspec import Struct

from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid
from webhook.kube.quantity import MAX_INT64

_EMPTY: Mapping[str, Any] = {}

# The number of items between two calls of `check`.
_ITEMS_AT_ONCE = 64

T = TypeVar("T")


# A Struct is made without a call of a Python function: a pod has dozens of objects.
class Reader(Struct, eq=False):
    """Reads the fields of one object, `raw`. Readers of nested objects collect their errors in the same `errors`.

    A missing field or null is read as empty, as Go decodes it. A value of the wrong type is also read as empty, and an
    error is collected. At most MOST_ERRORS errors are collected. `check` is called repeatedly while lists and maps are
    read, and can raise to stop the reading. `step` is the key or index of this object in the object `outer`.
    """

    raw: Mapping[str, Any]
    errors: list[FieldError] = []
    check: Callable[[], object] | None = None
    outer: "Reader | None" = None
    step: str = ""

    def at(self, key: str) -> str:
        """Return the path of the field `key`."""
        path = self.step if self.outer is None else self.outer.at(self.step)
        return f"{path}.{key}" if path else key

    def error(self, key: str, value: object, detail: str) -> None:
        """Add the error that `value` is invalid in the field `key`."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(invalid(self.at(key), value, detail))

    def interruptible(self, items: Collection[T]) -> Iterable[T]:
        """Return `items`, with calls of `check` between them, because a user can send a hundred thousand items."""
        if self.check is None or len(items) < _ITEMS_AT_ONCE:
            return items
        return self._checking(items, self.check)

    def _checking(self, items: Iterable[T], check: Callable[[], object]) -> Iterator[T]:
        for number, item in enumerate(items, start=1):
            if number % _ITEMS_AT_ONCE == 0:
                check()
            yield item

    def object(self, key: str) -> "Reader":
        """Return the reader of an object."""
        value = self.raw.get(key)
        if not isinstance(value, dict):
            if value is not None:
                self.error(key, value, "must be an object")
            value = _EMPTY
        return Reader(value, self.errors, self.check, self, key)

    def objects(self, key: str) -> "list[Reader]":
        """Return the readers of a list of objects."""
        value = self.raw.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.error(key, value, "must be a list")
            return []
        found: list[Reader] = []
        for index, item in enumerate(self.interruptible(value)):
            step = f"{key}[{index}]"
            if not isinstance(item, dict):
                self.error(step, item, "must be an object")
                item = _EMPTY
            found.append(Reader(item, self.errors, self.check, self, step))
        return found

    def objects_by_name(self, key: str) -> "Iterator[tuple[str, Reader]]":
        """Yield the names and the readers of an object of objects."""
        for name, value in self.object(key).raw.items():
            step = f"{key}[{name}]"
            if value is not None and not isinstance(value, dict):
                self.error(step, value, "must be an object")
                value = None
            yield str(name), Reader(value or _EMPTY, self.errors, self.check, self, step)

    def text(self, key: str) -> str:
        """Return a string."""
        value = self.raw.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.error(key, value, "must be text; put it in quotes")
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self.raw.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.error(key, value, "must be a list of texts")
            return ()
        for index, item in enumerate(self.interruptible(value)):
            if not isinstance(item, str):
                self.error(f"{key}[{index}]", item, "must be text; put it in quotes")
                return ()
        return tuple(value)

    def text_map(self, key: str) -> Mapping[str, str]:
        """Return an object of strings, such as labels."""
        mapping: Mapping[Any, Any] = self.object(key).raw
        for name, item in self.interruptible(mapping.items()):
            if not (isinstance(name, str) and isinstance(item, str)):
                self.error(f"{key}[{name}]", item, "must be text; put it in quotes")
                return _EMPTY
        return mapping

    def integer(self, key: str) -> int:
        """Return an integer of at most 64 bits."""
        value = self.raw.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            if -MAX_INT64 <= value <= MAX_INT64:
                return value
            self.error(key, value, "must be an integer of 64 bits")
        elif value is not None:
            self.error(key, value, "must be an integer")
        return 0

    def boolean(self, key: str) -> bool:
        """Return a boolean."""
        value = self.raw.get(key)
        if value is not None and not isinstance(value, bool):
            self.error(key, value, "must be true or false")
        return value is True

    def finish(self) -> None:
        """Check that there are no errors.

        Raises:
            InvalidInput: there are errors; contains all of them, one for each field.
        """
        if self.errors:
            raise InvalidInput({error.path: error for error in self.errors}.values())


def reading(read: Callable[[type[T], Reader], T]) -> Callable[[type[T], Mapping[str, Any]], T]:
    """Return a class method that calls `read` with a Reader of a raw object, and raises all of its errors."""

    @wraps(read)
    def of(cls: type[T], content: Mapping[str, Any]) -> T:
        reader = Reader(content)
        found = read(cls, reader)
        reader.finish()
        return found

    return of
