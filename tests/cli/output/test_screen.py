"""Tables fit the terminal, have no empty columns, and no line ends in blanks."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from webhook.cli.output.screen import Column, Row, SafeConsole, print_lines, print_table
from webhook.cli.records.audit_text import LIST_COLUMNS

SCORES = (
    Column("node", least=20),
    Column("total", is_number=True),
    Column("NodeResourcesBalancedAllocation", is_number=True, drop=1),
    Column("TaintToleration", is_number=True, drop=300),
    Column("why not", least=30, folds=True),
)


def table(columns: tuple[Column, ...], *rows: tuple[str, ...], width: int | None = None) -> list[str]:
    """Return the lines of a table on a terminal of this width, None for a pipe."""
    out = io.StringIO()
    terminal = {} if width is None else {"width": width, "force_terminal": True, "color_system": None}
    print_table(Console(file=out, **terminal), columns, map(Row, rows))  # type: ignore[arg-type] # one type for all options
    return out.getvalue().splitlines()


def test_columns_that_are_zero_or_empty_everywhere_are_left_out() -> None:
    columns = (Column("a"), Column("b"), Column("c"), Column("d"))

    assert table(columns, ("0", "0", "-", "1"), ("0", "", "-", "0")) == ["a  d", "0  1", "0  0"]


def test_a_column_that_only_the_last_of_many_rows_fills_is_kept() -> None:
    shown = table((Column("a"), Column("b", is_number=True)), *[("x", "0")] * 1000, ("y", "5"))

    assert (shown[0], shown[-1]) == ("a  b", "y  5")


def test_the_last_of_many_rows_are_below_the_columns_of_the_first() -> None:
    shown = table((Column("a"), Column("b")), ("long name", "1"), *[("x", "2")] * 1000)

    assert (shown[0], shown[1], shown[-1]) == ("a          b", "long name  1", "x          2")


def test_lines_fold_under_their_own_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(SafeConsole(width=20), ["two words and three", "", "  - and a list of words"])

    assert capsys.readouterr().out.splitlines() == [
        "  two words and",
        "  three",
        "    - and a list of",
        "      words",
    ]


def test_a_table_without_rows_has_its_header() -> None:
    assert table((Column("a"), Column("b"))) == ["a  b"]


def test_titles_of_numbers_fold_first() -> None:
    shown = table(SCORES, ("node-1", "387", "87", "300", ""), ("node-2", "300", "0", "300", ""), width=60)

    assert shown == [
        "                     Node",
        "                Resources",
        "                 Balanced       Taint",
        "node    total  Allocation  Toleration",
        "node-1    387          87         300",
        "node-2    300           0         300",
    ]


def test_reasons_fold_and_names_are_cut() -> None:
    name, reason = "gpu-node-with-a-long-name-0001.example.com", "node(s) had untolerated taint(s), Insufficient cpu"

    assert table((SCORES[0], SCORES[-1]), (name, reason), width=60) == [
        "node                          why not",
        "gpu-node-with-a-long-name-0…  node(s) had untolerated",
        "                              taint(s), Insufficient cpu",
    ]


def test_a_line_that_fits_its_column_exactly_is_not_broken() -> None:
    column = Column("why", least=10, folds=True)

    assert table((column,), ("aaaa bbbbb cccccccc",), width=10) == ["why", "aaaa bbbbb", "cccccccc"]


def test_the_column_that_decides_least_is_left_out_and_named() -> None:
    shown = table(SCORES, ("node-1", "387", "87", "300", "x" * 100), width=66)

    assert "Balanced" not in "".join(shown[:-1])
    assert shown[-1] == "66 columns are too few for NodeResourcesBalancedAllocation; -o json has all"


def test_nothing_is_cut_in_a_pipe() -> None:
    long = "x" * 300

    assert table(SCORES, (long, "1", "2", "3", long))[1] == f"{long}      1{'2':>33}{'3':>17}  {long}"


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=60)


@pytest.mark.parametrize("width", [80, 100, 120])
@given(cells=st.lists(st.tuples(*[TEXT] * 4), max_size=3))
def test_no_line_of_the_audit_log_is_wider_than_the_terminal(
    width: int, cells: list[tuple[str, str, str, str]]
) -> None:
    rows = [
        ("2026-05-01T08:00:00Z", "Bypassed", kind, "Infeasible", "0.4", pod, f"01J9Z6{'A' * 20}", note + last)
        for kind, pod, note, last in cells
    ]

    shown = table(LIST_COLUMNS, *rows, width=width)

    assert [line for line in shown if cell_len(line) > width and "too few" not in line] == []
    assert [line for line in shown if line != line.rstrip(" ")] == []


def test_the_list_of_records_has_whole_pods_on_80_columns() -> None:
    pod = "team-llm-research/pretrain-70b-worker-0"
    cells = ("2026-03-01T08:00:00Z", "Unchanged", "training", "Infeasible", "12.3", pod, f"01J9Z6{'A' * 20}", "dry run")

    lines = table(LIST_COLUMNS, cells, width=80)

    rows = lines[1 : lines.index("80 columns are too few for TYPE, VERDICT, MS, NOTE; -o json has all")]
    begin = lines[0].index("POD")
    assert "".join(row[begin : begin + 19].strip() for row in rows) == pod


def test_names_of_wide_characters_are_cut_to_the_terminal() -> None:
    shown = table((SCORES[0], SCORES[-1]), ("训练节点" * 10, "node(s) had untolerated taint(s)"), width=60)

    assert max(map(cell_len, shown)) <= 60
    assert shown[1].startswith("训练节点训练节点")
    assert "…" in shown[1]


def test_the_console_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    """Also in a text that its caller did not escape."""
    SafeConsole().print(Text("a\x1b[31mred\x9b1m\x7f"))

    assert capsys.readouterr().out == "a\\x1b[31mred\\x9b1m\\x7f\n"
