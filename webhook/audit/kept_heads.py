"""Compare the heads that are kept beside audit files with the records in them."""

from pathlib import PurePath

from webhook.audit.head import SUFFIX, ChainHead
from webhook.audit.reading import Entry
from webhook.documents.field import FieldError, invalid, required

REMEDY = "compare with a copy, or find the decision in the API server's own audit log"
NO_RECORD = f"no record has this hash: records at the end were cut off or altered, or a file is absent; {REMEDY}"


def compare(name: str, head: ChainHead, entry: Entry | None, emptied: set[PurePath]) -> FieldError | str | None:
    """Return the fault of the head file `name`, or a note on it, if there is one.

    `entry` is the record of the head's hash, None if no file has it. `emptied` are the files without records.
    """
    if entry is None:
        return _unseen(name, head, emptied)
    if entry.record.sequence != head.sequence:
        what = f"the record of this hash ({entry.place}) has the number {entry.record.sequence}"
        return invalid(name, head.sequence, f"altered: {what}; {REMEDY}")
    if not head.missed:
        return None
    what = "could not be written; standard error has what it took"
    return f"{name}: {count(head.missed)} after {entry.place} {what}"


def _unseen(name: str, head: ChainHead, emptied: set[PurePath]) -> FieldError:
    """Return the fault of files that lack the last record that the head file `name` refers to."""
    if (log := PurePath(name.removesuffix(SUFFIX))) in emptied:
        counts = f"is gone or empty, but {name} counts {count(head.sequence)}, the last {head.hash}"
        return required(str(log), f"{counts}: put the file back, or {REMEDY}; for a new log, delete {name}")
    return invalid(name, head.hash, f"the last record written, number {head.sequence}, is not there: {NO_RECORD}")


def count(records: int) -> str:
    """Return `1 record` or `2 records`; `records` if the number is unknown."""
    return "1 record" if records == 1 else f"{records} records" if records > 0 else "records"
