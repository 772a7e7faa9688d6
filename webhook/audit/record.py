"""The audit record of one admission: what was injected and why, truncated. It never has the rest of the pod."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic.alias_generators import to_camel

from webhook.documents.documents import JsonObject

Outcome = Literal["Patched", "Unchanged", "Denied", "Bypassed", "Error", "Evicted"]
DropReason = Literal["age", "size"]
OmittedReason = Literal["unwritable", "dryRun"]

POD = "Pod"
FIRST = ""
"""The value of `previous` in the first record of a chain."""

BEGINNING = b'{"time":"'
"""The beginning of each line."""

LARGEST_BYTES = 64 * 1024
"""The maximum length of a line: the maximum of the fields, 18 texts, and the list of truncated places."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that created the pod."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class PolicyName:
    """The policy that was applied, with the hash of its content."""

    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """The result of one rule: a text for each edit, or why the rule was skipped."""

    name: str
    edits: tuple[str, ...] = ()
    skipped: str | None = None


@dataclass(slots=True)
class ReservedEntry:
    """The number of waiting pods before this pod that had room reserved when the verdict on this pod was computed."""

    pods: int


@dataclass(frozen=True, slots=True)
class GangEntry:
    """The pods of the gang `name` that fit together, of `size`. The number is a lower bound unless `is_complete`."""

    name: str
    size: int
    fit: int
    is_complete: bool = True


@dataclass(slots=True)
class PlacementEntry:
    """The predicted placement of the pod. `total` and `feasible` count nodes.

    `unmodelled` lists the kube-scheduler plugins that are relevant to the pod but were not evaluated. `reserved` is
    None if no room was reserved for other pods. `gang` is None if the pod is in no gang.
    """

    verdict: str
    node: str | None
    total: int
    feasible: int
    message: str
    unmodelled: tuple[str, ...] = ()
    reserved: ReservedEntry | None = None
    gang: GangEntry | None = None


@dataclass(frozen=True, slots=True)
class ShadowEntry:
    """The answer that was not given, because the policy is in shadow mode or the pod outside the canary.

    `message` is the reason for a denial, a bypass or an internal error.
    """

    outcome: str
    rules: tuple[RuleEntry, ...] = ()
    patch: tuple[JsonObject, ...] = ()
    warnings: tuple[str, ...] = ()
    placement: PlacementEntry | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Oldest:
    """The first record of the oldest remaining file."""

    sequence: int
    previous: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Files that rotation deletes, because of their `age` or because of the total `size` of all files.

    The number of `records` and the times of the first and last are None if they cannot be read.
    """

    reason: DropReason
    files: int
    bytes: int
    records: int | None
    first: str | None
    last: str | None


@dataclass(frozen=True, slots=True)
class Rotation:
    """The statement about rotated files in a record: the new first record of the chain, and the dropped files."""

    oldest: Oldest | None
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, slots=True)
class Omitted:
    """Admissions that have no record in the file.

    The `unwritable` ones went to standard error; they have the sequence numbers directly `before` a record. Dry runs
    (`dryRun`) beyond the share of their namespace have no sequence numbers; `namespaces` counts them by namespace.
    """

    reason: OmittedReason
    records: int
    before: int | None = None
    namespaces: dict[str, int] = field(default_factory=dict)


# It also holds for the classes above. A newer version may write keys that this one does not know.
@with_config(ConfigDict(alias_generator=to_camel, extra="ignore"))
@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One admission.

    The writer sets `sequence` and `previous` in the line, so only a record that was read has them. The `hash` of the
    line is not a field: it can only be verified against the line itself (`digest`).
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
    """The values that the patch replaces, by JSON pointer (see webhook.audit.replaced_values)."""
    kind: str = POD
    """The kind of the object. A line without it is of a pod."""
    qos_class: str | None = None
    """The QoS class of the admitted pod. A line without it is of an object that was not evaluated as a pod."""
    client: str = ""
    """The name in the certificate of the client, which was verified, or empty if none was required."""
    shadow: ShadowEntry | None = None
    """The answer that was not given. A line without it has the decision that was made."""
    pod: str = ""
    """The digest of the pod in `FILE.pods` (webhook.audit.pods). A line without it is of an object that is not kept."""
    truncated: tuple[str, ...] = ()
    """The places where content was left out because it was too large, and how much."""
    omitted: Omitted | None = None
    """Admissions without a record, in a record of the writer itself, which is of no admission."""
    rotation: Rotation | None = None
    """The remaining files, in the first record after a rotation. Set by the writer."""
    sequence: int = 0
    """Counts the admissions of a chain from 1. A gap in an unbroken chain marks records that could not be written."""
    previous: str = FIRST
    """Hash of the previous record."""


NO_ADMISSION = AuditRecord(
    time="",
    decision="",
    uid="",
    dry_run=False,
    operation="",
    namespace="",
    name="",
    owner=None,
    user="",
    workload_type=None,
    policy=None,
    outcome="Unchanged",
    rules=(),
    patch=(),
    warnings=(),
    placement=None,
    error=None,
    duration_ms=0.0,
    replica="",
)
"""The empty fields of a record that is not of an admission, but of the audit writer or a command."""

_ADAPTER = TypeAdapter(AuditRecord)


def parse_line(line: bytes) -> AuditRecord:
    """Return the record in a line.

    Raises:
        ValueError: the line is not JSON or lacks a required key; the message names it.
    """
    try:
        record = _ADAPTER.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    moment(record.time)
    return record


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
