"""Rows of a CSV file with a header, and errors that name file, line and column."""

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webhook.documents.field import FieldError, InvalidInput, invalid, required, unsupported


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: its place, such as `trace.csv, line 2`, and its cells by column."""

    place: str
    cells: Mapping[str, str]

    def error(self, column: str, detail: str) -> InvalidInput:
        """Return the error of the cell in `column`."""
        return InvalidInput([invalid(f"{self.place}, column {column}", self.cells.get(column, ""), detail)])

    def cell(self, column: str) -> str:
        """Return the text of a cell without spaces around it, or an empty text if there is no such cell."""
        return self.cells.get(column, "").strip()

    def text(self, column: str) -> str:
        """Return the text of a cell that must not be empty.

        Raises:
            InvalidInput: the cell is empty.
        """
        if not (found := self.cell(column)):
            raise InvalidInput([required(f"{self.place}, column {column}", "must not be empty")])
        return found

    def seconds(self, column: str) -> float:
        """Return the non-negative number of seconds in a cell.

        Raises:
            InvalidInput: it is no such number.
        """
        try:
            found = float(self.text(column))
        except ValueError:
            raise self.error(column, "must be a number of seconds") from None
        if not math.isfinite(found) or found < 0:
            raise self.error(column, "must be a number of seconds, not negative")
        return found

    def count(self, column: str, least: int = 0) -> int:
        """Return the integer in a cell, which must be at least `least`.

        Raises:
            InvalidInput: it is no such number.
        """
        text = self.text(column)
        if not (text.isascii() and text.isdigit()) or int(text[:18]) < least or len(text) > 18:
            raise self.error(column, f"must be a whole number, at least {least}")
        return int(text)


def csv_rows(data: bytes, place: str, columns: Sequence[str], optional: Collection[str] = ()) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file that must have `columns` and can have the `optional` columns.

    Raises:
        InvalidInput: a column is missing, unknown or duplicated; a row is broken; or there are no rows.
    """
    reader = csv.reader(_text(data, place), strict=True)
    header = _read_header(reader, place)
    first = f"{place}, line 1"
    for number, name in enumerate(header):
        if name not in columns and name not in optional:
            raise InvalidInput([unsupported(f"{first}, column {number + 1}", name, (*columns, *optional))])
        if name in header[:number]:
            error = FieldError(f"{first}, column {number + 1}", "Duplicate value", name, "each column is given once")
            raise InvalidInput([error])
    for name in columns:
        if name not in header:
            raise InvalidInput([required(f"{first}, column {name}", "the trace needs this column")])
    rows = 0
    try:
        for cells in reader:
            where = f"{place}, line {reader.line_num}"
            if len(cells) != len(header):
                detail = f"must have {len(header)} cells, as the header has"
                raise InvalidInput([invalid(where, f"{len(cells)} cells", detail)])
            rows += 1
            yield CsvRow(where, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise InvalidInput([invalid(f"{place}, line {reader.line_num}", str(error), "must be CSV")]) from error
    if not rows:
        raise InvalidInput([invalid(place, "no row", "must have a row below the header")])


def _text(data: bytes, place: str) -> io.StringIO:
    try:
        return io.StringIO(data.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput([invalid(f"{place}, line {line}", error.reason, "must be UTF-8")]) from error


def _read_header(reader: Iterator[list[str]], place: str) -> list[str]:
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise InvalidInput([invalid(f"{place}, line 1", str(error), "must be CSV")]) from error
    if not header:
        raise InvalidInput([required(f"{place}, line 1", "must have the names of the columns")])
    return [name.strip() for name in header]
