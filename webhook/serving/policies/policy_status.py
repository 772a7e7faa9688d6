"""Compute and write the status of a PlacementPolicy object. All replicas compute the same status."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import structlog

from webhook.documents.documents import JsonObject, field
from webhook.events.report import Report, rejection_of
from webhook.events.subject import ObjectReference
from webhook.policy.policy import Policy
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import CONFLICT, NOT_FOUND, ApiServer, Connect

FIELD_MANAGER = "placement-webhook"
_MOST_BYTES = 2048
# etcd takes 1.5 MiB, with the newest spec and the names of all fields. A larger spec is not stored.
_MOST_SPEC_BYTES = 256 * 1024
# A status of one generation is written again at most this often: replicas of two versions could disagree on it.
_REWRITE_SECONDS = 60.0
Reported = Callable[[ObjectReference, Report], None]
_NOT_WRITTEN = "the status of a PlacementPolicy cannot be written"
_NEVER = "", -1


class GoodGeneration(NamedTuple):
    """A valid generation of an object: its revision, its spec, and its generation number, or 0 if it is not known."""

    revision: str
    spec: JsonObject
    number: int


@dataclass(slots=True)
class JudgedObject:
    """A PlacementPolicy object as read, and the result of its validation.

    `good` is the newest good generation, or None if this replica knows none, and `policy` is its policy. `errors` are
    the errors of the newest content. `conflict` is the reason why the object is never in force, or empty if it can be.
    `judged` is the last validated version. After an internal error, its generation is -1, because the policy may be
    valid. `tried` is the last good generation that the status had when this replica last tried to use it.
    """

    content: JsonObject
    good: GoodGeneration | None = None
    errors: Sequence[str] = ()
    conflict: str = ""
    policy: Policy | None = None
    judged: tuple[str, int] = _NEVER
    tried: tuple[object, object] | None = None

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.content["metadata"]["name"])

    @property
    def version(self) -> tuple[str, int]:
        """The uid and the generation of the object."""
        metadata = self.content["metadata"]
        return str(metadata.get("uid")), int(metadata.get("generation", 0))

    @property
    def lacks_good(self) -> bool:
        """Return whether no generation of the object is known to be valid."""
        return bool(self.errors) and self.policy is None

    def keep(self, policy: Policy, spec: JsonObject, generation: int) -> None:
        """Keep the policy in `spec` as the last good one. `generation` is 0 if it is not known."""
        self.policy, self.good = policy, GoodGeneration(policy.revision, spec, generation)


class StatusWriter:
    """Writes statuses below `path`. `on_rejected` is called by the one replica that wrote a rejection."""

    def __init__(
        self,
        connect: Connect,
        path: str,
        now: Callable[[], str],
        monotonic_seconds: Callable[[], float] = time.monotonic,
        on_rejected: Reported = lambda *_: None,
    ) -> None:
        self._connect, self._path, self._on_rejected = connect, path, on_rejected
        self._now, self._monotonic_seconds = now, monotonic_seconds
        self._written_seconds: dict[tuple[str, int], float] = {}
        self._log = structlog.get_logger()

    async def write(self, judged: Sequence[JudgedObject]) -> None:
        """Write the statuses that differ. A status that another replica has already written is not written again.

        If the API server rejects a status, this is logged, the other statuses are still written, and the status is
        tried again.

        Raises:
            ApiServerError: the API server does not answer.
        """
        versions = {each.version for each in judged}
        self._written_seconds = {key: at for key, at in self._written_seconds.items() if key in versions}
        wanted = [(each, status) for each in judged if (status := self._status(each)) is not None]
        if not wanted:
            return
        async with self._connect() as server:
            for each, status in wanted:
                await self._write(server, each, status)

    async def _write(self, server: ApiServer, judged: JudgedObject, status: JsonObject) -> None:
        version = judged.content["metadata"].get("resourceVersion")
        # A merge patch would merge two specs, and drop what is null in one.
        patch: list[JsonObject] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            await server.patch(f"{self._path}/{judged.name}/status", patch, {"fieldManager": FIELD_MANAGER})
        except ApiServerError as error:
            if error.code in (NOT_FOUND, CONFLICT):
                # The object has changed or is gone. The watch reports it, and then its status is compared again.
                return
            if not error.code:
                raise
            self._log.warning(_NOT_WRITTEN, policy=judged.name, error=str(error))
        else:
            if judged.errors:
                reference = ObjectReference(API_VERSION, KIND, "", judged.name, judged.version[0])
                self._on_rejected(reference, rejection_of(judged.errors))
        self._written_seconds[judged.version] = self._monotonic_seconds()

    def _status(self, judged: JudgedObject) -> JsonObject | None:
        """Return the status to write, or None if the object already has it, or if it is too early to write again."""
        written_seconds = self._written_seconds.get(judged.version)
        if written_seconds is not None and self._monotonic_seconds() - written_seconds < _REWRITE_SECONDS:
            return None
        return status_of(judged.content, judged.good, judged.errors, self._now(), judged.conflict)


def status_of(
    content: JsonObject, good: GoodGeneration | None, errors: Sequence[str], now: str, conflict: str = ""
) -> JsonObject | None:
    """Return the status of the object `content`, which is valid or has `errors`.

    The result is None if the object already has this status. `now` is the time in RFC 3339. `good` is the newest good
    generation, or None if this replica knows none. `conflict` is the reason why the object is never in force, or empty
    if it can be.

    The status contains the revision in force. For a rejected object, it also contains the spec of this revision, so
    that a starting replica can put it into force.
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

    A replica keeps the fields of the status `before`, unless it knows a newer generation or the missing spec.
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
