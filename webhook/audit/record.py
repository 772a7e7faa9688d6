"""The audit record: what became of one admission, as one line of JSON that is chained to the line before it.

The last key of a line is its `hash`: of all that stands before it, the hash of the record before included.

A record holds what was injected and why, never the rest of the pod: no image, command or environment. It is cut where a
pod would make it large (`webhook.audit.bounds`).
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic.alias_generators import to_camel

from webhook.audit.bounds import SHORT, Truncator
from webhook.audit.encoding import dump
from webhook.audit.entries import (
    Owner,
    PlacementEntry,
    PolicyName,
    RuleEntry,
    owner_json,
    placement_json,
    policy_json,
    rule_json,
    text_json,
)
from webhook.audit.statement import Rotation
from webhook.kube.documents import JsonObject

Outcome = Literal["Patched", "Unchanged", "Denied", "Bypassed", "Error"]

FIRST = ""
"""What the first record of a chain has for `previous`."""

LARGEST_BYTES = 64 * 1024
"""No line is longer: what the fields below hold at most, with 17 texts and the names of what was left out."""
_RULES_BYTES = 6 * 1024
_PATCH_BYTES = 16 * 1024
_WARNINGS_BYTES = 6 * 1024
_BEFORE_BYTES = 4 * 1024

_HASH_KEY = b',"hash":"'
_HASH_ENDING_BYTES = len(_HASH_KEY) + 64 + len(b'"}')

# A key that a newer version writes is no fault of the line.
_JSON = ConfigDict(alias_generator=to_camel, extra="ignore")


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One admission.

    The writer knows `sequence` and `previous`, and sets them in the line; in a record that was read they are there. The
    line's `hash` is no field: only the line itself can be held against it (`digest`).
    """

    time: str
    """When the request came: RFC 3339 in UTC, with microseconds."""
    decision: str
    """Identifies this admission; stands also in the response's auditAnnotations."""
    uid: str
    dry_run: bool
    operation: str
    namespace: str
    name: str
    """The pod's name; its generateName, which ends in a hyphen, where the API server has yet to choose the name."""
    owner: Owner | None
    user: str
    workload_type: str | None
    policy: PolicyName | None
    outcome: Outcome
    rules: tuple[RuleEntry, ...]
    patch: tuple[JsonObject, ...]
    """RFC 6902 operations."""
    warnings: tuple[str, ...]
    placement: PlacementEntry | None
    error: str | None
    """Why the pod was refused (Denied) or left alone (Bypassed), or what failed (Error)."""
    duration_ms: float
    replica: str
    before: JsonObject = field(default_factory=dict)
    """By JSON pointer, the values that operations of the patch put others in place of (see webhook.audit.pointer)."""
    truncated: tuple[str, ...] = ()
    """Where something was left out of the record because it was too large, and how much."""
    rotation: Rotation | None = None
    """In the first record written after a rotation: which files are left. Set by the writer, too."""
    sequence: int = 0
    """Counts the admissions of a chain from 1. A gap in an unbroken chain: records that the file could not take."""
    previous: str = FIRST
    """Hash of the record before."""


class RecordTemplate(NamedTuple):
    """JSON of the keys that are alike in the records of equal pods, so that it need not be written for each of them."""

    owner: bytes
    decided: bytes
    """From `workloadType` to `error`, without braces."""
    before: bytes
    truncated: tuple[str, ...] = ()
    """What was left out of these."""

    @classmethod
    def of(cls, record: AuditRecord) -> "RecordTemplate":
        """The part that `record` has in common with those of equal pods."""
        truncator = Truncator(record.truncated)
        decided = (
            text_json(truncator, "workloadType", record.workload_type),
            policy_json(record.policy, truncator),
            dump(record.outcome),
            truncator.items_json("rules", [rule_json(entry) for entry in record.rules], _RULES_BYTES),
            truncator.items_json("patch", record.patch, _PATCH_BYTES),
            truncator.items_json("warnings", record.warnings, _WARNINGS_BYTES),
            placement_json(record.placement, truncator),
            text_json(truncator, "error", record.error),
        )
        return cls(
            owner_json(record.owner, truncator),
            b'"workloadType":%b,"policy":%b,"outcome":%b,"rules":%b,"patch":%b,"warnings":%b,"placement":%b,"error":%b'
            % decided,
            truncator.items_json("before", record.before, _BEFORE_BYTES),
            tuple(truncator.truncated),
        )


