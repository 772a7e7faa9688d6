"""A clock that stands still until a case moves it."""

import time

_TICK_SECONDS = 0.001


class Clock:
    """Takes the place of the clocks of `time` once it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def tick(self) -> None:
        """Let a millisecond pass, as between two pods of a burst."""
        self.seconds += _TICK_SECONDS

    def replace_clocks(self) -> None:
        """Take their place. Modules that are imported later know no others, not even as default arguments."""
        for name in ("monotonic", "perf_counter", "thread_time", "time"):
            setattr(time, name, self)


CLOCK = Clock()
