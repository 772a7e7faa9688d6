"""The line of a record: JSON whose last key, `hash`, covers all before it and the hash of the previous record."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import orjson

from webhook.audit.bounds import SHORT, Truncator, dump
from webhook.audit.record import POD, AuditRecord, Owner, PlacementEntry, Rotation, ShadowEntry
from webhook.documents.documents import JsonObject
from webhook.kube.api.admission import AdmissionRequest

_RULES_BYTES = 6 * 1024
_PATCH_BYTES = 16 * 1024
_WARNINGS_BYTES = 6 * 1024
_BEFORE_BYTES = 4 * 1024
_UNMODELLED_BYTES = 1024
# A brief record: its lists, and its texts.
_BRIEF_BYTES = 384
_BRIEF_TEXT_BYTES = 256

# Equal pods share one. A template has 34 KiB at most.
_MOST_BRIEF = 64

_HASH_KEY = b',"hash":"'
_HASH_ENDING_BYTES = len(_HASH_KEY) + 64 + len(b'"}')


class RecordTemplate(NamedTuple):
    """The JSON of the keys that are equal in the records of equal pods, so that it is serialized once."""

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
    omitted: bytes = b""
    """Empty in the record of an admission."""

    @classmethod
    def of(cls, record: AuditRecord) -> "RecordTemplate":
        """Return the part of `record` that is equal in the records of equal pods."""
        truncator = Truncator(record.truncated)
        workload_type, policy = _text_json(truncator, "workloadType", record.workload_type), b"null"
        if record.policy is not None:
            name = truncator.text("policy.name", record.policy.name)
            policy = dump({"name": name, "revision": record.policy.revision})
        decision = _decision_json(record, "", truncator)
        placement = placement_json(record.placement, truncator)
        error = _text_json(truncator, "error", record.error)
        shadow = b"" if record.shadow is None else _shadow_json(record.shadow, truncator)
        return cls(
            owner_json(record.owner, truncator),
            b'"workloadType":%b,"policy":%b,%b' % (workload_type, policy, decision),
            placement,
            error,
            before_json(record.before, truncator),
            b"" if record.kind == POD else _text_json(truncator, "kind", record.kind),
            qos_class_json(record.qos_class),
            tuple(truncator.truncated),
            shadow,
            b"" if record.omitted is None else dump(record.omitted),
        )


@dataclass(slots=True)  # not frozen: each admission creates one, and a frozen one costs three times as much
class UnsealedRecord:
    """A record before it is written. `common` is the part that is equal in the records of equal pods."""

    time: str
    decision: str
    request: AdmissionRequest
    duration_ms: float
    replica: str
    common: RecordTemplate
    client: str = ""
    address: str = ""
    """That of the client; it is in no record."""
    pod: str = ""


@lru_cache(maxsize=_MOST_BRIEF)
def brief(common: RecordTemplate) -> RecordTemplate:
    """Return `common` without the patch, and with short lists and texts."""
    truncator = Truncator(common.truncated, _BRIEF_TEXT_BYTES)
    decided = orjson.loads(b"{%b}" % common.decided)
    for key, most_bytes in (("rules", _BRIEF_BYTES), ("patch", 0), ("warnings", _BRIEF_BYTES)):
        decided[key] = orjson.loads(truncator.items_json(key, decided[key], most_bytes))
    decided["workloadType"] = decided["workloadType"] and truncator.text("workloadType", decided["workloadType"])
    placement, shadow = orjson.loads(common.placement), orjson.loads(common.shadow or b"null")
    if placement is not None:
        placement["message"] = truncator.text("placement.message", placement["message"])
    if shadow is not None:
        shadow = {key: shadow[key] for key in ("outcome", "message")}
        shadow["message"] = shadow["message"] and truncator.text("shadow.message", shadow["message"])
    error = orjson.loads(common.error)
    return common._replace(
        decided=dump(decided)[1:-1],
        placement=dump(placement),
        error=dump(error and truncator.text("error", error)),
        before=b"{}",
        shadow=dump(shadow) if shadow is not None else b"",
        truncated=tuple(truncator.truncated),
    )


def seal(
    record: AuditRecord | UnsealedRecord,
    sequence: int,
    previous: str,
    rotation: Rotation | None = None,
    *,
    is_brief: bool = False,
) -> tuple[bytes, str]:
    """Return the record as one line of JSON, without a newline, and the hash of the line."""
    request: AdmissionRequest | AuditRecord
    if isinstance(record, UnsealedRecord):
        request, common = record.request, record.common
    else:
        request, common = record, RecordTemplate.of(record)
    if is_brief:
        common = brief(common)
    asked = {
        "time": record.time,
        "decision": record.decision,
        "uid": request.uid,
        "dryRun": request.dry_run,
        "operation": request.operation,
        "namespace": request.namespace,
        "name": request.name,
    }
    user, truncated = request.user, common.truncated
    if max(len(user), len(request.name), len(request.namespace), len(request.uid), len(request.operation)) > SHORT:
        truncator = Truncator(truncated)
        asked |= {key: truncator.text(key, str(asked[key])) for key in ("uid", "operation", "namespace", "name")}
        user, truncated = truncator.text("user", user), tuple(truncator.truncated)
    milliseconds = round(record.duration_ms, 3)
    written = {"durationMs": milliseconds, "replica": record.replica, "previous": previous, "sequence": sequence}
    content = b'%b,"owner":%b,"user":%b,%b,"placement":%b,"error":%b,%b,"before":%b%b%b%b%b%b%b%b%b' % (
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
        b',"pod":%b' % dump(record.pod) if record.pod else b"",
        b',"truncated":%b' % dump(truncated) if truncated else b"",
        b',"omitted":%b' % common.omitted if common.omitted else b"",
        b',"rotation":%b' % dump(rotation) if rotation else b"",
    )
    own_hash = hashlib.sha256(content + b"}").hexdigest()
    return b'%b%b%b"}' % (content, _HASH_KEY, own_hash.encode()), own_hash


def stated_hash(line: bytes) -> str:
    """Return the hash of the record that its line states, or "" if it states none."""
    ending = line[-_HASH_ENDING_BYTES:]
    if len(ending) < _HASH_ENDING_BYTES or not (ending.startswith(_HASH_KEY) and ending.endswith(b'"}')):
        return ""
    return ending[len(_HASH_KEY) : -2].decode("utf-8", "replace")


def digest(line: bytes) -> str:
    """Return the hash of the record in `line`: its `hash`, and the `previous` of the next record.

    The hash is the SHA-256, in hexadecimal, of the line without newline and without the key `hash`.
    """
    return hashlib.sha256(line[:-_HASH_ENDING_BYTES] + b"}" if stated_hash(line) else line).hexdigest()


def _text_json(truncator: Truncator, place: str, text: str | None) -> bytes:
    return b"null" if text is None else dump(truncator.text(place, text))


def _decision_json(entry: AuditRecord | ShadowEntry, outer: str, truncator: Truncator) -> bytes:
    rules = [
        {"name": each.name, "edits": each.edits}
        if each.skipped is None
        else {"name": each.name, "skipped": each.skipped}
        for each in entry.rules
    ]
    return b'"outcome":%b,"rules":%b,"patch":%b,"warnings":%b' % (
        dump(entry.outcome),
        truncator.items_json(f"{outer}rules", rules, _RULES_BYTES),
        truncator.items_json(f"{outer}patch", entry.patch, _PATCH_BYTES),
        truncator.items_json(f"{outer}warnings", entry.warnings, _WARNINGS_BYTES),
    )


def _shadow_json(entry: ShadowEntry, truncator: Truncator) -> bytes:
    """Return the JSON of the answer that was not given. The corresponding fields of the record itself are empty."""
    return b'{%b,"placement":%b,"message":%b}' % (
        _decision_json(entry, "shadow.", truncator),
        placement_json(entry.placement, truncator),
        _text_json(truncator, "shadow.message", entry.message),
    )


def owner_json(owner: Owner | None, truncator: Truncator) -> bytes:
    """Return the JSON of the owner."""
    if owner is None:
        return b"null"
    return dump({"kind": truncator.text("owner.kind", owner.kind), "name": truncator.text("owner.name", owner.name)})


def placement_json(entry: PlacementEntry | None, truncator: Truncator) -> bytes:
    """Return the JSON of the placement."""
    if entry is None:
        return b"null"
    fields = {
        "verdict": entry.verdict,
        "node": None if entry.node is None else truncator.text("placement.node", entry.node),
        "total": entry.total,
        "feasible": entry.feasible,
        "message": truncator.text("placement.message", entry.message),
    }
    unmodelled = b"[]"
    if entry.unmodelled:
        unmodelled = truncator.items_json("placement.unmodelled", entry.unmodelled, _UNMODELLED_BYTES)
    reserved = b',"reserved":{"pods":%d}' % entry.reserved.pods if entry.reserved else b""
    gang = b""
    if entry.gang is not None:
        name = truncator.text("placement.gang.name", entry.gang.name)
        counts = {"size": entry.gang.size, "fit": entry.gang.fit, "isComplete": entry.gang.is_complete}
        gang = b',"gang":%b' % dump({"name": name, **counts})
    return b'%b,"unmodelled":%b%b%b}' % (dump(fields)[:-1], unmodelled, reserved, gang)


def before_json(before: JsonObject, truncator: Truncator) -> bytes:
    """Return the JSON of the values that a patch replaces."""
    return truncator.items_json("before", before, _BEFORE_BYTES)


def qos_class_json(qos_class: str | None) -> bytes:
    """Return the JSON of a QoS class, or nothing if there is none."""
    return b"" if qos_class is None else dump(qos_class)
