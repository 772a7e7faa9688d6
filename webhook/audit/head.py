"""The head file next to the audit file: sequence and hash of the newest record, to detect a truncated log.

`PATH.head` is one short line that is overwritten in place after each write: `00000000000000000042 HASH`. After a crash
it may lag behind the audit file, but it is never ahead of it. While records cannot be written, a third field counts the
records that went to standard error, so that the next process skips their numbers and the gap stays visible. This line
can usually be written to a full disk, because its blocks are already allocated.
"""

import re
from pathlib import Path, PurePath
from typing import NamedTuple

from webhook.audit.reading import Entry
from webhook.documents.field import FieldError, invalid, required

SUFFIX = ".head"
REMEDY = "compare with a copy, or find the decision in the API server's own audit log"
NO_RECORD = f"no record has this hash: records at the end were cut off or altered, or a file is absent; {REMEDY}"

# The end of a longer line can be left behind a shorter one.
_LINE = re.compile(r"(\d{20}) ([0-9a-f]{64})(?: (\d{20}))?\n(?:\d{20}\n)?")


class ChainHead(NamedTuple):
    """Sequence and hash of the newest record, and how many records after it could not be written."""

    sequence: int
    hash: str
    missed: int = 0


def head_path(path: Path) -> Path:
    """Return the path of the head file of the audit file at `path`."""
    return path.with_name(path.name + SUFFIX)


def read_head(path: Path) -> ChainHead | None:
    """Return the head in the head file at `path`, or None if the file is missing or empty.

    Raises:
        ValueError: the file is not a head file.
        OSError: the file cannot be read.
    """
    try:
        return parse_head(path.read_bytes()[:200])
    except FileNotFoundError:
        return None


def parse_head(content: bytes) -> ChainHead | None:
    """Return the head in the content of a head file, or None if it is empty.

    Raises:
        ValueError: the content is not that of a head file.
    """
    if not content:
        return None
    line = _LINE.fullmatch(content.decode("utf-8", "replace"))
    if not line:
        raise ValueError("holds no sequence and hash")
    return ChainHead(int(line[1]), line[2], int(line[3] or 0))


def compare(name: str, head: ChainHead, entry: Entry | None, emptied: set[PurePath]) -> FieldError | str | None:
    """Return the fault of the head file `name` (FieldError), a note about it (str), or None.

    `entry` is the record with the hash of `head`, or None if no file has it. `emptied` are the files without records.
    """
    if entry is None and (log := PurePath(name.removesuffix(SUFFIX))) in emptied:
        counts = f"is gone or empty, but {name} counts {count(head.sequence)}, the last {head.hash}"
        return required(str(log), f"{counts}: put the file back, or {REMEDY}; for a new log, delete {name}")
    if entry is None:
        return invalid(name, head.hash, f"the last record written, number {head.sequence}, is not there: {NO_RECORD}")
    if entry.record.sequence != head.sequence:
        what = f"the record of this hash ({entry.place}) has the number {entry.record.sequence}"
        return invalid(name, head.sequence, f"altered: {what}; {REMEDY}")
    if not head.missed:
        return None
    what = "could not be written; standard error may have them"
    return f"{name}: {count(head.missed)} after {entry.place} {what}"


def count(records: int) -> str:
    """Return `1 record` or `2 records`, or `records` for a number below 1, which is unknown."""
    return "1 record" if records == 1 else f"{records} records" if records > 0 else "records"
