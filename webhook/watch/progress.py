"""The resourceVersion that a watch has to reach after an interruption."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CatchUpTarget:
    """A view that has reached `version` is current as of `asked_seconds`; an empty version is not requested yet."""

    asked_seconds: float = 0.0
    version: str = ""

    def is_reached_by(self, version: str) -> bool:
        """Return true if `version` is at least as new. A resourceVersion that is not a number never matches."""
        return version.isdecimal() and self.version.isdecimal() and int(version) >= int(self.version)
