"""Raw objects read with the types that Kubernetes gives their fields; what does not fit is collected, not raised."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from webhook.kube.field import MOST_ERRORS, FieldError, InvalidInput, invalid
from webhook.kube.quantity import MAX_INT64

_EMPTY: Mapping[str, Any] = {}

# So many items are read between two looks at the clock.
_ITEMS_AT_ONCE = 64

T = TypeVar("T")


class Reader:
    """Reads fields of one object and keeps the errors found, the first MOST_ERRORS, so that they are told at once.

    A missing field and null read as empty, as Go decodes them; so does a value of the wrong type, beside its error.
    `check` is called again and again while lists and maps are read, and may raise to end the reading.
    """

    __slots__ = ("_check", "errors")

    def __init__(self, check: Callable[[], object] | None = None) -> None:
        self.errors: list[FieldError] = []
        self._check = check

    def interruptible(self, items: Collection[T]) -> Iterable[T]:
        """Return `items`, of which a user may have sent a hundred thousand, with calls of `check` in between."""
        if self._check is None or len(items) < _ITEMS_AT_ONCE:
            return items
        return self._checking(items, self._check)

    def _checking(self, items: Iterable[T], check: Callable[[], object]) -> Iterator[T]:
        for number, item in enumerate(items, start=1):
            if number % _ITEMS_AT_ONCE == 0:
                check()
            yield item

    def error(self, path: str, value: object, detail: str) -> None:
        """Note that the field at `path` is invalid."""
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(invalid(path, value, detail))

    def object(self, value: Any, path: str) -> Mapping[str, Any]:
        """`value` as an object."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.error(path, value, "must be an object")
        return _EMPTY

    def objects(self, value: Any, path: str) -> list[tuple[str, Mapping[str, Any]]]:
        """`value` as a list of objects, each with its path."""
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
        """`value` as text."""
        if isinstance(value, str):
            return value
        if value is not None:
            self.error(path, value, "must be text; put it in quotes")
        return ""

    def texts(self, value: Any, path: str) -> tuple[str, ...]:
        """`value` as a list of texts."""
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
        """`value` as an object of texts, such as labels."""
        mapping: Mapping[Any, Any] = self.object(value, path)
        for key, item in self.interruptible(mapping.items()):
            if not (isinstance(key, str) and isinstance(item, str)):
                self.error(f"{path}[{key}]", item, "must be text; put it in quotes")
                return _EMPTY
        return mapping

    def integer(self, value: Any, path: str) -> int:
        """`value` as an integer; the API has none beyond 64 bits."""
        if isinstance(value, int) and not isinstance(value, bool):
            if -MAX_INT64 <= value <= MAX_INT64:
                return value
            self.error(path, value, "must be an integer of 64 bits")
        elif value is not None:
            self.error(path, value, "must be an integer")
        return 0

    def boolean(self, value: Any, path: str) -> bool:
        """`value` as true or false."""
        if value is not None and not isinstance(value, bool):
            self.error(path, value, "must be true or false")
        return value is True

    def finish(self) -> None:
        """Return if everything read so far had its type.

        Raises:
            InvalidInput: something had not; holds every error, one for a field however often it was read.
        """
        if self.errors:
            raise InvalidInput({error.path: error for error in self.errors}.values())
