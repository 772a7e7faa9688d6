"""The audit record: the result of one admission, as one line of JSON that is chained to the line before it.

The last key of a line is its `hash`. It covers everything before it, including the hash of the previous record.

A record holds what was injected and why. It never holds the rest of the pod: no image, command or environment. Large
values are truncated (`webhook.audit.bounds`).
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
    ShadowEntry,
    owner_json,
    placement_json,
    policy_json,
    rule_json,
    text_json,
)
from webhook.audit.statement import Rotation
from webhook.kube.documents import JsonObject

Outcome = Literal["Patched", "Unchanged", "Denied", "Bypassed", "Error"]

POD = "Pod"
FIRST = ""
"""The value of `previous` in the first record of a chain."""

BEGINNING = b'{"time":"'
"""The beginning of each line."""

LARGEST_BYTES = 64 * 1024
"""The maximum length of a line: the maximum of the fields below, 18 texts, and the list of truncated places."""
_RULES_BYTES = 6 * 1024
_PATCH_BYTES = 16 * 1024
_WARNINGS_BYTES = 6 * 1024
_BEFORE_BYTES = 4 * 1024

_HASH_KEY = b',"hash":"'
_HASH_ENDING_BYTES = len(_HASH_KEY) + 64 + len(b'"}')

# A newer version may write keys that this one does not know.
_JSON = ConfigDict(alias_generator=to_camel, extra="ignore")


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One admission.

    The writer sets `sequence` and `previous` in the line; a record that was read has them. The `hash` of the line is
    not a field, because only the line itself can be compared with it (`digest`).
    """

    time: str
    """Time of the request: RFC 3339 in UTC, with microseconds."""
    decision: str
    """ID of this admission, which the response's auditAnnotations also hold."""
    uid: str
    dry_run: bool
    operation: str
    namespace: str
    name: str
    """Name of the pod; its generateName, which ends in a hyphen, if the API server has not generated the name yet."""
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
    """The reason why the pod was denied (Denied) or not changed (Bypassed), or the failure (Error)."""
    duration_ms: float
    replica: str
    before: JsonObject = field(default_factory=dict)
    """The values that the patch replaces, by JSON pointer (see webhook.audit.pointer)."""
    kind: str = POD
    """The kind of the object. A line without it is of a pod."""
    qos_class: str | None = None
    """The QoS class of the admitted pod. A line without it is of an object that was not evaluated as a pod."""
    client: str = ""
    """The name in the certificate of the client, which was verified; empty if none was required."""
    shadow: ShadowEntry | None = None
    """The answer that was not given. A line without it has the decision that was made."""
    truncated: tuple[str, ...] = ()
    """The places where content was left out because it was too large, and how much."""
    rotation: Rotation | None = None
    """The remaining files, in the first record after a rotation. Set by the writer."""
    sequence: int = 0
    """Counts the admissions of a chain from 1. A gap in an unbroken chain marks records that could not be written."""
    previous: str = FIRST
    """Hash of the previous record."""


class RecordTemplate(NamedTuple):
    """JSON of the keys that the records of equal pods share, so that it is serialized once."""

    owner: bytes
    decided: bytes
    """From `workloadType` to `warnings`, without braces."""
    placement: bytes
    error: bytes
    before: bytes
    kind: bytes = b""
    """Empty for a pod."""
    qos_class: bytes = b""
    """Empty if there is none."""
    truncated: tuple[str, ...] = ()
    """The places truncated in these keys."""
    shadow: bytes = b""
    """Empty if the decision was the answer."""

    @classmethod
    def of(cls, record: AuditRecord) -> "RecordTemplate":
        """Return the part of `record` that the records of equal pods share."""
        truncator = Truncator(record.truncated)
        decided = (
            text_json(truncator, "workloadType", record.workload_type),
            policy_json(record.policy, truncator),
            dump(record.outcome),
            truncator.items_json("rules", [rule_json(entry) for entry in record.rules], _RULES_BYTES),
            truncator.items_json("patch", record.patch, _PATCH_BYTES),
            truncator.items_json("warnings", record.warnings, _WARNINGS_BYTES),
        )
        placement = placement_json(record.placement, truncator)
        error = text_json(truncator, "error", record.error)
        shadow = b"" if record.shadow is None else _shadow_json(record.shadow, truncator)
        return cls(
            owner_json(record.owner, truncator),
            b'"workloadType":%b,"policy":%b,"outcome":%b,"rules":%b,"patch":%b,"warnings":%b' % decided,
            placement,
            error,
            before_json(record.before, truncator),
            b"" if record.kind == POD else text_json(truncator, "kind", record.kind),
            qos_class_json(record.qos_class),
            tuple(truncator.truncated),
            shadow,
        )


