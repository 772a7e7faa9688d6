"""Intervals and timeouts of the live view."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Timing:
    """The intervals and timeouts of a reflector.

    The server ends a watch after 1 to 1.5 times `watch_seconds`, when all events have been sent. So the view is known
    to be current at this interval, even without events. Bookmarks only come about once a minute, and not at all for a
    kind that has not changed since the server started. `catching_up_seconds` is the length of watches after an
    interruption until the view is current again. A connection counts as lost if no byte arrives for a further
    `silence_seconds`.
    """

    watch_seconds: int = 24
    catching_up_seconds: int = 1
    silence_seconds: float = 10.0
    first_pause_seconds: float = 0.25
    first_pause_when_refused_seconds: float = 2.0
    """A kind that is not installed rarely comes within a second, and each attempt is a new connection."""
    longest_pause_seconds: float = 10.0
    longest_pause_when_refused_seconds: float = 60.0
    shortest_watch_seconds: float = 1.0
    page_size: int = 100
    """Decoding a page blocks the event loop: for 6 ms with 100 pods, for 37 ms with 500."""
    evidence_seconds: float = 60.0
    """The interval at which API groups and Leases, as signs of schedulers, and the release are read."""
    slice_seconds: float = 0.002
    """The time after which a reflector yields to the event loop, so that admissions are served."""


def timing_for(longest_age_seconds: float) -> Timing:
    """Return a timing with watches of 0.6 times this age, and at most 36 s, for a quiet cluster."""
    default = Timing()
    return replace(default, watch_seconds=max(1, min(default.watch_seconds, int(longest_age_seconds * 0.4))))


@dataclass(frozen=True, slots=True)
class CatchUpTarget:
    """A view that has reached `version` is current as of `asked_seconds`. `version` is "" until it is requested."""

    asked_seconds: float = 0.0
    version: str = ""

    def is_reached_by(self, version: str) -> bool:
        """Return true if `version`, a number, is at least as new as the target."""
        return version.isdecimal() and self.version.isdecimal() and int(version) >= int(self.version)
