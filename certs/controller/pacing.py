"""Pauses of the certs controller: after failures, and when another client keeps undoing its changes. Pure."""

from collections import deque

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0
_FREE_WRITES = 12
_WINDOW_SECONDS = 60.0
_LONGEST_WRITE_PAUSE_SECONDS = 10.0


def backoff_seconds(failures: int, share: float) -> float:
    """Return the pause after `failures` in a row, doubled each time; its second half is scaled by `share`, 0 to 1."""
    longest: float = min(_FIRST_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_SECONDS)
    return longest * (0.5 + share / 2)


class WritePacing:
    """Limits the rate of writes: a rotation needs six, and only a fight with another client needs many in a minute."""

    def __init__(self) -> None:
        self._writes: deque[float] = deque()

    def note(self, now_seconds: float) -> None:
        """Note that a pass wrote, or tried to."""
        self._writes.append(now_seconds)

    def pause_seconds(self, now_seconds: float) -> float:
        """Return the least time until the next pass."""
        while self._writes and self._writes[0] <= now_seconds - _WINDOW_SECONDS:
            self._writes.popleft()
        excess = len(self._writes) - _FREE_WRITES
        return min(max(excess, 0) * 0.5, _LONGEST_WRITE_PAUSE_SECONDS)
