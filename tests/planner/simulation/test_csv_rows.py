"""Rows and cells of a CSV file, and the errors that name file, line and column."""

import re

import pytest

from placement_planner.simulation.csv_rows import CsvRow, csv_rows
from webhook.documents.field import InvalidInput


@pytest.mark.parametrize(
    ("text", "least", "wanted"),
    [
        ("0", 0, 0), ("1", 1, 1), ("0", 1, None), ("2", 3, None), ("3", 3, 3), (" 7 ", 0, 7), ("9" * 18, 0, 10**18 - 1),
        ("9" * 19, 0, None), ("0" * 18 + "1", 0, None), ("-1", 0, None), ("+1", 0, None), ("1.0", 0, None),
        ("٣", 0, None), ("", 0, None), (" ", 0, None), ("x", 0, None),
    ],
)  # fmt: skip
def test_a_count_is_a_short_whole_number_that_is_large_enough(text: str, least: int, wanted: int | None) -> None:
    row = CsvRow("t, line 2", {"n": text})
    if wanted is not None:
        assert row.count("n", least) == wanted
        return
    detail = f"must be a whole number, at least {least}" if text.strip() else "must not be empty"
    with pytest.raises(InvalidInput, match=f"^t, line 2, column n: .*{detail}$"):
        row.count("n", least)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0.0), ("1.5", 1.5), (" 2 ", 2.0), ("-0.1", None), ("-1", None), ("inf", None), ("nan", None), ("", None),
        ("x", None), ("1e3", 1000.0), ("1e999", None),
    ],
)  # fmt: skip
def test_seconds_are_finite_and_not_negative(text: str, wanted: float | None) -> None:
    row = CsvRow("t, line 2", {"s": text})
    if wanted is not None:
        assert row.seconds("s") == wanted
        return
    with pytest.raises(InvalidInput, match=r"^t, line 2, column s: "):
        row.seconds("s")


def test_a_cell_that_the_row_lacks_is_empty() -> None:
    with pytest.raises(InvalidInput, match=r"^t, column x: Required value: must not be empty$"):
        CsvRow("t", {}).text("x")
    assert str(CsvRow("t", {}).error("x", "no")) == 't, column x: Invalid value: ""; no'


def rows(data: bytes) -> list[CsvRow]:
    return [*csv_rows(data, "t.csv", ("a", "b"), ("c",))]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"a,b\n1,2\n", [("t.csv, line 2", {"a": "1", "b": "2"})]),
        (b"\xef\xbb\xbf b ,c,a\r\n1,2,3\r\n", [("t.csv, line 2", {"b": "1", "c": "2", "a": "3"})]),
        (
            b'a,b\n"1\n1",2\n3,4\n',
            [("t.csv, line 3", {"a": "1\n1", "b": "2"}), ("t.csv, line 4", {"a": "3", "b": "4"})],
        ),
    ],
)
def test_rows_have_their_cells_by_column_and_the_line_of_their_end(
    data: bytes, wanted: list[tuple[str, dict[str, str]]]
) -> None:
    assert rows(data) == [CsvRow(*each) for each in wanted]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "t.csv, line 1: Required value: must have the names of the columns"),
        (b"a,b\n", 't.csv: Invalid value: "no row"; must have a row below the header'),
        (b"a\n1\n", "t.csv, line 1, column b: Required value: the trace needs this column"),
        (b"a,b,d\n", 't.csv, line 1, column 3: Unsupported value: "d"; supported values: "a", "b", "c"'),
        (b"a,b,a\n", 't.csv, line 1, column 3: Duplicate value: "a"; each column is given once'),
        (b"a,b\n1,2\n1\n", 't.csv, line 3: Invalid value: "1 cells"; must have 2 cells, as the header has'),
        (b"a,b\n1,2,3\n", 't.csv, line 2: Invalid value: "3 cells"; must have 2 cells, as the header has'),
        (b"a,b\n\n", 't.csv, line 2: Invalid value: "0 cells"; must have 2 cells, as the header has'),
        (b'a,b\n1,"2\n', "t.csv, line "),
        (b'"a', "t.csv, line 1: "),
        (b"a,b\n1,\xff\n", "t.csv, line 2: Invalid value: "),
        (b"a\xff,b\n", "t.csv, line 1: Invalid value: "),
    ],
)
def test_an_error_names_the_first_line_that_is_wrong(data: bytes, error: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{re.escape(error)}"):
        rows(data)
