"""Read raw objects with the types of the API; type errors are collected, not raised."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid
from webhook.kube.quantity import MAX_INT64

_EMPTY: Mapping[str, Any] = {}

# The number of items between two calls of `check`.
_ITEMS_AT_ONCE = 64

T = TypeVar("T")


class Reader:
    """Reads the fields of one object and collects the first MOST_ERRORS errors.

    A missing field and null read as empty, as Go decodes them; so does a value of the wrong type, which is an error.
    `check` is called repeatedly while lists and maps are read, and can raise to stop.
    """

    __slots__ = ("_check", "errors")

    def __init__(self, check: Callable[[], object] | None = None) -> None:
        self.errors: list[FieldError] = []
        self._check = check

    def interruptible(self, items: Collection[T]) -> Iterable[T]:
        """Return `items`, with calls of `check` in between: a user can send a hundred thousand."""
        if self._check is None or len(items) < _ITEMS_AT_ONCE:
            return items
        return self._checking(items, self._check)

    def _checking(self, items: Iterable[T], check: Callable[[], object]) -> Iterator[T]:
        for number, item in enumerate(items, start=1):
            if number % _ITEMS_AT_ONCE == 0:
                check()
            yield item

    def error(self, path: str, value: object, detail: str) -> None:
        """Add the error that the field at `path` is invalid."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(invalid(path, value, detail))

    def object(self, value: Any, path: str) -> Mapping[str, Any]:
        """Return `value` as an object."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.error(path, value, "must be an object")
        return _EMPTY

    def objects(self, value: Any, path: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return `value` as a list of objects, each with its path."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.error(path, value, "must be a list")
            return []
        found: list[tuple[str, Mapping[str, Any]]] = []
        for index, item in enumerate(self.interruptible(value)):
            where = f"{path}[{index}]"
            if isinstance(item, dict):
                found.append((where, item))
            else:
                self.error(where, item, "must be an object")
                found.append((where, _EMPTY))
        return found

    def text(self, value: Any, path: str) -> str:
        """Return `value` as a string."""
        if isinstance(value, str):
            return value
        if value is not None:
            self.error(path, value, "must be text; put it in quotes")
        return ""

    def texts(self, value: Any, path: str) -> tuple[str, ...]:
        """Return `value` as a tuple of strings."""
        if value is None:
            return ()
        if not isinstance(value, list):
            self.error(path, value, "must be a list of texts")
            return ()
        for index, item in enumerate(self.interruptible(value)):
            if not isinstance(item, str):
                self.error(f"{path}[{index}]", item, "must be text; put it in quotes")
                return ()
        return tuple(value)

    def text_map(self, value: Any, path: str) -> Mapping[str, str]:
        """Return `value` as an object of strings, such as labels."""
        mapping: Mapping[Any, Any] = self.object(value, path)
        for key, item in self.interruptible(mapping.items()):
            if not (isinstance(key, str) and isinstance(item, str)):
                self.error(f"{path}[{key}]", item, "must be text; put it in quotes")
                return _EMPTY
        return mapping

    def integer(self, value: Any, path: str) -> int:
        """Return `value` as an integer of at most 64 bits."""
        if isinstance(value, int) and not isinstance(value, bool):
            if -MAX_INT64 <= value <= MAX_INT64:
                return value
            self.error(path, value, "must be an integer of 64 bits")
        elif value is not None:
            self.error(path, value, "must be an integer")
        return 0

    def boolean(self, value: Any, path: str) -> bool:
        """Return `value` as a boolean."""
        if value is not None and not isinstance(value, bool):
            self.error(path, value, "must be true or false")
        return value is True

    def finish(self) -> None:
        """Return if there are no errors.

        Raises:
            InvalidInput: holds every error, one for each field.
        """
        if self.errors:
            raise InvalidInput({error.path: error for error in self.errors}.values())
