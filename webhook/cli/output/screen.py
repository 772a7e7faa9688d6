"""Text on the screen: lines, and tables that fit the terminal, with control characters as escapes."""

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from webhook.cli.output.terminal import may_colour
from webhook.documents.text import printable, printable_lines

_COLOURS = {"Feasible": "green", "Waiting": "yellow", "Unknown": "magenta"}
_COLOURS |= dict.fromkeys(("Infeasible", "Refused", "Invalid"), "red")
# Without a terminal, lines are not folded, and a table has the width of its cells.
_WIDE = 10_000
# Rows are measured and printed in blocks, so that a long table starts at once and needs little memory.
_BLOCK_ROWS = 1000
_EMPTY = ("", "0", "-")
_GAP = 2
_WORDS = re.compile(r"[A-Z]*[a-z0-9]*|.")


class SafeConsole(Console):
    """A console on standard output that sends only its own styles and line breaks as control sequences."""

    def __init__(self, *, width: int | None = None, soft_wrap: bool = False) -> None:
        super().__init__(
            file=sys.stdout,
            width=width,
            # Without a colour system there is no bold either: the output has no escape sequences at all.
            color_system="auto" if may_colour() else None,
            highlight=False,
            emoji=False,
            soft_wrap=soft_wrap,
        )

    def on_broken_pipe(self) -> None:
        """Re-raise the error of a closed output, which `main` handles. rich calls this in its error handler."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of `renderable` with escaped texts; control segments come from the console itself."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


def text_console() -> Console:
    """Return a console on standard output, which uses colours and folds lines only on a terminal."""
    console = SafeConsole()
    return console if console.is_terminal else SafeConsole(width=_WIDE)


def marked(text: str) -> str:
    """Return `text` on one line, escaped for use in rich's markup."""
    return escape(printable(text))


def print_lines(console: Console, lines: Iterable[str], indent: int = 2) -> None:
    """Print the non-empty ones of `lines` as plain text. Continuation lines keep the indent."""
    for line in filter(None, lines):
        text = line.lstrip(" -")
        hanging = indent + len(line) - len(text)
        first, *others = Text(printable(text)).wrap(console, max(console.width - hanging, 1))
        console.print(" " * indent + marked(line[: len(line) - len(text)] + first.plain.rstrip()))
        for each in others:
            console.print(" " * hanging + marked(each.plain.rstrip()))


def coloured(verdict: str) -> str:
    """Return a verdict in its colour, as rich's markup."""
    return f"[{_COLOURS[verdict]}]{verdict}[/{_COLOURS[verdict]}]"


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its `title`.

    On a narrow terminal, the title of a column of numbers folds between words. The cells of a column of text are folded
    if `folds` is true, or else cut to no less than `least` characters (0: never cut). If that is not enough, columns
    are left out, the one with the smallest `drop` first (0: never left out).
    """

    title: str
    is_number: bool = False
    least: int = 0
    folds: bool = False
    drop: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, and its style on a terminal."""

    cells: Sequence[str]
    style: str = ""


def print_table(console: Console, columns: Sequence[Column], rows: Iterable[Row], *, indent: int = 0) -> None:
    """Print a table without the columns that are empty or zero in all rows.

    Without a terminal, no cell is cut or folded. The width of a column is that of the cells in the first thousand rows;
    wider cells of later rows exceed it.
    """
    remaining = iter(rows)
    block, following = _block(remaining), _block(remaining)
    if not following:
        columns, block = _without_empty(columns, block)
    cell_widths, left_out, is_first = [0] * len(columns), list[str](), True
    while block or is_first:
        cell_widths = [max([width, *(cell_len(row.cells[n]) for row in block)]) for n, width in enumerate(cell_widths)]
        widths = _widths(columns, cell_widths, console.width - indent if console.is_terminal else None)
        left_out += [each.title for each, width in zip(columns, widths, strict=True) if not width]
        if is_first:
            _print_rows(console, columns, widths, [Row(_titles(columns, widths), "bold")], indent)
        _print_rows(console, columns, widths, block, indent)
        block, following, is_first = following, _block(remaining), False
    if left_out:
        shown = ", ".join(dict.fromkeys(left_out))
        print_line(console, f"{' ' * indent}{console.width} columns are too few for {shown}; -o json has all", "dim")


