"""Builders of audit records and files."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from webhook.audit.lines import UnsealedRecord, digest, seal
from webhook.audit.reading import Entry, InvalidLine, read
from webhook.audit.record import AuditRecord, Owner, PlacementEntry, PolicyName, Rotation, RuleEntry

START = datetime(2026, 5, 1, 8, tzinfo=UTC)

PATCH = (
    {"op": "add", "path": "/metadata/annotations/maip.mxsf.io~1placement-policy", "value": "default@1a2b3c"},
    {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "maip.mxsf.io/node.usage", "operator": "Exists"}},
    {"op": "replace", "path": "/spec/schedulerName", "value": "volcano"},
)

FEASIBLE = PlacementEntry("Feasible", "node-3", 12, 4, "")
INFEASIBLE = PlacementEntry(
    "Infeasible",
    None,
    12,
    0,
    "0/12 nodes are available: 4 Insufficient nvidia.com/gpu, 8 node(s) had untolerated taint(s).",
)


def at(seconds: float) -> str:
    """Return the time of a record, in seconds after the first record."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def make_record(number: int = 0, **fields: Any) -> AuditRecord:
    """Return the record of admission `number`, one a second; `fields` differ from a patched training pod's."""
    record = AuditRecord(
        time=at(number),
        decision=f"d{number:04}",
        uid=f"uid-{number}",
        dry_run=False,
        operation="CREATE",
        namespace="team-a",
        name=f"worker-{number}",
        owner=Owner("Job", "worker"),
        user="system:serviceaccount:kube-system:job-controller",
        workload_type="training",
        policy=PolicyName("default", "1a2b3c"),
        outcome="Patched",
        rules=(
            RuleEntry("NodeUsageAffinity", ("require node usage In [training]", "tolerate usage=training:NoSchedule")),
            RuleEntry("BinPacking", (), "the pod is already so"),
        ),
        patch=PATCH,
        warnings=("label jobtype=x of the pod wins",),
        placement=FEASIBLE,
        error=None,
        duration_ms=0.5,
        replica="webhook-0",
        before={"/spec/schedulerName": "default-scheduler"},
    )
    return replace(record, **fields)


def encode(
    record: AuditRecord | UnsealedRecord, sequence: int, previous: str, rotation: Rotation | None = None
) -> bytes:
    """Return the record as one line of JSON, without the newline at its end."""
    return seal(record, sequence, previous, rotation)[0]


def chain_lines(records: Iterable[AuditRecord], previous: str = "", first_sequence: int = 1) -> list[bytes]:
    """Return the lines of a chain, as the writer makes them."""
    lines = []
    for sequence, record in enumerate(records, start=first_sequence):
        line = encode(record, sequence, previous)
        previous = digest(line)
        lines.append(line)
    return lines


def write_lines(path: Path, lines: Iterable[bytes]) -> Path:
    """Return a file of these lines."""
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def as_file(name: str, lines: Iterable[bytes]) -> tuple[str, Iterator[Entry | InvalidLine]]:
    """An audit file of these lines that is open for reading."""
    return name, read(name, [line + b"\n" for line in lines])
