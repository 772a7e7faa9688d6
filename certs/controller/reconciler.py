"""One pass of the certs controller. Its writes fail if another client was faster, so several are harmless."""

import asyncio
import time
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from cryptography import x509

from certs import pem, registration
from certs.cluster.client import Cluster, ObjectName, configuration_named, secret_of
from certs.cluster.probe import probe
from certs.controller.admin import CREATE, MEND, RECORD, ControllerMetrics
from certs.inspection import Certificates, read_key_material
from certs.plan import Action, Observed, Rules, Step, carried_out, fulfils, plan
from certs.registration import Target
from certs.secret import (
    OWNER,
    artifacts_in,
    check_owned,
    new_secret,
    recorded_settings,
    requested_rotation,
    secret_patch,
    settings_patch,
    version_of,
)
from certs.webhook_rules import WebhookRules
from webhook.documents.documents import JsonObject
from webhook.watch.api_errors import ApiServerError, is_accepted
from webhook.watch.api_server import CONFLICT, ApiServer

_PROBE_AGAIN = timedelta(seconds=2)
_SERVED = (Action.KEEP, Action.DROP_OLD_CA)


@dataclass(frozen=True, slots=True)
class Options:
    """The objects that the controller maintains, and the settings for this.

    `target` names the Secret and the address of the webhook. `configurations` are the names of the webhook
    configurations whose caBundles are maintained. With `creates`, the first of these configurations is created once the
    server is trusted, for the objects of `webhook_rules` (None means those of the built-in policy), and missing
    webhooks are added to it. `probe_at` is the HOST:PORT to probe instead of the address of the webhook. `instance` is
    the name of this controller, which is unique among the controllers of one Secret.
    """

    target: Target
    configurations: tuple[str, ...]
    rules: Rules
    instance: str
    creates: bool = False
    webhook_rules: WebhookRules | None = None
    probe_at: str | None = None

    @property
    def watched(self) -> tuple[ObjectName, ...]:
        """Return all objects of the controller, the Secret first."""
        return (secret_of(self.target), *map(configuration_named, self.configurations))


class Memory:
    """The times, in monotonic seconds, since which the Secret is unchanged and each CA is trusted.

    These times are not stored. A restarted controller waits for the full times again, which is always safe.
    """

    def __init__(self) -> None:
        self._version = ""
        self._unchanged_since = 0.0
        self._trusted_since: dict[x509.Certificate, float] = {}

    def unchanged_for(self, version: str, now_seconds: float) -> timedelta:
        """Return the time for which the Secret has had this `version`: its uid and resourceVersion.

        Any write counts as a change. If a Secret was replaced and then restored, its content is the same, but replicas
        may serve the content from in between.
        """
        if version != self._version:
            self._version, self._unchanged_since = version, now_seconds
        return timedelta(seconds=now_seconds - self._unchanged_since)

    def trusted_for(self, bundles: tuple[Certificates, ...], now_seconds: float) -> dict[x509.Certificate, timedelta]:
        """Return the time for which each CA has been in every one of `bundles`."""
        common = set.intersection(*map(set, bundles)) if bundles else set()
        self._trusted_since = {ca: self._trusted_since.get(ca, now_seconds) for ca in common}
        return {ca: timedelta(seconds=now_seconds - since) for ca, since in self._trusted_since.items()}


