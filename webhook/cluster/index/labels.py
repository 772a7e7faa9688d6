"""Index of the labels and taints of nodes: a value is evaluated once, not for each node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.kube.pod.taints import Taint
from webhook.kube.selectors import label_matches, parse_integer

Mask = NDArray[np.bool_]
DomainCodes = NDArray[np.intp]


class _Column:
    """One label key: `codes[row]` is the code of the node's value in `values`, -1 if it has none."""

    __slots__ = ("_held", "_integers", "codes", "values")

    def __init__(self, values: Mapping[str, int], codes: NDArray[np.intp]) -> None:
        self.values = values
        self.codes = codes
        self._integers: tuple[NDArray[np.int64], Mask] | None = None
        self._held: frozenset[str] | None = None

    @property
    def integers(self) -> tuple[NDArray[np.int64], Mask]:
        """Return the values as integers, and a mask of the values that are integers."""
        # Parsed once, since a pod can have a thousand requirements. Not a cached_property: in Python 3.11 all columns
        # share its lock, so one thread would wait for another. Two threads that both parse get equal results.
        if self._integers is None:
            parsed = [parse_integer(value) for value in self.values]
            numbers = np.array([number or 0 for number in parsed], dtype=np.int64)
            self._integers = numbers, np.array([number is not None for number in parsed], dtype=np.bool_)
        return self._integers

    @property
    def held(self) -> frozenset[str]:
        # Kept like `integers`: each pod that names a product asks for those of the nodes.
        if self._held is None:
            codes = set(self.codes.tolist())
            self._held = frozenset(value for value, code in self.values.items() if code in codes)
        return self._held


class Domains(NamedTuple):
    """The domain number of each node, -1 for a node without a domain, and the number of domains."""

    codes: NDArray[np.intp]
    size: int


