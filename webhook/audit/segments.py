"""Split an audit file into runs of records that follow one another without a break."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from webhook.audit.lines import digest, stated_hash
from webhook.audit.reading import Entry, InvalidLine
from webhook.audit.record import FIRST
from webhook.kube.field import FieldError, invalid

REMEDY = "compare with a copy, or find the decision in the API server's own audit log"


def count_text(records: int) -> str:
    """Return `1 record` or `2 records`; `records` if the number is unknown."""
    return "1 record" if records == 1 else f"{records} records" if records > 0 else "records"


@dataclass(slots=True, eq=False)
class Segment:
    """Records of one file that follow one another without a break."""

    file: str
    start: Entry
    opens_file: bool
    after: Entry | None
    """The record before `start` in the file."""
    follows_unreadable: bool
    """Lines before `start` are not records, which explains a break there."""
    end: Entry
    head: str
    replicas: set[str]
    records: int = 1
    rotated: Entry | None = None
    """The last record that lists the files after a rotation."""


@dataclass(slots=True)
class Findings:
    """Faults of the files, and notes about what is unusual but not a fault."""

    notes: list[str] = field(default_factory=list)
    faults: list[FieldError] = field(default_factory=list)
    altered: set[str] = field(default_factory=set)
    """Places of the records reported as altered. They explain the breaks beside them."""
    dropped_before: dict[str, str] = field(default_factory=dict)
    """Places of the records about a rotation, by the hash of the record after which the log begins since then."""

    def report_missed(self, before: Entry, entry: Entry) -> None:
        """Note the records between two neighbours of a chain that could not be written."""
        missed = entry.record.sequence - before.record.sequence - 1
        if missed > 0:
            detail = "before it could not be written here; standard error has what it took"
            self.notes.append(f"{entry.place}: {count_text(missed)} {detail}")

    def check_hash(self, entry: Entry, head: str) -> None:
        """Report a record whose own hash differs from `head`, the hash of its content."""
        if (stated := stated_hash(entry.line)) != head:
            what = "its hash is not that of its content" if stated else "it does not end in its hash"
            self.altered.add(entry.place)
            self.faults.append(invalid(entry.place, entry.record.decision, f"altered: {what}; {REMEDY}"))

    def report_unreadable(self, lines: Iterable[InvalidLine], *, chain_goes_on: bool) -> None:
        """Report each line that is not a record. If the chain continues after them, they were never part of it."""
        for line in lines:
            if chain_goes_on or line.cut_off:
                detail = "torn: the process ended, or the disk or pipe was full, while this line was written"
            else:
                detail = f"altered: this line is no longer a record; {REMEDY}"
            shown = line.line[:40].decode("utf-8", "replace")
            self.faults.append(invalid(line.place, shown, detail))


class SegmentReader:
    """Follows the chain through one file and removes the hashes it meets from `unseen`."""

    def __init__(self, file: str, findings: Findings, unseen: dict[str, None]) -> None:
        self._file = file
        self._findings = findings
        self._unseen = unseen
        self._segments: list[Segment] = []
        # By the hash of the last record. Several grow at once if lines are out of order or replicas share a file.
        self._growing: dict[str, Segment] = {}
        self._beginnings: set[str] = set()
        self._unreadable: list[InvalidLine] = []
        self._last: Entry | None = None

    def read(self, lines: Iterable[Entry | InvalidLine]) -> list[Segment]:
        """Return the segments of the file, in the order of their first records."""
        for line in lines:
            if isinstance(line, Entry):
                self._add(line)
            else:
                self._unreadable.append(line)
        self._findings.report_unreadable(self._unreadable, chain_goes_on=False)
        return self._segments

    def _add(self, entry: Entry) -> None:
        previous = entry.record.previous
        head = digest(entry.line)
        self._unseen.pop(head, None)
        self._findings.check_hash(entry, head)
        segment = self._growing.pop(previous, None)
        self._findings.report_unreadable(self._unreadable, chain_goes_on=segment is not None or previous == FIRST)
        if segment:
            self._findings.report_missed(segment.end, entry)
            segment.end, segment.head = entry, head
            segment.records += 1
            segment.replicas.add(entry.record.replica)
        else:
            segment = self._begin(entry, head)
        if entry.record.rotation and entry.record.rotation.oldest:
            segment.rotated = entry
            self._findings.dropped_before[entry.record.rotation.oldest.previous] = entry.place
        self._growing[head] = segment
        self._unreadable.clear()
        self._last = entry

    def _begin(self, entry: Entry, head: str) -> Segment:
        segment = Segment(
            file=self._file,
            start=entry,
            opens_file=self._last is None and not self._unreadable,
            after=self._last,
            follows_unreadable=bool(self._unreadable),
            end=entry,
            head=head,
            replicas={entry.record.replica},
        )
        if head in self._beginnings:
            self._findings.faults.append(
                invalid(entry.place, entry.record.decision, "duplicate record; delete this line")
            )
        elif entry.record.previous == FIRST and self._last:
            self._findings.notes.append(f"{entry.place}: a new chain starts here: the process did not find the old one")
        self._beginnings.add(head)
        self._segments.append(segment)
        return segment
