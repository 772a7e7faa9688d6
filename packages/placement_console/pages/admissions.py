"""The page Admissions: audit records by time, one decision in detail, and the node to which its pod is bound.

The records are from audit files or, without files, from the logs of the replicas in a live cluster.
"""

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import orjson

from placement_console.page import Asked, Endpoint, NotFoundError, Query, Sources
from webhook.audit.reading import Entry
from webhook.audit.record import AuditRecord, moment
from webhook.audit.sources import Sources as AuditSources
from webhook.cli.output.terminal import remarks_taken
from webhook.cli.records.audit_following import BrokenLines
from webhook.cli.records.audit_source import Source
from webhook.cli.records.replica_logs import ReplicaSelection
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired

_MOST_ROWS, _MOST_REPORTED, _MOST_SLOWEST, _MOST_CHOICES = 500, 50, 10, 30
_BUCKETS = 60
_CHECKED_EACH = 1000
_PATH = "/api/admissions/decision"
# Of replicas, only the last records are read: their logs can hold days.
_OF_REPLICAS = timedelta(hours=6)


def endpoints(sources: Sources) -> Sequence[Endpoint]:
    """Return the endpoints of the page."""
    admissions = Admissions(sources)
    return (
        Endpoint("/api/admissions", admissions.listed, is_costly=True, reported=admissions.reported),
        Endpoint(_PATH, admissions.decision, is_costly=True, reported=admissions.newest),
    )


@dataclass(slots=True)
class _Counts:
    """The counts of the records in one pass."""

    total: int = 0
    times: list[tuple[float, str]] = field(default_factory=list)
    """Seconds and outcome of each selected record."""
    chosen: dict[str, Counter[str]] = field(default_factory=dict)
    bound: Counter[str] = field(default_factory=Counter)
    """`predicted` pods that are bound to the predicted node, `elsewhere` those on another one."""
    rows: deque[Entry] = field(default_factory=lambda: deque(maxlen=_MOST_ROWS))
    slowest: list[tuple[float, int, AuditRecord]] = field(default_factory=list)


