"""Verify that the records of audit files are complete, unaltered and in order.

Each record holds its own hash and the hash of the record before it. A record that is altered, removed or moved breaks
the chain. A chain alone does not show that records were cut off at its end. Chain heads show that: one that was noted
elsewhere (`expected_heads`) or the one that the writer keeps beside the file (`kept_heads`). A chain that was rewritten
as a whole cannot be detected without such a head.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import PurePath

from webhook.audit.head import SUFFIX, ChainHead
from webhook.audit.reading import Entry, InvalidLine
from webhook.audit.record import FIRST, Oldest, moment
from webhook.audit.segments import REMEDY, Findings, Segment, SegmentReader, count_text
from webhook.kube.documents import JsonObject
from webhook.kube.field import FieldError, invalid, required

_CUT_OFF = "records at the end were cut off or altered, or a file is absent; " + REMEDY


@dataclass(slots=True, eq=False)
class Chain:
    """Records that follow one another, across files."""

    segments: list[Segment]

    @property
    def files(self) -> list[str]:
        """Return the files, in the order of the chain."""
        return list(dict.fromkeys(segment.file for segment in self.segments))

    @property
    def replicas(self) -> list[str]:
        """Return the replicas that wrote the records."""
        return sorted({replica for segment in self.segments for replica in segment.replicas})

    @property
    def records(self) -> int:
        """Return the number of records."""
        return sum(segment.records for segment in self.segments)

    @property
    def start(self) -> Entry:
        """Return the first record."""
        return self.segments[0].start

    @property
    def end(self) -> Entry:
        """Return the last record."""
        return self.segments[-1].end

    @property
    def head(self) -> str:
        """Return the hash of the last record."""
        return self.segments[-1].head

    @property
    def began(self) -> tuple[datetime, int]:
        """Return the key that orders the chains of one replica."""
        return moment(self.start.record.time), self.start.record.sequence

    @property
    def rotated(self) -> Entry | None:
        """Return the last record that lists the files after a rotation."""
        return next((segment.rotated for segment in reversed(self.segments) if segment.rotated), None)

    def to_json(self) -> JsonObject:
        """Return the chain as `audit verify -o json` prints it; `complete`: it begins with the first record ever."""
        return {
            "replicas": self.replicas,
            "files": self.files,
            "records": self.records,
            "complete": self.start.record.previous == FIRST,
            "first": self.start.record.time,
            "last": self.end.record.time,
            "head": self.head,
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. The log is intact if there are no faults."""

    chains: Sequence[Chain]
    notes: Sequence[str]
    faults: Sequence[FieldError]

    @property
    def records(self) -> int:
        """Return the number of records in all chains."""
        return sum(chain.records for chain in self.chains)

    def to_json(self) -> JsonObject:
        """Return the verification as `audit verify -o json` prints it."""
        return {
            "intact": not self.faults,
            "records": self.records,
            "chains": [chain.to_json() for chain in self.chains],
            "notes": list(self.notes),
            "faults": [str(fault) for fault in self.faults],
        }


def verify(
    files: Iterable[tuple[str, Iterable[Entry | InvalidLine]]],
    expected_heads: Sequence[str] = (),
    *,
    kept_heads: Mapping[str, ChainHead] | None = None,
    partial: bool = False,
    may_begin_later: Iterable[str] = (),
    place: str = "FILE",
) -> Verification:
    """Follow the chains through the files, in any order, of one or several replicas.

    Each of `expected_heads`, and of `kept_heads` (by head file), must be the hash of a record. A chain must begin with
    its first record, unless `partial` is set, or the chain begins in the oldest file that rotation kept or in one of
    `may_begin_later`. `place` names the source of the files, for the error if there is none. The memory grows with the
    number of unbroken runs of records, not with the number of records.
    """
    findings = Findings()
    kept = kept_heads or {}
    unseen = dict.fromkeys([*expected_heads, *(head.hash for head in kept.values())])
    names: list[str] = []
    segments: list[Segment] = []
    for name, lines in files:
        names.append(name)
        segments += SegmentReader(name, findings, unseen).read(lines)
    chains = _connect(segments, findings, None if partial else _oldest(names) | {*may_begin_later})
    no_record = f"no record has this hash: {_CUT_OFF}"
    findings.faults += [invalid("--head", head, no_record) for head in expected_heads if head in unseen]
    findings.faults += [_unseen_head(name, head, names, segments) for name, head in kept.items() if head.hash in unseen]
    if not segments and not findings.faults:
        detail = f"{'holds no records' if names else 'nothing could be read'}, so nothing can be verified; {REMEDY}"
        findings.faults.append(required(", ".join(names) or place, detail))
    elif not (expected_heads or kept or findings.faults):
        findings.notes.append("without a head, records cut off at the end cannot be detected: give one with --head")
    return Verification(chains, findings.notes, findings.faults)


def _unseen_head(name: str, head: ChainHead, names: Sequence[str], segments: Sequence[Segment]) -> FieldError:
    """Return the fault of a file set that lacks the last record that the head file `name` refers to."""
    log = PurePath(name.removesuffix(SUFFIX))
    if log in map(PurePath, names) and not any(PurePath(segment.file) == log for segment in segments):
        counts = f"is gone or empty, but {name} counts {count_text(head.sequence)}, the last {head.hash}"
        return required(str(log), f"{counts}: put the file back, or {REMEDY}; for a new log, delete {name}")
    detail = f"no record has this hash: {_CUT_OFF}"
    return invalid(name, head.hash, f"the last record written, number {head.sequence}, is not there: {detail}")


