"""How the live view spends its time."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Timing:
    """How a reflector spends its time.

    A watch is ended by the server after `watch_seconds` to half as much again, in good order: all was told. So a view
    is proved current that often even where nothing happens; bookmarks come once in a minute or so, and none of a kind
    that has not changed since the server started. `catching_up_seconds` is the length of watches after a break, until
    the view is proved current again. `silence_seconds` longer without a byte, the connection counts as lost.
    """

    watch_seconds: int = 24
    catching_up_seconds: int = 1
    silence_seconds: float = 10.0
    first_pause_seconds: float = 0.25
    longest_pause_seconds: float = 10.0
    longest_pause_when_refused_seconds: float = 60.0
    shortest_watch_seconds: float = 1.0
    page_size: int = 100
    """A page is decoded in one go, during which nothing else happens: 6 ms for a hundred pods, 37 ms for 500."""
    slice_seconds: float = 0.002
    """After so long over objects, others get their turn on the loop: admissions go first."""


def timing_for(longest_age_seconds: float) -> Timing:
    """Return the timing with which the view of a quiet cluster is proved current well within `longest_age_seconds`.

    The longest watch takes 0.6 of it, and 36 s at most.
    """
    usual = Timing()
    return replace(usual, watch_seconds=max(1, min(usual.watch_seconds, int(longest_age_seconds * 0.4))))
