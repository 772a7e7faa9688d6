"""Verify that the records of audit files are complete, unaltered and in order.

Each record holds its own hash and the hash of the record before it. A record that is altered, removed or moved breaks
the chain. A chain by itself does not show that records were cut off at its end. A chain head shows this: a head that
the user saved elsewhere (`expected_heads`) or the head file of the writer (`kept_heads`). Without a head, a chain that
was rewritten as a whole cannot be detected.

Each file is read once and split into runs of records that follow one another. Then the runs are joined to chains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from webhook.audit.head import NO_RECORD, REMEDY, ChainHead, compare, count
from webhook.audit.lines import digest, stated_hash
from webhook.audit.reading import Entry, InvalidLine, oldest_files
from webhook.audit.record import FIRST, moment
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError, invalid, required


@dataclass(slots=True, eq=False)
class _Run:
    """Records of one file that follow one another without a break.

    `above` is the record before `start` in the file. `follows_unreadable` is true if there are lines between `above`
    and `start` that are not records; such lines explain a break. `rotated` is the last record that lists the files
    after a rotation.
    """

    file: str
    start: Entry
    end: Entry
    head: str
    replicas: set[str]
    opens_file: bool
    above: Entry | None
    follows_unreadable: bool
    records: int = 1
    rotated: Entry | None = None


class Chain:
    """Records that follow one another, across files."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self.runs = runs
        self.start, self.end, self.head = runs[0].start, runs[-1].end, runs[-1].head
        self.began = moment(self.start.record.time), self.start.record.sequence
        self.files = list(dict.fromkeys(run.file for run in runs))
        self.replicas = sorted({replica for run in runs for replica in run.replicas})
        self.records = sum(run.records for run in runs)
        self.rotated = next((run.rotated for run in reversed(runs) if run.rotated), None)

    def to_json(self) -> JsonObject:
        """Return the chain as `audit verify -o json` prints it. `complete`: it begins with the first record."""
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
    """The result of a verification. The log is intact if there are no faults; a note is unusual but no fault."""

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
    kept = kept_heads or {}
    verifier = _Verifier([*expected_heads, *(head.hash for head in kept.values())])
    names: list[str] = []
    for name, lines in files:
        names.append(name)
        verifier.read(name, lines)
    chains = verifier.connect(None if partial else oldest_files(names) | {*may_begin_later})
    notes, faults, unseen = verifier.notes, verifier.faults, verifier.unseen
    faults += [invalid("--head", head, NO_RECORD) for head in expected_heads if head in unseen]
    emptied = {*map(PurePath, names)} - {PurePath(run.file) for run in verifier.runs}
    for name, head in kept.items():
        found = compare(name, head, verifier.at_heads.get(head.hash), emptied)
        notes += [found] if isinstance(found, str) else []
        faults += [found] if isinstance(found, FieldError) else []
    if not verifier.runs and not faults:
        what = "holds no records" if names else "nothing could be read"
        faults.append(required(", ".join(names) or place, f"{what}, so nothing can be verified; {REMEDY}"))
    elif not (expected_heads or kept or faults):
        notes.append("without a head, records cut off at the end cannot be detected: give one with --head")
    return Verification(chains, notes, faults)