class Admissions:
    """Answers about audit records. Each answer reads the records again, because servers add records."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._reported: dict[str, Entry] = {}

    def listed(self, asked: Asked) -> object:
        """Return the newest records that the query selects, their timeline, and the slowest of them."""
        if not self._has_records:
            return {"hasFiles": False}
        nodes, counts = _nodes_of_pods(asked.snapshot), _Counts()
        with remarks_taken() as remarks, self._opened() as sources:
            broken, is_complete = BrokenLines(), True
            for number, entry in enumerate(sources.entries(broken.report)):
                if number % _CHECKED_EACH == 0 and asked.expired():
                    is_complete = False
                    break
                _count(counts, entry, asked.query, nodes)
            broken.report_rest()
        return {
            "hasFiles": True,
            "isComplete": is_complete,
            "total": counts.total,
            "selected": len(counts.times),
            "choices": {key: dict(found.most_common(_MOST_CHOICES)) for key, found in counts.chosen.items()},
            "timeline": _timeline(counts.times),
            "accuracy": dict(counts.bound),
            "slowest": [_row(each, nodes) for _, _, each in sorted(counts.slowest, reverse=True)],
            "rows": [_row(entry.record, nodes) for entry in reversed(counts.rows)],
            "remarks": remarks,
        }

    def decision(self, asked: Asked) -> object:
        """Return the record of one decision, and the node that its pod is bound to.

        Raises:
            NotFoundError: no record has the decision.
        """
        wanted = asked.query.get("decision", "")
        nodes = _nodes_of_pods(asked.snapshot)
        with remarks_taken():
            known = self._reported.get(wanted)
            for entry in [known] if known is not None else self._entries(asked.expired):
                if wanted and entry.record.decision == wanted:
                    return _detail(entry, nodes)
        raise NotFoundError(f"no record has the decision {wanted}")

    def newest(self) -> Iterable[Query]:
        """Yield queries for the newest decisions of audit files, for a report, and cache their records."""
        if self._sources.audit:
            with remarks_taken():
                entries = deque(self._entries(), maxlen=_MOST_REPORTED)
            self._reported = {entry.record.decision: entry for entry in entries}
            yield from ({"decision": decision} for decision in self._reported)

    def reported(self) -> Iterable[Query]:
        """Yield the query of the list for a report. A report does not read the logs of replicas."""
        return ({},) if self._sources.audit or not self._has_records else ()

    @property
    def _has_records(self) -> bool:
        return bool(self._sources.audit) or self._sources.session.is_live

    @contextmanager
    def _opened(self) -> Iterator[AuditSources]:
        """Open the audit files, or the logs of the replicas."""
        replicas = None
        if not self._sources.audit:
            replicas = ReplicaSelection(self._sources.session.source, since=datetime.now(UTC) - _OF_REPLICAS)
        try:
            with Source(self._sources.audit, replicas).opened() as sources:
                yield sources
        except click.ClickException as error:
            raise NotFoundError(error.format_message()) from error

    def _entries(self, expired: Expired = lambda: False) -> Iterator[Entry]:
        with self._opened() as sources:
            for entry in sources.entries(BrokenLines().report):
                if expired():
                    return
                yield entry


def _count(counts: _Counts, entry: Entry, query: Query, nodes: Mapping[tuple[str, str], str]) -> None:
    record = entry.record
    counts.total += 1
    keys = _keys(record)
    for key, value in keys.items():
        counts.chosen.setdefault(key, Counter())[value] += 1
    if any(query.get(key, "") not in ("", value) for key, value in keys.items()) or not _found(record, query):
        return
    counts.times.append((moment(record.time).timestamp(), record.outcome))
    counts.rows.append(entry)
    slow = record.duration_ms, len(counts.times), record
    (heapq.heappush if len(counts.slowest) < _MOST_SLOWEST else heapq.heappushpop)(counts.slowest, slow)
    predicted, bound = record.placement and record.placement.node, nodes.get((record.namespace, record.name))
    if predicted and bound:
        counts.bound["predicted" if predicted == bound else "elsewhere"] += 1


def _keys(record: AuditRecord) -> dict[str, str]:
    """Return the values by which records are selected."""
    return {
        "outcome": record.outcome,
        "type": record.workload_type or "",
        "verdict": record.placement.verdict if record.placement else "",
        "namespace": record.namespace,
    }


def _found(record: AuditRecord, query: Query) -> bool:
    wanted = query.get("search", "").casefold()
    owner = record.owner.name if record.owner else ""
    texts = (f"{record.namespace}/{record.name}", record.user, record.decision, owner)
    return not wanted or any(wanted in each.casefold() for each in texts)


def _timeline(times: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """Return the number of records of each outcome in equal time intervals from the first to the last record."""
    if not times:
        return {"start": 0, "seconds": 0, "buckets": []}
    first, last = min(times)[0], max(times)[0]
    seconds = max((last - first) / _BUCKETS, 1.0)
    buckets = [Counter[str]() for _ in range(min(_BUCKETS, int((last - first) / seconds) + 1))]
    for second, outcome in times:
        buckets[min(int((second - first) / seconds), len(buckets) - 1)][outcome] += 1
    return {"start": first, "seconds": seconds, "buckets": buckets}


def _nodes_of_pods(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    return {(pod.namespace, pod.name): info.node.name for info in snapshot.nodes for pod in info.pods}


def _row(record: AuditRecord, nodes: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    placement = record.placement
    return {
        "time": record.time,
        "decision": record.decision,
        "namespace": record.namespace,
        "name": record.name,
        "kind": record.kind,
        "owner": f"{record.owner.kind}/{record.owner.name}" if record.owner else "",
        "user": record.user,
        "type": record.workload_type,
        "outcome": record.outcome,
        "dryRun": record.dry_run,
        "verdict": placement.verdict if placement else None,
        "node": placement.node if placement else None,
        "boundTo": nodes.get((record.namespace, record.name)),
        "note": record.error or next(iter(record.warnings), "") or (placement.message if placement else ""),
        "durationMs": record.duration_ms,
    }


def _detail(entry: Entry, nodes: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    record = entry.record
    return _row(record, nodes) | {
        "place": entry.place,
        "policy": f"{record.policy.name}@{record.policy.revision}" if record.policy else "",
        "rules": [asdict(each) for each in record.rules],
        "patch": orjson.loads(entry.line).get("patch", []),
        "before": record.before,
        "warnings": record.warnings,
        "error": record.error,
        "placement": asdict(record.placement) if record.placement else None,
        "replica": record.replica,
        "sequence": record.sequence,
    }
