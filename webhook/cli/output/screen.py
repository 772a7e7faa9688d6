"""Consoles of rich that print control characters as escapes."""

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from webhook.cli.output.terminal import may_colour
from webhook.documents.text import printable, printable_lines


class SafeConsole(Console):
    """A console on standard output that sends only its own styles and line breaks as control sequences."""

    def __init__(self, *, width: int | None = None, markup: bool = True, soft_wrap: bool = False) -> None:
        super().__init__(
            file=sys.stdout,
            width=width,
            # Without a colour system there is no bold either: the output has no escape sequences at all.
            color_system="auto" if may_colour() else None,
            highlight=False,
            markup=markup,
            emoji=False,
            soft_wrap=soft_wrap,
        )

    def on_broken_pipe(self) -> None:
        """Leave a closed output to `main`, as for all other text. Called where the error is handled."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of `renderable` with escaped texts; control segments come from the console itself."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


_COLOURS = {"Feasible": "green", "Waiting": "yellow", "Unknown": "magenta"}
_COLOURS |= dict.fromkeys(("Infeasible", "Refused", "Invalid"), "red")
# Without a terminal, lines are not folded, and a table has the width of its cells.
_WIDE = 10_000


def text_console() -> Console:
    """Return a console on standard output, which uses colours and folds lines only on a terminal."""
    console = SafeConsole()
    return console if console.is_terminal else SafeConsole(width=_WIDE)


def marked(text: str) -> str:
    """Return `text` on one line, for use in rich's markup."""
    return escape(printable(text))


def print_lines(console: Console, lines: Iterable[str], indent: int = 2) -> None:
    """Print each of `lines`, which are no markup, unless it is empty; continuation lines keep the indent."""
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