@dataclass(slots=True)  # not frozen: one is made for each admission, and that would cost three times as much
class Draft:
    """A record that is yet to be written: what one admission has for itself, and what is `common` to equal pods."""

    time: str
    decision: str
    uid: str
    dry_run: bool
    operation: str
    namespace: str
    name: str
    user: str
    duration_ms: float
    replica: str
    common: RecordTemplate


def _has_long_text(record: AuditRecord | Draft) -> bool:
    # Spelt out, since it is asked of every record.
    return (
        len(record.user) > SHORT
        or len(record.name) > SHORT
        or len(record.namespace) > SHORT
        or len(record.uid) > SHORT
        or len(record.operation) > SHORT
    )


def seal(
    record: AuditRecord | Draft, sequence: int, previous: str, rotation: Rotation | None = None
) -> tuple[bytes, str]:
    """The record as one line of JSON, without the newline at its end, and the line's hash."""
    common = record.common if isinstance(record, Draft) else RecordTemplate.of(record)
    asked = {
        "time": record.time,
        "decision": record.decision,
        "uid": record.uid,
        "dryRun": record.dry_run,
        "operation": record.operation,
        "namespace": record.namespace,
        "name": record.name,
    }
    user, truncated = record.user, common.truncated
    if _has_long_text(record):
        truncator = Truncator(truncated)
        asked |= {key: truncator.text(key, str(asked[key])) for key in ("uid", "operation", "namespace", "name")}
        user, truncated = truncator.text("user", user), tuple(truncator.truncated)
    written = {
        "durationMs": round(record.duration_ms, 3),
        "replica": record.replica,
        "previous": previous,
        "sequence": sequence,
    }
    content = b'%b,"owner":%b,"user":%b,%b,%b,"before":%b%b%b' % (
        dump(asked)[:-1],
        common.owner,
        dump(user),
        common.decided,
        dump(written)[1:-1],
        common.before,
        b',"truncated":%b' % dump(truncated) if truncated else b"",
        b',"rotation":%b' % dump(rotation) if rotation else b"",
    )
    own_hash = hashlib.sha256(content + b"}").hexdigest()
    return b'%b%b%b"}' % (content, _HASH_KEY, own_hash.encode()), own_hash


def stated_hash(line: bytes) -> str:
    """The hash that a line has for its own; empty if it has none."""
    ending = line[-_HASH_ENDING_BYTES:]
    if len(ending) < _HASH_ENDING_BYTES or not (ending.startswith(_HASH_KEY) and ending.endswith(b'"}')):
        return ""
    return ending[len(_HASH_KEY) : -2].decode("utf-8", "replace")


def digest(line: bytes) -> str:
    """Hash of a record as its line and the next record's `previous` have it: SHA-256 in hexadecimal.

    It is that of the line (without its newline) before `hash` was put to its end: of the JSON object without that key.
    """
    return hashlib.sha256(line[:-_HASH_ENDING_BYTES] + b"}" if stated_hash(line) else line).hexdigest()


_ADAPTER = TypeAdapter(AuditRecord)


def parse_line(line: bytes) -> AuditRecord:
    """The record in a line.

    Raises:
        ValueError: the line is not JSON, or lacks what every record has; the message says what.
    """
    try:
        record = _ADAPTER.validate_json(line)
    except ValidationError as error:
        raise ValueError(_first_problem(error)) from error
    moment(record.time)
    return record


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


def moment(time: str) -> datetime:
    """The point in time that a record's `time` names.

    Raises:
        ValueError: it is not RFC 3339 with an offset from UTC.
    """
    try:
        point = datetime.fromisoformat(time)
    except ValueError:
        point = None
    if point is None or point.tzinfo is None:
        raise ValueError(f"time: must be RFC 3339, is {time[:40]!r}")
    return point
