"""The status of a PlacementPolicy object. Pure: all replicas compute the same status of an object."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from webhook.documents.documents import JsonObject, field

_MOST_BYTES = 2048
# etcd takes 1.5 MiB, with the newest spec and the names of all fields. A larger spec is not stored.
_MOST_SPEC_BYTES = 256 * 1024


class GoodGeneration(NamedTuple):
    """A valid generation of an object: its revision, its spec, and its number, which is 0 if it is not known."""

    revision: str
    spec: JsonObject
    number: int


def status_of(
    content: JsonObject, good: GoodGeneration | None, errors: Sequence[str], now: str, conflict: str = ""
) -> JsonObject | None:
    """Return the status of the object `content`, which is valid or has `errors`.

    It is None if the object has it already. `now` is the time in RFC 3339. `good` is the newest good generation; None
    if this replica knows none. `conflict` is why the object is never in force; empty if it is.

    The status has the revision in force, and that of a rejected object its spec, too: a replica that starts puts it
    into force.
    """
    before = field(content, "status")
    before = before if isinstance(before, dict) else {}
    generation = field(content, "metadata", "generation")
    if errors:
        kept = "the revision of the status stays in force; without one, the policy of the other namespaces is"
        conditions = [("Accepted", "False", "Invalid", _cut("; ".join(errors))), ("InForce", "False", "Rejected", kept)]
    else:
        in_force = ("InForce", "True", "Applied", "this generation is in force for the namespaces that it selects")
        if conflict:
            in_force = ("InForce", "False", "Conflict", _cut(conflict))
        conditions = [("Accepted", "True", "Valid", "the policy is valid and its test cases pass"), in_force]
    known = {field(each, "type"): each for each in field(before, "conditions") or ()}
    status = {
        "observedGeneration": generation,
        "conditions": [_condition(each, known.get(each[0]), generation, now) for each in conditions],
    }
    if not conflict:
        status |= _last_good(before, good) if errors else {"revision": good.revision} if good else {}
    return None if status == before else status


def _last_good(before: JsonObject, good: GoodGeneration | None) -> JsonObject:
    """Return the fields for the last good generation of a rejected object.

    All replicas keep those of the status `before`, unless one knows of a newer generation, or of its spec.
    """
    stored = {key: before[key] for key in ("revision", "inForceSpec") if before.get(key)}
    if good is None:
        return stored
    observed: Any = before.get("observedGeneration") or 0
    own: JsonObject = {"revision": good.revision}
    if len(orjson.dumps(good.spec)) <= _MOST_SPEC_BYTES:
        own["inForceSpec"] = good.spec
    if good.number > observed or "revision" not in stored:
        return own
    return own | stored if good.revision == stored["revision"] else stored


def _condition(given: tuple[str, str, str, str], known: JsonObject | None, generation: int, now: str) -> JsonObject:
    kind, status, reason, message = given
    is_same = known is not None and known.get("status") == status
    return {
        "type": kind,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": known["lastTransitionTime"] if known is not None and is_same else now,
        "reason": reason,
        "message": message,
    }


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_BYTES else f"{text[:_MOST_BYTES]} …"
