"""The rotation entry of an audit record: it puts the files that rotation dropped on record in the chain itself."""

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, with_config

DropReason = Literal["age", "size"]

# A newer version may write keys that this one does not know.
_JSON = ConfigDict(extra="ignore")


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class Oldest:
    """The first record of the oldest remaining file."""

    sequence: int
    previous: str


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class Dropped:
    """Files that rotation deletes because of their `age`, or earlier because of the total `size`.

    The number of `records` and the times of the first and last are None if they cannot be read.
    """

    reason: DropReason
    files: int
    bytes: int
    records: int | None
    first: str | None
    last: str | None


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class Rotation:
    """The rotated files in a record: where the chain begins from now on, and what was dropped."""

    oldest: Oldest | None
    dropped: tuple[Dropped, ...] = ()
