"""Whether the records of audit files are all there, unaltered and in order.

Each record holds the hash of the one before it, so that none can be altered, cut out or moved without a break behind
it. Two things a chain cannot tell by itself: whether records were cut off at its end (a head that was noted elsewhere
tells: `expected_heads`), and whether somebody wrote all of it anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from webhook.audit.query import Broken, Entry
from webhook.audit.record import FIRST, moment
from webhook.audit.segments import REMEDY, Findings, Segment, SegmentReader
from webhook.kube.documents import JsonObject
from webhook.kube.field import FieldError, invalid


@dataclass(slots=True, eq=False)
class Chain:
    """Records that follow one another, over all the files they stand in."""

    segments: list[Segment]

    @property
    def files(self) -> list[str]:
        """The files, in the order of the chain."""
        return list(dict.fromkeys(segment.file for segment in self.segments))

    @property
    def replicas(self) -> list[str]:
        """Who wrote the records."""
        return sorted({replica for segment in self.segments for replica in segment.replicas})

    @property
    def records(self) -> int:
        """How many there are."""
        return sum(segment.records for segment in self.segments)

    @property
    def start(self) -> Entry:
        """The first record."""
        return self.segments[0].start

    @property
    def end(self) -> Entry:
        """The last record."""
        return self.segments[-1].end

    @property
    def head(self) -> str:
        """Hash of the last record."""
        return self.segments[-1].head

    @property
    def began(self) -> tuple[datetime, int]:
        """What orders the chains of one replica."""
        return moment(self.start.record.time), self.start.record.sequence

    def to_json(self) -> JsonObject:
        """The chain as `audit verify -o json` prints it; `complete` if it begins with the first record ever."""
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
    """What was found. All is in order if there are no faults."""

    chains: Sequence[Chain]
    notes: Sequence[str]
    faults: Sequence[FieldError]

    @property
    def records(self) -> int:
        """How many there are in all chains."""
        return sum(chain.records for chain in self.chains)

    def to_json(self) -> JsonObject:
        """The verification as `audit verify -o json` prints it."""
        return {
            "intact": not self.faults,
            "records": self.records,
            "chains": [chain.to_json() for chain in self.chains],
            "notes": list(self.notes),
            "faults": [str(fault) for fault in self.faults],
        }


def verify(files: Iterable[tuple[str, Iterable[Entry | Broken]]], expected_heads: Sequence[str] = ()) -> Verification:
    """Follow the chains through the files, which may be given in any order and be those of several replicas.

    Each of `expected_heads` must be the hash of a record. Holds a few values for each unbroken run of records.
    """
    findings = Findings()
    unseen = dict.fromkeys(expected_heads)
    segments = [segment for name, lines in files for segment in SegmentReader(name, findings, unseen).read(lines)]
    chains = _connect(segments, findings)
    detail = "no record has this hash: records at the end were cut off or altered, or a file is absent; " + REMEDY
    findings.faults += [invalid("--head", head, detail) for head in unseen]
    return Verification(chains, findings.notes, findings.faults)


def _connect(segments: Sequence[Segment], findings: Findings) -> list[Chain]:
    """The chains over all files; tells every break."""
    by_head = {segment.head: segment for segment in segments}
    successors: dict[Segment, Segment] = {}
    roots: list[Segment] = []
    torn_off: list[Segment] = []
    for segment in segments:
        previous = segment.start.record.previous
        before = by_head.get(previous)
        if before and segment.opens_file and before.file != segment.file and before not in successors:
            successors[before] = segment
            findings.tell_missed(before.end, segment.start)
            continue
        roots.append(segment)
        if previous == FIRST:
            continue
        if segment.opens_file and not before:
            torn_off.append(segment)
        elif not segment.follows_unreadable:
            findings.faults.append(_break(segment, before))
    chains = [Chain(list(_from(root, successors))) for root in roots]
    for chain in chains:
        if chain.segments[0] in torn_off:
            _tell_absent(chain, chains, findings)
        findings.faults += _revisits(chain)
    return chains


def _from(root: Segment, successors: dict[Segment, Segment]) -> Iterator[Segment]:
    segment: Segment | None = root
    while segment:
        yield segment
        segment = successors.get(segment)


def _break(segment: Segment, before: Segment | None) -> FieldError:
    """What is wrong in front of a segment that does not follow the record it should."""
    start = segment.start
    if before and before.file != segment.file and segment.opens_file:
        detail = f"follows {before.end.place}, as another file's first record does already; give each file once"
        return invalid(start.place, start.record.decision, detail)
    if not before and segment.after and start.record.sequence > segment.after.record.sequence:
        return _gap(segment.after, start)
    return _out_of_order(start, f"it follows {before.end.place}" if before else "it does not follow the line above")


def _revisits(chain: Chain) -> Iterator[FieldError]:
    """A chain that comes back to a file: a record of the one was moved to the beginning of the other."""
    files: set[str] = set()
    for before, segment in pairwise(chain.segments):
        files.add(before.file)
        if segment.file in files:
            yield _out_of_order(segment.start, f"it follows {before.end.place}")


def _out_of_order(start: Entry, follows: str) -> FieldError:
    detail = f"out of order: {follows}; put the lines in the order of their sequence, or {REMEDY}"
    return invalid(start.place, start.record.decision, detail)


def _gap(last: Entry, start: Entry) -> FieldError:
    """What is wrong between two records of which the second does not hold the first one's hash."""
    missing = start.record.sequence - last.record.sequence - 1
    if missing == 0:
        detail = f"altered: its hash is not the one that {start.place} holds; {REMEDY}"
        return invalid(last.place, last.record.decision, detail)
    records = "1 record" if missing == 1 else f"{missing} records" if missing > 0 else "records"
    detail = f"cut out: {records} between {last.place} and this one; {REMEDY}"
    return invalid(start.place, start.record.decision, detail)


def _tell_absent(chain: Chain, chains: Sequence[Chain], findings: Findings) -> None:
    """Tell that the record before a chain's first is absent: a fault if older records of the same replica are there.

    Rotation deletes the oldest records; a gap between those that are there is none of its doing.
    """
    replicas = set(chain.replicas)
    older = [other for other in chains if replicas & set(other.replicas) and other.began < chain.began]
    if older:
        last = max(older, key=lambda other: other.began).end
        findings.faults.append(_gap(last, chain.start))
    else:
        findings.notes.append(f"{chain.start.place}: the chain starts at an earlier record, which was rotated away")
