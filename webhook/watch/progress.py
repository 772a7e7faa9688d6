"""How far a view that catches up with the API server still has to come."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CatchUpTarget:
    """A view that has come to `version` is current as of `asked_seconds`; without a version it is still to be asked."""

    asked_seconds: float = 0.0
    version: str = ""

    def is_reached_by(self, version: str) -> bool:
        """Whether `version` is known to be as new: resourceVersions are numbers, in API servers as they are."""
        return version.isdecimal() and self.version.isdecimal() and int(version) >= int(self.version)
