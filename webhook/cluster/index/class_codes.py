"""Integer codes for a value, such as a label, of the classes of pods that have one."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask

_SMALLEST = 8


class ClassCodes:
    """The classes of pods that have a value: their numbers in ascending order, and the codes of their values.

    One thread writes at a time while others read. A value is stored before a class with this value, and nothing is
    removed. Users can use any number of labels, so a label only takes memory for the classes that have it.
    """

    __slots__ = ("_columns", "_length", "values")

    def __init__(self) -> None:
        self._columns: NDArray[np.int32] = np.empty((2, _SMALLEST), dtype=np.int32)
        self._length = 0
        self.values: dict[str, int] = {}

    def copy(self) -> "ClassCodes":
        """Return a copy; codes that are added to it are not added to this object."""
        other = ClassCodes()
        other._columns, other._length, other.values = self._columns.copy(), self._length, dict(self.values)
        return other

    def put(self, number: int, value: str) -> None:
        """Store `value` for the class `number`, which must be higher than those of earlier calls."""
        length = self._length
        if length == self._columns.shape[1]:
            grown = np.empty((2, 2 * length), dtype=np.int32)
            grown[:, :length] = self._columns
            self._columns = grown
        self._columns[:, length] = number, self.values.setdefault(value, len(self.values))
        self._length = length + 1

    def among(self, wanted: Iterable[str], count: int) -> Mask:
        """Return a mask of the first `count` classes that have one of the `wanted` values."""
        answers = np.zeros(count, dtype=np.bool_)
        numbers, codes = self._below(count)
        # `found` is sized last, since another thread can add values and codes: every code read before has a value.
        places = [self.values[value] for value in wanted if value in self.values]
        found = np.zeros(len(self.values), dtype=np.bool_)
        found[places] = True
        answers[numbers] = found[codes]
        return answers

    def present(self, count: int) -> Mask:
        """Return a mask of the first `count` classes that have a value."""
        answers = np.zeros(count, dtype=np.bool_)
        answers[self._below(count)[0]] = True
        return answers

    def is_any_present(self, count: int) -> bool:
        """Return whether one of the first `count` classes has a value."""
        # The numbers increase.
        return self._length > 0 and int(self._columns[0, 0]) < count

    def _below(self, count: int) -> NDArray[np.int32]:
        # The length is read first: the columns have at least that many entries.
        length = self._length
        columns = self._columns[:, :length]
        return columns[:, : int(columns[0].searchsorted(count))]
