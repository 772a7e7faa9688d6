"""Progress of long work, on a terminal."""

import sys
import time
from collections.abc import Callable

from webhook.cli.terminal import echo, echo_progress

_SECONDS_BETWEEN = 0.2


class Progress:
    """Prints the progress of work to standard error a few times a second, if that is a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last = time.monotonic()
        self._is_shown = False

    def of(self, name: str) -> Callable[[int], None]:
        """Return a function to call with the number of placed pods of `name`."""

        def report(placed: int) -> None:
            self.show(f"{name}: {placed} placed")

        return report

    def show(self, text: str) -> None:
        """Print `text` in place of the previous text."""
        now = time.monotonic()
        if self._is_terminal and now - self._last >= _SECONDS_BETWEEN:
            self._last, self._is_shown = now, True
            echo_progress(text)

    def end(self) -> None:
        """End the line of the progress."""
        if self._is_shown:
            echo("", err=True)
            self._is_shown = False
