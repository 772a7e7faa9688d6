"""One pass of the certs controller: read the objects, plan a step, and write it.

Each write includes the resourceVersion that was read, and fails if another client has changed the object meanwhile. So
several controllers at once are harmless: one of them succeeds, and the others read again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from certs import pem, registration
from certs.controller.metrics import CREATE, MEND, ControllerMetrics
from certs.controller.options import Options, Watched
from certs.rotation.bundles import bundles_of, mending_patch
from certs.rotation.change import carried_out, fulfils
from certs.rotation.memory import Memory
from certs.rotation.plan import Action, Step, plan
from certs.rotation.secret import (
    OWNER,
    artifacts_in,
    check_owned,
    new_secret,
    requested_rotation,
    secret_patch,
    version_of,
)
from certs.rotation.state import Certificates, Observed, read_ring
from certs.store.probe import Outcome, probe
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND, ApiServer, JsonObject

_CONFLICT = 409
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_PROBE_AGAIN = timedelta(seconds=2)
_SERVED = (Action.KEEP, Action.DROP_OLD_CA)


@dataclass(frozen=True, slots=True)
class Pass:
    """The result of one pass: the step that was planned, whether a write was tried, and what it waits for.

    After a write, also one that failed because another client was faster, the objects are read again at once.
    """

    step: Step
    tried: bool
    waits_for: str = ""

    @property
    def pause(self) -> timedelta:
        """Return the time until the next pass is useful, if nothing changes."""
        if self.tried:
            return timedelta(0)
        return min(_PROBE_AGAIN, self.step.wait) if self.waits_for else self.step.wait


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Reconciler:
    """Compares the objects with what they should be, and changes them; `now` returns the time in UTC."""

    def __init__(
        self,
        options: Options,
        metrics: ControllerMetrics,
        now: Callable[[], datetime] = _utc_now,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._now = now
        self._monotonic_seconds = monotonic_seconds
        self._memory = Memory()
        self._log = structlog.get_logger()
        self._waits_for = ""

    async def reconcile(self, api: ApiServer) -> Pass:
        """Do the next step, if it is due.

        Raises:
            InvalidInput: the Secret or a caBundle has another owner.
            ApiServerError: the API server does not answer or rejects a request.
        """
        secret = await _read(api, self._options.secret)
        found = [await _read(api, each) for each in self._options.watched[1:]]
        configurations = [each for each in found if each is not None]
        if secret is not None:
            check_owned(secret, self._options.place)
        for each in configurations:
            registration.check_not_injected(each)
        now, seen = self._now(), self._observed(secret, configurations)
        step = plan(seen, self._options.rules, now)
        self._publish(seen, step, now)
        tried = await self._mend(api, configurations, step.ca_bundle)
        if step.is_due:
            await self._change(api, secret, seen, step, now)
            return Pass(step, tried=True)
        if found[0] is None and self._options.creates and step.action in _SERVED:
            waits_for = await self._create(api, step)
            return Pass(step, tried or not waits_for, waits_for)
        return Pass(step, tried)

    def _observed(self, secret: JsonObject | None, configurations: Sequence[JsonObject]) -> Observed:
        bundles, at = bundles_of(configurations), self._monotonic_seconds()
        return Observed(
            artifacts_in(secret),
            bundles,
            self._memory.trusted_for(bundles, at),
            self._memory.unchanged_for(version_of(secret), at),
            requested_rotation(secret),
        )

    def _publish(self, seen: Observed, step: Step, now: datetime) -> None:
        ring = read_ring(seen.artifacts, now)
        self._metrics.rotating.set(step.action is not Action.KEEP)
        self._metrics.show_ends(
            ring.signer.not_valid_after_utc if ring.signer else None,
            ring.pair.server.not_valid_after_utc if ring.pair.server else None,
        )

    async def _mend(self, api: ApiServer, configurations: Sequence[JsonObject], wanted: Certificates) -> bool:
        """Write `wanted` to each caBundle that differs; return whether one did."""
        differs = False
        for configuration in configurations if wanted else ():
            name = configuration["metadata"]["name"]
            operations = mending_patch(configuration, wanted, self._missing(configuration))
            if operations:
                path = next(each.path for each in self._options.watched[1:] if each.name == name)
                writing = api.patch(path, operations, {"fieldManager": OWNER}, _JSON_PATCH)
                await self._counted(MEND, writing, is_new=False, configuration=name, cas=len(wanted))
                differs = True
        return differs

    def _missing(self, configuration: JsonObject) -> list[JsonObject]:
        """Return the webhooks that a configuration made by an earlier version lacks."""
        target = self._options.target
        if not self._options.creates or configuration["metadata"]["name"] != target.configuration:
            return []
        return registration.missing_webhooks(configuration, registration.manifest(target, self._options.coverage))

    async def _change(
        self, api: ApiServer, secret: JsonObject | None, seen: Observed, step: Step, now: datetime
    ) -> None:
        """Write the Secret after `step`, if that changes it."""
        target, path = self._options.target, self._options.secret.path
        artifacts = carried_out(step, seen.artifacts, self._options.rules, now)
        fulfilled = fulfils(step, seen.requested)
        if artifacts == seen.artifacts and not fulfilled:
            return
        if secret is None:
            # A manager of its own: an apply of another controller at the same time conflicts with this one.
            content = new_secret(target.namespace, target.secret, artifacts)
            writing = api.patch(path, content, {"fieldManager": f"{OWNER}-{self._options.instance}"}, _APPLY)
        else:
            patch = secret_patch(secret, artifacts, fulfilled=fulfilled)
            writing = api.patch(path, patch, {"fieldManager": OWNER})
        await self._counted(step.action, writing, is_new=secret is None, reasons="; ".join(step.reasons))

    async def _create(self, api: ApiServer, step: Step) -> str:
        """Create the configuration if API servers would trust the server; return what it waits for otherwise."""
        target, bundle = self._options.target, pem.encode(*step.ca_bundle)
        manifest = registration.manifest(target, self._options.coverage)
        endpoint = registration.endpoint(manifest)
        if self._options.probe_at:
            endpoint = registration.parse_endpoint(self._options.probe_at, endpoint.server_name)
        result = await asyncio.to_thread(probe, endpoint, bundle)
        if result.outcome is not Outcome.TRUSTED:
            waits_for = f"{endpoint} does not serve a certificate of the Secret yet: {result.detail}"
            if waits_for != self._waits_for:
                self._log.info("the webhook configuration is created later", reason=waits_for)
            self._waits_for = waits_for
            return waits_for
        path = self._options.watched[1].path
        content = registration.with_ca_bundle(manifest, bundle)
        writing = api.patch(path, content, {"fieldManager": f"{OWNER}-{self._options.instance}"}, _APPLY)
        await self._counted(CREATE, writing, is_new=True, configuration=target.configuration)
        return ""

    async def _counted(self, action: str, writing: Awaitable[JsonObject], *, is_new: bool, **facts: object) -> None:
        """Count and log one write, of a new object or of one that was read. That another was faster is no error."""
        try:
            await writing
        except ApiServerError as error:
            is_conflict = error.code == _CONFLICT or (error.code == NOT_FOUND and not is_new)
            self._metrics.actions.labels(action, "conflict" if is_conflict else "failed").inc()
            if not is_conflict:
                raise
            self._log.info("another client was faster; the objects are read again", action=action)
            return
        self._metrics.actions.labels(action, "done").inc()
        self._log.info("certificates changed", action=action, **facts)


async def _read(api: ApiServer, watched: Watched) -> JsonObject | None:
    try:
        return await api.get(watched.path, {})
    except ApiServerError as error:
        if error.code == NOT_FOUND:
            return None
        raise
