"""Waiting for the real world: ask again and again until it is so, or the deadline has passed."""

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

# The first pause, which each further one exceeds by half until the longest: most waits are short.
SHORTEST_PAUSE_SECONDS = 0.002
LONGEST_PAUSE_SECONDS = 0.05
DEADLINE_SECONDS = 30.0


class Stopwatch:
    """The seconds since it was made, for progress and for deadlines of programs that are not ours."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds until now."""
        return time.monotonic() - self._began


def wait_for(
    ask: Callable[[], _T | None], what: str | Callable[[], str], *, deadline_seconds: float = DEADLINE_SECONDS
) -> _T:
    """Return the first answer of `ask` that is neither None nor False.

    Raises:
        TimeoutError: there was none in time; says `what` was waited for.
    """
    end, pause = time.monotonic() + deadline_seconds, SHORTEST_PAUSE_SECONDS
    while True:
        answer = ask()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"{what if isinstance(what, str) else what()}: not within {deadline_seconds:g} s")
        time.sleep(pause)
        pause = min(1.5 * pause, LONGEST_PAUSE_SECONDS)