def before_json(before: JsonObject, truncator: Truncator) -> bytes:
    """Return the JSON of the values that a patch replaces."""
    return truncator.items_json("before", before, _BEFORE_BYTES)


def qos_class_json(qos_class: str | None) -> bytes:
    """Return the JSON of a QoS class; empty if there is none."""
    return b"" if qos_class is None else dump(qos_class)


def _shadow_json(entry: ShadowEntry, truncator: Truncator) -> bytes:
    """Return the JSON of the answer that was not given; the same fields of the record are empty then."""
    return b'{"outcome":%b,"rules":%b,"patch":%b,"warnings":%b,"placement":%b,"message":%b}' % (
        dump(entry.outcome),
        truncator.items_json("shadow.rules", [rule_json(each) for each in entry.rules], _RULES_BYTES),
        truncator.items_json("shadow.patch", entry.patch, _PATCH_BYTES),
        truncator.items_json("shadow.warnings", entry.warnings, _WARNINGS_BYTES),
        placement_json(entry.placement, truncator),
        text_json(truncator, "shadow.message", entry.message),
    )


@dataclass(slots=True)  # not frozen: each admission creates one, and a frozen one costs three times as much
class Draft:
    """A record before it is written: the values of one admission, and the `common` part of equal pods."""

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
    client: str = ""


def _has_long_text(record: AuditRecord | Draft) -> bool:
    # Written out, since it runs for every record.
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
    """Return the record as one line of JSON, without a newline, and the hash of the line."""
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
    milliseconds = round(record.duration_ms, 3)
    written = {"durationMs": milliseconds, "replica": record.replica, "previous": previous, "sequence": sequence}
    content = b'%b,"owner":%b,"user":%b,%b,"placement":%b,"error":%b,%b,"before":%b%b%b%b%b%b%b' % (
        dump(asked)[:-1],
        common.owner,
        dump(user),
        common.decided,
        common.placement,
        common.error,
        dump(written)[1:-1],
        common.before,
        b',"kind":%b' % common.kind if common.kind else b"",
        b',"qosClass":%b' % common.qos_class if common.qos_class else b"",
        b',"client":%b' % dump(record.client) if record.client else b"",
        b',"shadow":%b' % common.shadow if common.shadow else b"",
        b',"truncated":%b' % dump(truncated) if truncated else b"",
        b',"rotation":%b' % dump(rotation) if rotation else b"",
    )
    own_hash = hashlib.sha256(content + b"}").hexdigest()
    return b'%b%b%b"}' % (content, _HASH_KEY, own_hash.encode()), own_hash


def stated_hash(line: bytes) -> str:
    """Return the hash that a line holds for itself; empty if it has none."""
    ending = line[-_HASH_ENDING_BYTES:]
    if len(ending) < _HASH_ENDING_BYTES or not (ending.startswith(_HASH_KEY) and ending.endswith(b'"}')):
        return ""
    return ending[len(_HASH_KEY) : -2].decode("utf-8", "replace")


def digest(line: bytes) -> str:
    """Return the hash of a record, SHA-256 in hexadecimal, as its line and the `previous` of the next record hold it.

    It is computed over the line (without newline) before `hash` is appended: over the JSON object without that key.
    """
    return hashlib.sha256(line[:-_HASH_ENDING_BYTES] + b"}" if stated_hash(line) else line).hexdigest()


_ADAPTER = TypeAdapter(AuditRecord)


def parse_line(line: bytes) -> AuditRecord:
    """Return the record in a line.

    Raises:
        ValueError: the line is not JSON or lacks a required key; the message names it.
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
    """Return the `time` of a record as a datetime.

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
