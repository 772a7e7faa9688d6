"""Semantic versions of ResourceSlices and device selectors."""

from semver import Version

_LONGEST = 256
_LARGEST = 2**64 - 1


def parse_semver(text: str) -> Version:
    """Return the version in `text`. Comparisons ignore build metadata.

    Raises:
        ValueError: it is not a semantic version 2.0.0, or one of its numbers needs more than 64 bits.

    Source: github.com/blang/semver/v4, Parse and Compare
    """
    if len(text) <= _LONGEST:
        version = Version.parse(text)
        # The library accepts numbers of any length.
        if max(version.major, version.minor, version.patch) <= _LARGEST:
            return version
    raise ValueError(f"must have at most {_LONGEST} characters, and numbers up to {_LARGEST}")


def is_semver(text: object) -> bool:
    """Return true if `text` is a semantic version."""
    try:
        parse_semver(text if isinstance(text, str) else "")
    except ValueError:
        return False
    return True
