"""Count audit records in one pass."""

import heapq
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields

from pydantic.alias_generators import to_camel

from webhook.audit.record import AuditRecord
from webhook.documents.documents import JsonObject

UNTYPED = "(none)"
"""The workload type under which pods without one are counted."""

PERCENTILES = (50, 90, 99)


@dataclass(slots=True)
class RuleCount:
    """For one rule: the numbers of edited pods, of edits, and of skipped pods."""

    edited: int = 0
    edits: int = 0
    skipped: int = 0


@dataclass(slots=True)
class Summary:
    """The counts of a set of records."""

    total: int = 0
    dry_runs: int = 0
    first: str | None = None
    last: str | None = None
    workload_types: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    shadowed: Counter[str] = field(default_factory=Counter)
    """The outcomes of the answers that shadow mode did not give."""
    rules: dict[str, RuleCount] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    bypasses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    namespaces: Counter[str] = field(default_factory=Counter)
    omitted: Counter[str] = field(default_factory=Counter)
    """The admissions without a record, by reason. They count nowhere else."""
    policies: Counter[str] = field(default_factory=Counter)
    """By `NAME@REVISION`."""
    duration_ms: dict[str, float] = field(default_factory=dict)
    """`p50`, `p90`, `p99` (nearest rank) and `max`, or empty if there are no records."""
    slowest: list[AuditRecord] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Return the summary as `audit summary -o json` prints it."""
        content: JsonObject = {to_camel(each.name): getattr(self, each.name) for each in fields(self)}
        counts = {key: dict(value.most_common()) for key, value in content.items() if isinstance(value, Counter)}
        rules = {name: asdict(rule) for name, rule in self.rules.items()}
        return content | counts | {"rules": rules, "slowest": [_slow_json(record) for record in self.slowest]}


def _slow_json(record: AuditRecord) -> JsonObject:
    pod = f"{record.namespace}/{record.name}"
    return {"decision": record.decision, "pod": pod, "outcome": record.outcome, "durationMs": record.duration_ms}


def summarise(records: Iterable[AuditRecord], slowest: int) -> Summary:
    """Return the summary of `records`, which are in the order of their time, including the `slowest` of them."""
    summary = Summary()
    durations = array("d")

    def counted() -> Iterator[AuditRecord]:
        for record in records:
            if record.omitted is not None:
                summary.omitted[record.omitted.reason] += record.omitted.records
                continue
            _count(summary, record)
            durations.append(record.duration_ms)
            yield record

    # Of equally slow records the earlier is kept. For 0 records `nlargest` would read none.
    summary.slowest = heapq.nlargest(max(1, slowest), counted(), key=lambda each: each.duration_ms)[:slowest]
    summary.duration_ms = _percentiles(durations)
    return summary


def _count(summary: Summary, record: AuditRecord) -> None:
    summary.total += 1
    summary.dry_runs += record.dry_run
    summary.first = summary.first or record.time
    summary.last = record.time
    summary.workload_types[record.workload_type or UNTYPED] += 1
    summary.outcomes[record.outcome] += 1
    if record.shadow:
        summary.shadowed[record.shadow.outcome] += 1
    for entry in record.rules:
        rule = summary.rules.setdefault(entry.name, RuleCount())
        rule.edited += bool(entry.edits)
        rule.edits += len(entry.edits)
        rule.skipped += not entry.edits
    if record.placement:
        summary.verdicts[record.placement.verdict] += 1
    summary.users[record.user or UNTYPED] += 1
    summary.namespaces[record.namespace] += 1
    if record.policy:
        summary.policies[f"{record.policy.name}@{record.policy.revision}"] += 1
    if record.outcome == "Denied":
        summary.refusals.update(_reasons(record))
    elif record.outcome == "Bypassed":
        summary.bypasses[_without_numbers(record.error)] += 1
    elif record.outcome == "Error":
        summary.errors[_without_numbers(record.error)] += 1


_FIELD_ERROR = re.compile(
    r"(?:^|(?<=\s))(\S+: (?:Invalid value|Required value|Unsupported value|Duplicate value|Forbidden)):"
)
_LEADING_COUNT = re.compile(r"^\d+ ")


def _reasons(record: AuditRecord) -> Iterator[str]:
    """Yield the reasons why a pod was denied, without values: for each invalid field its path and kind of error."""
    message = record.error or ""
    if fields := _FIELD_ERROR.findall(message):
        yield from sorted(set(fields))
    elif record.placement and record.placement.verdict == "Infeasible":
        # The message is `0/12 nodes are available: `, followed by each reason with its number of nodes.
        _, _, parts = record.placement.message.rstrip(".").partition(": ")
        yield f"Infeasible: {', '.join(sorted({_LEADING_COUNT.sub('', part) for part in parts.split(', ')}))}"
    else:
        yield _without_numbers(message)


def _without_numbers(message: str | None) -> str:
    """Return the first line with numbers replaced by N, so that messages that differ only in numbers are equal."""
    return re.sub(r"\b\d+\b", "N", (message or "no reason recorded").split("\n", 1)[0])


def _percentiles(durations: "array[float]") -> dict[str, float]:
    if not durations:
        return {}
    ordered = sorted(durations)
    ranks = {f"p{percent}": math.ceil(len(ordered) * percent / 100) for percent in PERCENTILES}
    return {name: ordered[rank - 1] for name, rank in ranks.items()} | {"max": ordered[-1]}