def print_line(console: Console, line: str, style: str = "") -> None:
    """Print `line` as it is, in the style on a terminal."""
    line = printable(line)
    if console.is_terminal:
        console.print(Text(line, style), soft_wrap=True)
    else:
        console.file.write(line + "\n")


def _block(rows: Iterator[Row]) -> list[Row]:
    return [replace(row, cells=[printable(cell) for cell in row.cells]) for row in itertools.islice(rows, _BLOCK_ROWS)]


def _without_empty(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Sequence[Column], list[Row]]:
    kept = [n for n in range(len(columns)) if n == 0 or not rows or any(row.cells[n] not in _EMPTY for row in rows)]
    return [columns[n] for n in kept], [replace(row, cells=[row.cells[n] for n in kept]) for row in rows]


def _widths(columns: Sequence[Column], cell_widths: Sequence[int], width: int | None) -> list[int]:
    """Return the widths of the columns that together fit into `width` characters."""
    whole = [max(cells, cell_len(each.title)) for each, cells in zip(columns, cell_widths, strict=True)]
    if width is None or _total(whole) <= width:
        return whole
    narrow = [
        max(cells, *map(cell_len, _words(each))) if each.is_number else widest
        for each, cells, widest in zip(columns, cell_widths, whole, strict=True)
    ]
    found = _narrowed(columns, narrow, width)
    for n in sorted((n for n, each in enumerate(columns) if each.drop), key=lambda n: columns[n].drop):
        if _total(found) <= width:
            break
        narrow[n] = 0
        found = _narrowed(columns, narrow, width)
    return found


def _narrowed(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Return the widths after narrowing the folded columns, then the other columns, the widest first."""
    found = list(widths)
    flexible = [n for n, each in enumerate(columns) if each.least and found[n]]
    for n in sorted(flexible, key=lambda n: (not columns[n].folds, -found[n])):
        found[n] = max(min(columns[n].least, found[n]), found[n] - max(_total(found) - width, 0))
    return found


def _total(widths: Sequence[int]) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + _GAP * (len(shown) - 1)


def _words(column: Column) -> list[str]:
    return _WORDS.findall(column.title) or [""]


def _titles(columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    titles = []
    for column, width in zip(columns, widths, strict=True):
        lines = [""]
        for word in _words(column):
            if cell_len(lines[-1] + word) > width:
                lines.append("")
            lines[-1] += word
        titles.append("\n".join(lines) if column.is_number else column.title)
    height = max(title.count("\n") for title in titles)
    return ["\n" * (height - title.count("\n")) + title for title in titles]


def _print_rows(
    console: Console, columns: Sequence[Column], widths: Sequence[int], rows: Iterable[Row], indent: int
) -> None:
    for row in rows:
        shown = [each for each in zip(columns, widths, row.cells, strict=True) if each[1]]
        pieces = [_pieces(column, cell, width) for column, width, cell in shown]
        for cells in itertools.zip_longest(*pieces, fillvalue=""):
            padded = [
                " " * (width - cell_len(cell)) + cell if column.is_number else set_cell_size(cell, width)
                for cell, (column, width, _) in zip(cells, shown, strict=True)
            ]
            print_line(console, (" " * indent + (" " * _GAP).join(padded)).rstrip(), row.style)


def _pieces(column: Column, cell: str, width: int) -> list[str]:
    """Return the lines of a cell: one, cut to `width`, unless the column folds."""
    if column.is_number or "\n" in cell:
        return cell.split("\n")
    if cell_len(cell) <= width:
        return [cell]
    if not column.folds:
        return [set_cell_size(cell, width - 1).rstrip() + "…"]
    lines = [""]
    for word in cell.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines += chop_cells(word, width)
    return [line for line in lines if line]