class _Verifier:
    """Collects the runs, notes and faults of all files."""

    def __init__(self, heads: Iterable[str]) -> None:
        self.notes: list[str] = []
        self.faults: list[FieldError] = []
        self.runs: list[_Run] = []
        self.unseen = set(heads)
        # The records that heads refer to, by hash.
        self.at_heads: dict[str, Entry] = {}
        # Places of the records reported as altered. They explain the breaks beside them.
        self._altered: set[str] = set()
        # Places of the records about a rotation, by the hash of the record after which the log begins since then.
        self._dropped_before: dict[str, str] = {}

    def read(self, file: str, lines: Iterable[Entry | InvalidLine]) -> None:
        """Split the file into runs, check each record, and check each break that can be checked within the file."""
        # By the hash of the last record. Several grow at once if lines are out of order or replicas share a file.
        growing: dict[str, _Run] = {}
        beginnings: set[str] = set()
        unreadable: list[InvalidLine] = []
        above: Entry | None = None
        for line in lines:
            if isinstance(line, InvalidLine):
                unreadable.append(line)
                continue
            record, head = line.record, self._check(line)
            run = growing.pop(record.previous, None)
            # If the chain continues after unreadable lines, they were never part of it.
            self._report_unreadable(unreadable, are_torn=run is not None or record.previous == FIRST)
            if run:
                self._note_missed(run.end, line)
                run.end, run.head, run.records = line, head, run.records + 1
                run.replicas.add(record.replica)
            else:
                opens_file = above is None and not unreadable
                run = _Run(file, line, line, head, {record.replica}, opens_file, above, bool(unreadable))
                self.runs.append(run)
                if head in beginnings:
                    self._fault(line, "duplicate record; delete this line")
                elif record.previous == FIRST and above:
                    self.notes.append(f"{line.place}: a new chain starts here: the process did not find the old one")
                beginnings.add(head)
            if record.rotation and record.rotation.oldest:
                run.rotated = line
                self._dropped_before[record.rotation.oldest.previous] = line.place
            growing[head], above, unreadable = run, line, []
        self._report_unreadable(unreadable, are_torn=False)

    def connect(self, may_begin_later: set[str] | None) -> list[Chain]:
        """Join runs to chains and check them. Those in `may_begin_later` (None: all files) may lack first records."""
        by_head = {run.head: run for run in self.runs}
        successors: dict[_Run, _Run] = {}
        roots: list[list[_Run]] = []
        for run in self.runs:
            previous = run.start.record.previous
            before = by_head.get(previous)
            if before and run.opens_file and before.file != run.file and before not in successors:
                successors[before] = run
                self._note_missed(before.end, run.start)
                continue
            roots.append([run])
            # A run that opens a file and follows no record is checked with its chain.
            is_in_place = previous == FIRST or run.follows_unreadable or (run.opens_file and not before)
            if not is_in_place and not self._is_explained(run.above, run.start):
                self._report_break(run, before)
        for runs in roots:
            while following := successors.get(runs[-1]):
                runs.append(following)
        chains = [Chain(runs) for runs in roots]
        for chain in chains:
            previous = chain.start.record.previous
            if chain.runs[0].opens_file and previous != FIRST and previous not in by_head:
                self._check_beginning(chain, chains, may_begin_later)
            files: set[str] = set()
            for before, run in pairwise(chain.runs):
                files.add(before.file)
                if run.file in files:
                    self._report_order(run.start, f"it follows {before.end.place}")
        return chains

    def _check(self, entry: Entry) -> str:
        """Return the computed hash of a record, and report a fault if the line states a different hash."""
        head = digest(entry.line)
        if head in self.unseen:
            self.unseen.discard(head)
            self.at_heads[head] = entry
        if (stated := stated_hash(entry.line)) != head:
            what = "its hash is not that of its content" if stated else "it does not end in its hash"
            self._altered.add(entry.place)
            self._fault(entry, f"altered: {what}; {REMEDY}")
        return head

    def _check_beginning(self, chain: Chain, chains: Sequence[Chain], may_begin_later: set[str] | None) -> None:
        """Report, as a note or a fault, that the record before the first one of a chain is missing.

        Rotation deletes whole files, the oldest first, and writes a record about it. It never deletes records between
        others.
        """
        start, sequence, rotated = chain.start, chain.start.record.sequence, chain.rotated
        older = [each for each in chains if {*chain.replicas} & {*each.replicas} and each.began < chain.began]
        last = max(older, key=lambda each: each.began).end if older else None
        oldest = rotated.record.rotation.oldest if rotated and rotated.record.rotation else None
        absent, remedy = f"{count(sequence - 1)} before", "rotation deleted the others"
        goes_on = f"{start.place}: the chain continues here:"
        was_kept = bool(oldest and oldest.sequence < sequence)
        if last:
            if not self._is_explained(last, start):
                self._report_gap(last, start)
        elif recorded_by := self._dropped_before.get(start.record.previous):
            self.notes.append(f"{goes_on} rotation dropped {absent} it, as {recorded_by} says")
        elif may_begin_later is None or (chain.runs[0].file in may_begin_later and not was_kept):
            self.notes.append(f"{goes_on} {absent} it, not in these files")
        elif not self._is_explained(None, start):
            if oldest and rotated and was_kept:
                absent = f"{count(sequence - oldest.sequence)} that rotation had left ({rotated.place}) before"
                remedy = "you deleted the others"
            self._fault(start, f"cut out: {absent} this one; give all files, or --partial where {remedy}")

    def _is_explained(self, before: Entry | None, start: Entry) -> bool:
        """Return whether the break is explained by an altered record at either side, so that no record is missing."""
        is_next = bool(before and before.place in self._altered and start.record.sequence <= before.record.sequence + 1)
        return is_next or start.place in self._altered

    def _report_break(self, run: _Run, before: _Run | None) -> None:
        """Report a run that does not follow the expected record.

        `before` ends in the record whose hash the run begins with.
        """
        start, above = run.start, run.above
        if before and before.file != run.file and run.opens_file:
            follows = f"follows {before.end.place}, as another file's first record does already"
            self._fault(start, f"{follows}; give each file once")
        elif before:
            self._report_order(start, f"it follows {before.end.place}")
        elif above and start.record.sequence > above.record.sequence:
            self._report_gap(above, start)
        else:
            self._report_order(start, "it does not follow the line above")

    def _report_gap(self, last: Entry, start: Entry) -> None:
        """Report two adjacent records, the second of which does not hold the hash of the first."""
        if missing := start.record.sequence - last.record.sequence - 1:
            self._fault(start, f"cut out: {count(missing)} between {last.place} and this one; {REMEDY}")
        else:
            self._fault(last, f"altered: its hash is not the one that {start.place} holds; {REMEDY}")

    def _report_order(self, start: Entry, follows: str) -> None:
        self._fault(start, f"out of order: {follows}; put the lines in the order of their sequence, or {REMEDY}")

    def _report_unreadable(self, lines: Iterable[InvalidLine], *, are_torn: bool) -> None:
        for line in lines:
            detail = f"altered: this line is no longer a record; {REMEDY}"
            if are_torn or line.cut_off:
                detail = "torn: the process ended, or the disk or pipe was full, while this line was written"
            self.faults.append(invalid(line.place, line.line[:40].decode("utf-8", "replace"), detail))

    def _note_missed(self, before: Entry, entry: Entry) -> None:
        """Add a note about records that could not be written between two adjacent records of a chain."""
        if (missed := entry.record.sequence - before.record.sequence - 1) > 0:
            detail = "before it could not be written here; standard error may have them"
            self.notes.append(f"{entry.place}: {count(missed)} {detail}")

    def _fault(self, entry: Entry, detail: str) -> None:
        self.faults.append(invalid(entry.place, entry.record.decision, detail))