def _oldest(names: Iterable[str]) -> set[str]:
    """Return the file with the highest number of each set of rotated files (`PATH.1`, `PATH.2`, …)."""
    numbers: dict[str, int] = {}
    for name in names:
        base, _, number = name.rpartition(".")
        if number.isdecimal() and PurePath(base).name:
            numbers[base] = max(numbers.get(base, 0), int(number))
    return {f"{base}.{number}" for base, number in numbers.items()}


def _connect(segments: Sequence[Segment], findings: Findings, may_begin_later: set[str] | None) -> list[Chain]:
    """Return the chains over all files and report every break.

    In the files of `may_begin_later` (None: in all files) a chain may begin with a later record.
    """
    by_head = {segment.head: segment for segment in segments}
    successors: dict[Segment, Segment] = {}
    roots: list[Segment] = []
    torn_off: list[Segment] = []
    for segment in segments:
        previous = segment.start.record.previous
        before = by_head.get(previous)
        if before and segment.opens_file and before.file != segment.file and before not in successors:
            successors[before] = segment
            findings.report_missed(before.end, segment.start)
            continue
        roots.append(segment)
        if previous == FIRST:
            continue
        if segment.opens_file and not before:
            torn_off.append(segment)
        elif not segment.follows_unreadable and not _is_explained(segment.after, segment.start, findings):
            findings.faults.append(_break(segment, before))
    chains = [Chain(list(_from(root, successors))) for root in roots]
    for chain in chains:
        if chain.segments[0] in torn_off:
            _report_absent(chain, chains, findings, may_begin_later=may_begin_later)
        findings.faults += _revisits(chain)
    return chains


def _is_explained(before: Entry | None, start: Entry, findings: Findings) -> bool:
    """Return whether an altered neighbour explains the break: no record is missing between the two."""
    if start.place in findings.altered:
        return True
    return bool(before and before.place in findings.altered and start.record.sequence <= before.record.sequence + 1)


def _from(root: Segment, successors: dict[Segment, Segment]) -> Iterator[Segment]:
    segment: Segment | None = root
    while segment:
        yield segment
        segment = successors.get(segment)


def _break(segment: Segment, before: Segment | None) -> FieldError:
    """Return the fault before a segment that does not follow the expected record."""
    start = segment.start
    if before and before.file != segment.file and segment.opens_file:
        detail = f"follows {before.end.place}, as another file's first record does already; give each file once"
        return invalid(start.place, start.record.decision, detail)
    if not before and segment.after and start.record.sequence > segment.after.record.sequence:
        return _gap(segment.after, start)
    return _out_of_order(start, f"it follows {before.end.place}" if before else "it does not follow the line above")


def _revisits(chain: Chain) -> Iterator[FieldError]:
    """Yield a fault for each return of a chain to an earlier file: a record was moved to the start of another file."""
    files: set[str] = set()
    for before, segment in pairwise(chain.segments):
        files.add(before.file)
        if segment.file in files:
            yield _out_of_order(segment.start, f"it follows {before.end.place}")


def _out_of_order(start: Entry, follows: str) -> FieldError:
    detail = f"out of order: {follows}; put the lines in the order of their sequence, or {REMEDY}"
    return invalid(start.place, start.record.decision, detail)


def _gap(last: Entry, start: Entry) -> FieldError:
    """Return the fault between two records where the second does not hold the hash of the first."""
    missing = start.record.sequence - last.record.sequence - 1
    if missing == 0:
        detail = f"altered: its hash is not the one that {start.place} holds; {REMEDY}"
        return invalid(last.place, last.record.decision, detail)
    detail = f"cut out: {count_text(missing)} between {last.place} and this one; {REMEDY}"
    return invalid(start.place, start.record.decision, detail)


def _report_absent(
    chain: Chain, chains: Sequence[Chain], findings: Findings, *, may_begin_later: set[str] | None
) -> None:
    """Report that the record before the first one of a chain is missing.

    Rotation deletes whole files, the oldest first, and writes a record about it. It never leaves a gap between the
    remaining records. In the files of `may_begin_later` (None: in all files) a chain may begin with a later record.
    """
    start = chain.start
    replicas = set(chain.replicas)
    older = [other for other in chains if replicas & set(other.replicas) and other.began < chain.began]
    absent = f"{count_text(start.record.sequence - 1)} before"
    goes_on = f"{start.place}: the chain continues here:"
    if older:
        last = max(older, key=lambda other: other.began).end
        if not _is_explained(last, start, findings):
            findings.faults.append(_gap(last, start))
    elif recorded_by := findings.dropped_before.get(start.record.previous):
        findings.notes.append(f"{goes_on} rotation dropped {absent} it, as {recorded_by} says")
    elif may_begin_later is None or (chain.segments[0].file in may_begin_later and not _was_kept(chain)):
        findings.notes.append(f"{goes_on} {absent} it, not in these files")
    elif not _is_explained(None, start, findings):
        findings.faults.append(_cut_out(chain, absent))


def _was_kept(chain: Chain) -> Oldest | None:
    """Return where the log began after its last rotation, if records after that point are missing now."""
    rotation = chain.rotated.record.rotation if chain.rotated else None
    oldest = rotation.oldest if rotation else None
    return oldest if oldest and oldest.sequence < chain.start.record.sequence else None


def _cut_out(chain: Chain, absent: str) -> FieldError:
    start = chain.start
    remedy = "give all files, or --partial where rotation deleted the others"
    if chain.rotated and (kept := _was_kept(chain)):
        absent = (
            f"{count_text(start.record.sequence - kept.sequence)} that rotation had left ({chain.rotated.place}) before"
        )
        remedy = "give all files, or --partial where you deleted the others"
    return invalid(start.place, start.record.decision, f"cut out: {absent} this one; {remedy}")
