"""What an audit record says of the rotated files, so that the chain itself tells what rotation dropped."""

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, with_config

DropReason = Literal["age", "size"]

# A key that a newer version writes is no fault of the line.
_JSON = ConfigDict(extra="ignore")


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class Oldest:
    """The first record of the oldest file that rotation left."""

    sequence: int
    previous: str


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class Dropped:
    """Files that rotation deletes: for their `age`, or before that for the `size` of all.

    How many `records` they hold, and the times of the first and last, are None where they cannot be read.
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
    """What a record says of the rotated files: where the chain begins in them from now on, and what was dropped."""

    oldest: Oldest | None
    dropped: tuple[Dropped, ...] = ()
