"""The status of a PlacementPolicy object. Pure: all replicas compute the same status of an object."""

from collections.abc import Sequence

from webhook.kube.documents import JsonObject, field

_MOST_BYTES = 2048


def status_of(
    content: JsonObject, revision: str, errors: Sequence[str], now: str, conflict: str = ""
) -> JsonObject | None:
    """Return the status of the object `content`, which is valid with this `revision` or has `errors`.

    It is None if the object has it already. `now` is the time in RFC 3339. For a rejected object, `revision` is that of
    the last good generation; empty if this replica knows none. `conflict` is why the object is never in force; empty if
    it is.

    The status has the revision in force. A rejected object keeps it: a replica that starts can tell by it that others
    have an earlier generation in force.
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
    shown = (field(before, "revision") or revision) if errors else revision
    if shown and not conflict:
        status["revision"] = shown
    return None if status == before else status


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
