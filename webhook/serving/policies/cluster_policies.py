"""Follow the PlacementPolicy objects of a cluster: validate each, put it into force, and write its status.

If an object is not valid, its last good generation stays in force. The status contains this generation for replicas
that start later. If the objects cannot be read, the policies in force do not change.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from pydantic import ValidationError

from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import last_good_policy, policy_text
from webhook.policy.policy_set import DEFAULT_NAME
from webhook.policy.spec.admission import NamespaceSelector
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.serving.policies.in_force import ALL_OBJECTS, MOST_ERRORS, Policies, Selection, errors_of
from webhook.serving.policies.policy_file import PolicyFile
from webhook.serving.policies.policy_status import JudgedObject, Reported, StatusWriter
from webhook.serving.scheduling.worker import in_background
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import Connect
from webhook.watch.reflector import Reflector
from webhook.watch.store import ObjectsByName, changed_within
from webhook.watch.timing import Timing

POLICY_OBJECTS = Resource(KIND, API_VERSION, "placementpolicies", is_extension=True)
_RETRY_SECONDS = 30.0
# Longer than a roll-out takes to show that a pod does not become ready; shorter than a stop of all admissions may last,
# if the replicas with the last good generation have ended.
_LONGEST_WAIT_SECONDS = 600.0
_MOST_OBJECTS = 256
# A priority after that of every valid policy.
_LAST = -1_000_001
_TOO_MANY = f"left out: the cluster has {_MOST_OBJECTS} older PlacementPolicies, which is the limit"
_RESTORED = "the last good generation of a PlacementPolicy is read from its status"
_NOT_RESTORED = "the last good generation in the status of a PlacementPolicy cannot be used"
_UNREADABLE = (
    "the PlacementPolicies of the cluster cannot be read: install deploy/crd, and let the service "
    "account list and watch placementpolicies"
)


class ClusterPolicies:
    """Follows the objects of the cluster of `connect`.

    `file`, if given, is the policy for namespaces without an object.

    `store` contains the objects as read. `validated` returns the policy in a text; it runs in another thread. `now`
    returns the time in RFC 3339. `monotonic_seconds` is the clock that limits the wait of a starting replica.
    `on_rejected` reports a rejected object; only one replica calls it.
    """

    def __init__(
        self,
        connect: Connect,
        policies: Policies,
        validated: Callable[[bytes, str], Policy],
        now: Callable[[], str],
        file: PolicyFile | None = None,
        on_fault: Callable[[], None] = lambda: None,
        monotonic_seconds: Callable[[], float] = time.monotonic,
        on_rejected: Reported = lambda *_: None,
    ) -> None:
        self._connect, self._policies, self._validated = connect, policies, validated
        self._writer = StatusWriter(connect, POLICY_OBJECTS.path, now, on_rejected=on_rejected)
        self._file, self._on_fault = file, on_fault
        self.store = ObjectsByName()
        self._reflector = Reflector(POLICY_OBJECTS, self.store, connect, Timing(), on_fault=on_fault)
        self._judged: dict[str, JudgedObject] = {}
        self._is_judged = self._is_complete = False
        self._monotonic_seconds, self._end_seconds = monotonic_seconds, monotonic_seconds() + _LONGEST_WAIT_SECONDS
        self._log = structlog.get_logger()

    def unready_reason(self) -> str:
        """Return the reason why the policies of other replicas are not in force here yet, or "" once they are.

        Afterwards the replica stays ready. A rejected object without a known good generation keeps the replica unready
        for a limited time only, because there may be no other replica.
        """
        if not self._is_judged:
            return "the PlacementPolicies of the cluster have not been read yet"
        if self._is_complete:
            return ""
        return _UNREADABLE if self.store.is_unknown else self._policies.missing_reason()

    async def reload(self) -> None:
        """Read the file again at once, if there is one."""
        if self._file is not None:
            await self._file.reload()

    @asynccontextmanager
    async def polled(self, poll_seconds: float) -> AsyncIterator[None]:
        """Follow the objects, and poll the file at this interval, until the block ends."""
        async with AsyncExitStack() as stack:
            if self._file is not None:
                await stack.enter_async_context(self._file.polled(poll_seconds))
            await stack.enter_async_context(in_background(self._reflector.run(), "policy objects"))
            await stack.enter_async_context(in_background(self._run(), "policies"))
            yield

    async def _run(self) -> None:
        while True:
            await changed_within(self.store.changed, _RETRY_SECONDS)
            self.store.changed.clear()
            try:
                await self.judge()
                await self.write_status()
            except ApiServerError as error:
                self._log.warning("the status of a PlacementPolicy cannot be written", error=str(error))
            except Exception:
                self._on_fault()
                self._log.exception("the PlacementPolicies cannot be followed")

    async def judge(self) -> None:
        """Validate the objects that have changed, and put the valid ones into force together."""
        if self.store.by_name is None:
            if self.store.is_unknown:
                self._policies.reject_objects({ALL_OBJECTS: (_UNREADABLE,)})
                self._is_judged = True
                # If the kind is not installed, other replicas have no objects either.
                self._is_complete = self._is_complete or not self._reflector.is_forbidden
            return
        by_age = sorted(self.store.by_name.items(), key=_age)
        objects = dict(sorted(by_age[:_MOST_OBJECTS]))
        for name in self._judged.keys() - objects.keys():
            del self._judged[name]
        for name, content in objects.items():
            known = self._judged.setdefault(name, JudgedObject(content))
            known.content = content
            await self._judge_one(known)
            if known.lacks_good:
                await self._restore(known)
        lacking = {name: each.content for name, each in self._judged.items() if each.lacks_good}
        good = [each.policy for each in self._judged.values() if each.policy is not None]
        self._policies.put_objects(good, {name: _selection_in(name, content) for name, content in lacking.items()})
        rejected = {name: tuple(each.errors) for name, each in self._judged.items() if each.errors}
        revisions = {name: str(field(content, "status", "revision") or "") for name, content in lacking.items()}
        missing = {name: revision for name, revision in revisions.items() if revision}
        self._policies.miss_objects(missing)
        self._policies.reject_objects(rejected | {name: (_TOO_MANY,) for name, _ in by_age[_MOST_OBJECTS:]})
        is_too_late = self._monotonic_seconds() >= self._end_seconds
        self._is_judged, self._is_complete = True, self._is_complete or not missing or is_too_late

    async def _judge_one(self, known: JudgedObject) -> None:
        uid, generation = known.version
        if known.judged == known.version:
            return
        if known.judged[0] != uid:
            known.good = known.policy = known.tried = None
        known.judged = known.version
        try:
            text, place = policy_text(known.content), f"PlacementPolicy {known.name}"
            policy = await asyncio.to_thread(self._validated, text, place)
        except InvalidInput as error:
            known.errors = errors_of(error)
        except Exception as error:
            # An internal error can pass, so the object is judged again.
            known.errors, known.judged = errors_of(error), (uid, -1)
        else:
            known.errors = ()
            known.keep(policy, known.content.get("spec", {}), generation)

    async def _restore(self, known: JudgedObject) -> None:
        """Use the last good generation in the status, if there is a valid one."""
        spec, revision = field(known.content, "status", "inForceSpec"), field(known.content, "status", "revision")
        if not isinstance(spec, dict) or known.tried == (revision, spec):
            return
        known.tried = revision, spec
        try:
            policy = await asyncio.to_thread(last_good_policy, known.content, self._validated)
        except Exception as error:
            if not isinstance(error, InvalidInput):
                known.tried = None
            self._log.warning(_NOT_RESTORED, policy=known.name, errors=errors_of(error)[:MOST_ERRORS])
            return
        if policy is not None:
            known.keep(policy, spec, 0)
            self._log.info(_RESTORED, policy=policy.identity)

    async def write_status(self) -> None:
        """Write the statuses that differ.

        Raises:
            ApiServerError: the API server does not answer.
        """
        conflicts = self._policies.in_force().conflicts()
        for name, each in self._judged.items():
            each.conflict = conflicts.get(name, "")
        await self._writer.write([each for each in self._judged.values() if each.judged[1] >= 0])


PolicySource = PolicyFile | ClusterPolicies
"""The source of the policies, which the server follows."""


def _age(item: tuple[str, JsonObject]) -> tuple[str, str]:
    name, content = item
    return str(content["metadata"].get("creationTimestamp") or ""), name


def _selection_in(name: str, content: JsonObject) -> Selection:
    """Return the selection of namespaces of the rejected object `name`.

    If the selection is not known, or the object is the default policy, these are the namespaces that no other policy
    selects.
    """
    selector, priority = field(content, "spec", "namespaceSelector"), field(content, "spec", "priority")
    try:
        valid = NamespaceSelector.model_validate(None if name == DEFAULT_NAME else selector)
    except ValidationError:
        return Selection(NamespaceSelector(), _LAST)
    return Selection(valid, priority if type(priority) is int else 0)