@dataclass(frozen=True, slots=True)
class Pass:
    """The result of one pass: the planned step, whether a write was tried, and what the controller waits for.

    After a write, including one that failed because another client was faster, the objects are read again at once.
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


class Reconciler:
    """Compares the objects with their desired state, and changes them."""

    def __init__(self, options: Options, metrics: ControllerMetrics) -> None:
        self._options = options
        self._metrics = metrics
        self._memory = Memory()
        self._log = structlog.get_logger()
        self._waits_for = ""

    async def reconcile(self, api: ApiServer) -> Pass:
        """Carry out the next step, if it is due.

        Raises:
            InvalidInput: the Secret or a caBundle has another owner.
            ApiServerError: the API server does not answer or rejects a request.
        """
        cluster, options = Cluster(api, OWNER), self._options
        secret, *found = [await cluster.read(each) for each in options.watched]
        configurations = [each for each in found if each is not None]
        if secret is not None:
            check_owned(secret, options.target.secret_place)
        for each in configurations:
            registration.check_not_injected(each)
        now, at = datetime.now(UTC), time.monotonic()
        bundles = registration.trusted_certificates(configurations)
        times = (self._memory.trusted_for(bundles, at), self._memory.unchanged_for(version_of(secret), at))
        seen = Observed(artifacts_in(secret), bundles, *times, requested_rotation(secret))
        step = plan(seen, options.rules, now)
        keys = read_key_material(seen.artifacts, now)
        self._metrics.show(keys.signer, keys.pair.server, is_rotating=step.action is not Action.KEEP)
        tried = await self._mend(cluster, configurations, step.ca_bundle)
        if step.is_due:
            await self._change(cluster, secret, seen, step, now)
            return Pass(step, tried=True)
        if found[0] is None and options.creates and step.action in _SERVED:
            waits_for = await self._create(cluster, pem.encode(*step.ca_bundle), recorded_settings(secret))
            return Pass(step, tried or not waits_for, waits_for)
        if found[0] is not None and options.creates and secret is not None:
            tried = await self._record(cluster, secret, found[0]) or tried
        return Pass(step, tried)

    async def _mend(self, cluster: Cluster, configurations: Collection[JsonObject], wanted: Certificates) -> bool:
        """Write `wanted` to each caBundle that differs. Return whether any differed."""
        differs = False
        for configuration in configurations if wanted else ():
            name = configuration["metadata"]["name"]
            operations = registration.mending_patch(configuration, wanted, self._missing(configuration))
            if operations:
                writing = cluster.change(configuration_named(name), operations)
                await self._counted(MEND, writing, configuration=name, cas=len(wanted))
                differs = True
        return differs

    def _missing(self, configuration: JsonObject) -> list[JsonObject]:
        """Return the webhooks that a configuration made by an earlier version lacks."""
        target = self._options.target
        if not self._options.creates or configuration["metadata"]["name"] != target.configuration:
            return []
        return registration.missing_webhooks(configuration, registration.manifest(target, self._options.webhook_rules))

    async def _change(
        self, cluster: Cluster, secret: JsonObject | None, seen: Observed, step: Step, now: datetime
    ) -> None:
        name = secret_of(self._options.target)
        artifacts = carried_out(step, seen.artifacts, self._options.rules, now)
        fulfilled = fulfils(step, seen.requested)
        if artifacts == seen.artifacts and not fulfilled:
            return
        if secret is None:
            writing = self._created(cluster, name, new_secret(self._options.target, artifacts))
        else:
            writing = cluster.change(name, secret_patch(secret, artifacts, fulfilled=fulfilled))
        await self._counted(step.action, writing, reasons="; ".join(step.reasons))

    async def _record(self, cluster: Cluster, secret: JsonObject, configuration: JsonObject) -> bool:
        """Record an administrator's settings of the configuration in the Secret, in case it is deleted."""
        settings = registration.own_settings(configuration, registration.manifest(self._options.target))
        if settings == recorded_settings(secret):
            return False
        name = secret_of(self._options.target)
        await self._counted(RECORD, cluster.change(name, settings_patch(secret, settings)), webhooks=list(settings))
        return True

    async def _create(self, cluster: Cluster, bundle: bytes, settings: JsonObject) -> str:
        """Create the configuration if API servers would trust the server. Otherwise return the reason to wait."""
        target, at = self._options.target, self._options.probe_at
        manifest = registration.manifest(target, self._options.webhook_rules)
        for webhook in manifest["webhooks"]:
            webhook.update(settings.get(webhook["name"], {}))
        endpoint = registration.endpoint_of(manifest)
        if at:
            endpoint = registration.parse_endpoint(at, endpoint.server_name)
        result = await asyncio.to_thread(probe, endpoint, bundle)
        if not result.trusted:
            waits_for = f"{endpoint} does not serve a certificate of the Secret yet: {result.detail}"
            if waits_for != self._waits_for:
                self._log.info("the webhook configuration is created later", reason=waits_for)
            self._waits_for = waits_for
            return waits_for
        content = registration.with_ca_bundle(manifest, bundle)
        writing = self._created(cluster, self._options.watched[1], content)
        await self._counted(CREATE, writing, configuration=target.configuration)
        return ""

    async def _created(self, cluster: Cluster, name: ObjectName, content: JsonObject) -> bool:
        """Create an object. Return false if another controller has created it in the meantime."""
        # A manager of its own: an apply of another controller at the same time conflicts with this one.
        return await is_accepted(cluster.apply(name, content, manager=f"{OWNER}-{self._options.instance}"), CONFLICT)

    async def _counted(self, action: str, writing: Awaitable[bool], **facts: object) -> None:
        """Count and log one write. `writing` returns false if another client was faster, which is not an error."""
        try:
            is_done = await writing
        except ApiServerError:
            self._metrics.actions.labels(action, "failed").inc()
            raise
        self._metrics.actions.labels(action, "done" if is_done else "conflict").inc()
        if is_done:
            self._log.info("certificates changed", action=action, **facts)
        else:
            self._log.info("another client was faster; the objects are read again", action=action)
