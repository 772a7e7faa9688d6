"""Pods by class and row of the node, as arrays."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Self

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]

# The pods that a table has room for at least, beside its own.
_SPARE = 64


class _Buffer:
    """Memory for pairs of class and row; `used` of them belong to a table."""

    __slots__ = ("lock", "pairs", "used")

    def __init__(self, pairs: Codes, used: int) -> None:
        self.pairs, self.used, self.lock = pairs, used, Lock()


class PodRows:
    """Pods by class and row, unordered and immutable. A table with added pods shares the memory if possible.

    The memory has room for more pods after those of the longest table, so the cost of the next table depends only on
    the added pods. A table reads only its own length.
    """

    __slots__ = ("_buffer", "class_of", "row_of")

    def __init__(self, buffer: _Buffer, count: int) -> None:
        self._buffer = buffer
        self.class_of: Codes = buffer.pairs[0, :count]
        self.row_of: Codes = buffer.pairs[1, :count]

    @classmethod
    def of(cls, class_of: Codes, row_of: Codes) -> Self:
        """Return the pods of these classes in these rows."""
        count = len(class_of)
        pairs = np.empty((2, _with_room(count)), dtype=np.int32)
        pairs[0, :count], pairs[1, :count] = class_of, row_of
        return cls(_Buffer(pairs, count), count)

    def __len__(self) -> int:
        return len(self.class_of)

    def with_added(self, added: Sequence[tuple[int, int]]) -> Self:
        """Return the pods together with those `added`, given as (class, row)."""
        if not added:
            return self
        buffer, count = self._buffer, len(self)
        end = count + len(added)
        with buffer.lock:
            # Another table may have appended to this one already.
            is_free = buffer.used == count and end <= buffer.pairs.shape[1]
            if is_free:
                buffer.used = end
        if not is_free:
            buffer = self._copied(end)
        buffer.pairs[:, count:end] = np.array(added, dtype=np.int32).T
        return type(self)(buffer, end)

    def with_rows(self, rows: Sequence[int], added: Sequence[tuple[int, int]]) -> Self:
        """Return the pods with those in `rows` replaced by those `added`, given as (class, row)."""
        is_gone = self.row_of == rows[0] if len(rows) == 1 else np.isin(self.row_of, rows)
        return self._replaced(is_gone, added)

    def changed(self, counts: Mapping[tuple[int, int], int]) -> Self:
        """Return the pods with `counts` more of each class in each row. A negative count removes at most that many."""
        added = [place for place, count in counts.items() for _ in range(count)]
        left = {place: -count for place, count in counts.items() if count < 0}
        if not left:
            return self.with_added(added)
        places = _places(self.class_of, self.row_of)
        is_gone = np.isin(places, _places(*np.array([*left], dtype=np.int32).T))
        for at in np.flatnonzero(is_gone).tolist():
            place = int(self.class_of[at]), int(self.row_of[at])
            is_gone[at] = left[place] > 0
            left[place] -= 1
        return self._replaced(is_gone, added)

    def _replaced(self, is_gone: NDArray[np.bool_], added: Sequence[tuple[int, int]]) -> Self:
        """Return the pods with those in the mask `is_gone` replaced by those `added`. The mask is changed."""
        gone, count = np.flatnonzero(is_gone), len(self)
        if not len(gone):
            return self.with_added(added)
        end = count - len(gone) + len(added)
        buffer = self._copied(end)
        pairs = buffer.pairs
        if added:
            new, taken = np.array(added, dtype=np.int32).T, gone[: len(added)]
            pairs[:, taken] = new[:, : len(taken)]
            pairs[:, count:end] = new[:, len(taken) :]
            is_gone[taken] = False
        if end < count:
            # The last pods move to the places that are left.
            left = gone[len(added) :]
            pairs[:, left[left < end]] = pairs[:, end + np.flatnonzero(~is_gone[end:])]
        return type(self)(buffer, end)

    def _copied(self, end: int) -> _Buffer:
        count = len(self)
        pairs = np.empty((2, _with_room(max(end, count))), dtype=np.int32)
        pairs[:, :count] = self._buffer.pairs[:, :count]
        return _Buffer(pairs, end)


def _with_room(count: int) -> int:
    return count + count // 16 + _SPARE


def _places(class_of: Codes, row_of: Codes) -> NDArray[np.int64]:
    """Return one number for each pair of class and row."""
    return (class_of.astype(np.int64) << 32) | row_of