class LabelColumns:
    """The labels of nodes in columns, so that a requirement is evaluated for all nodes at once."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, labels: Iterable[Mapping[str, str]]) -> None:
        rows = list(labels)
        values: dict[str, dict[str, int]] = {}
        codes: dict[str, NDArray[np.intp]] = {}
        for row, node_labels in enumerate(rows):
            for key, value in node_labels.items():
                if key not in values:
                    values[key] = {}
                    codes[key] = np.full(len(rows), -1, dtype=np.intp)
                known = values[key]
                codes[key][row] = known.setdefault(value, len(known))
        self._rows = len(rows)
        self._columns = {key: _Column(values[key], codes[key]) for key in values}

    def with_keys(self, keys: Collection[str], labels: Iterable[Mapping[str, str]]) -> "LabelColumns":
        """Return the columns of `labels`, which differ only in `keys`; the other columns are shared."""
        renewed = LabelColumns({key: each[key] for key in keys if key in each} for each in labels)
        kept = {key: column for key, column in self._columns.items() if key not in keys}
        renewed._columns = kept | renewed._columns
        return renewed

    def with_column(self, key: str, values: Iterable[str], codes: DomainCodes) -> "LabelColumns":
        """Return the columns with the label `key` added: `codes[row]` is the position in `values`, or -1 without it."""
        added = LabelColumns(())
        added._rows = self._rows
        added._columns = {**self._columns, key: _Column({value: code for code, value in enumerate(values)}, codes)}
        return added

    def with_rows_moved(self, source: NDArray[np.intp]) -> "LabelColumns":
        """Return the columns with row `source[n]` as row n, without labels if `source[n]` is -1."""
        moved = LabelColumns(())
        moved._rows = len(source)
        for key, column in self._columns.items():
            codes = np.append(column.codes, -1)[source]
            if (codes >= 0).any():
                moved._columns[key] = _Column(column.values, codes)
        return moved

    @property
    def count(self) -> int:
        """Return the number of nodes."""
        return self._rows

    def has(self, key: str) -> bool:
        """Return whether a node has the label `key`."""
        return key in self._columns

    def values(self, key: str) -> frozenset[str]:
        """Return the values of the label `key` that nodes have."""
        column = self._columns.get(key)
        return column.held if column is not None else frozenset()

    def domains(self, key: str) -> Domains:
        """Return the topology domains of the label `key`."""
        column = self._columns.get(key)
        if column is None:
            return Domains(np.full(self._rows, -1, dtype=np.intp), 0)
        return Domains(column.codes, len(column.values))

    def paths(self, keys: Sequence[str], others: Sequence[str] = ()) -> tuple[DomainCodes, tuple[tuple[str, ...], ...]]:
        """Return the domain number of each node, and the values of `keys` that name each domain.

        A node without one of the labels `keys` and `others` is in no domain: its number is -1. Some domains may have no
        node.
        """
        codes, values = self._paths(keys)
        for key in others:
            codes = np.where(self.domains(key).codes >= 0, codes, -1)
        return codes, values

    def _paths(self, keys: Sequence[str]) -> tuple[DomainCodes, tuple[tuple[str, ...], ...]]:
        columns = [self._columns.get(key) for key in keys]
        if any(column is None for column in columns):
            return np.full(self._rows, -1, dtype=np.intp), ()
        known = [column for column in columns if column is not None]
        if len(known) == 1:
            return known[0].codes, tuple((value,) for value in known[0].values)
        stacked = np.stack([column.codes for column in known], axis=1)
        rows = (stacked >= 0).all(axis=1)
        unique, inverse = np.unique(stacked[rows], axis=0, return_inverse=True)
        codes = np.full(self._rows, -1, dtype=np.intp)
        codes[rows] = inverse.reshape(-1)
        names = [tuple(column.values) for column in known]
        return codes, tuple(
            tuple(values[code] for values, code in zip(names, path, strict=True)) for path in unique.tolist()
        )

    def matches(self, key: str, operator: str, values: Sequence[str]) -> Mask:
        """Return a mask of the rows that satisfy the requirement, like `webhook.kube.selectors.requirement_matches`."""
        column = self._columns.get(key)
        if column is None:
            return np.full(self._rows, label_matches(operator, values, None))
        if operator == "In" and len(values) == 1:
            # For an unknown value, -2 is a code that no node has.
            found: Mask = column.codes == column.values.get(values[0], -2)
            return found
        if operator in ("Exists", "DoesNotExist"):
            return (column.codes >= 0) == (operator == "Exists") if not values else np.zeros(self._rows, dtype=np.bool_)
        answers = np.empty(len(column.values) + 1, dtype=np.bool_)
        answers[-1] = label_matches(operator, values, None)
        if operator in ("In", "NotIn"):
            # With a key like kubernetes.io/hostname each node has its own value: look up the few requested values.
            answers[:-1] = operator == "NotIn" and bool(values)
            answers[[column.values[value] for value in values if value in column.values]] = operator == "In"
        else:
            answers[:-1] = _compared(operator, values, column)
        return answers.take(column.codes)


def _compared(operator: str, values: Sequence[str], column: _Column) -> Mask:
    """Return a mask of the values that `Gt` or `Lt` matches; an unknown operator matches none."""
    bound = parse_integer(values[0]) if len(values) == 1 and operator in ("Gt", "Lt") else None
    if bound is None:
        return np.zeros(len(column.values), dtype=np.bool_)
    numbers, are_numbers = column.integers
    return are_numbers & (numbers > bound if operator == "Gt" else numbers < bound)


@dataclass(frozen=True, slots=True)
class TaintClasses:
    """The distinct sets of taints, which are few. `classes[class_of[row]]` are the taints of the node in `row`."""

    classes: tuple[tuple[Taint, ...], ...]
    class_of: NDArray[np.intp]
    distinct: frozenset[Taint] = frozenset()
    """All taints of all classes."""

    @classmethod
    def of(cls, taints: Iterable[tuple[Taint, ...]]) -> "TaintClasses":
        """Return the classes of nodes with these taints, in rows."""
        classes: dict[tuple[Taint, ...], int] = {}
        class_of = [classes.setdefault(each, len(classes)) for each in taints]
        distinct = frozenset(taint for each in classes for taint in each)
        return cls(tuple(classes), np.array(class_of, dtype=np.intp), distinct)

    def classes_with(self, taints: Iterable[Taint]) -> list[bool]:
        """Return for each class true if it has one of `taints`."""
        wanted = frozenset(taints)
        return [not wanted.isdisjoint(each) for each in self.classes]
