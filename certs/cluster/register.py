"""Register certificates in a cluster: in the Secret, and their CA in the caBundle of the webhook configuration.

Nothing is written before the probe succeeds, and the API server trusts the served certificate at all times:

    no Secret yet    probe ─► Secret ─► caBundle
    Secret exists    probe ─► caBundle (new CA beside the old) ─► Secret ─► server reads the new certificate

A server that cannot start without the Secret, or that only has an expired certificate, cannot pass a probe. With
`secret_first`, the Secret is written first, and the caBundle after the probe:

    Secret ─► server starts, or reads the new certificate ─► probe ─► caBundle
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime

from certs import registration
from certs.cluster.client import Cluster, configuration_named, secret_of
from certs.cluster.probe import Called, Outcome, probe
from certs.inspection import Artifacts, inspect, unexpired
from certs.names import ServerNames, names_of
from certs.pem import certificates, encode, readable_certificates
from certs.pki import SERVER_VALIDITY
from certs.plan import Action, Rules, Step, carried_out, plan_at_once
from certs.registration import Endpoint, Target
from certs.secret import artifacts_in, is_owned, new_secret
from certs.webhook_rules import WebhookRules
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, forbidden, invalid, required
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND

_ATTEMPTS = 5
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Registration:
    """The certificates to register and how.

    If `artifacts` is None, the content of the Secret is used while it is valid, or new certificates are issued. `names`
    are the names of a newly issued certificate, or None for those of the Service or the host of the url. `force` always
    replaces the certificates and takes over the ownership of the Secret. `secret_first` writes the Secret before the
    probe if it is missing or its certificate is not trusted. `webhook_rules` select the objects for which the webhooks
    are called; if it is None, an existing configuration keeps its rules. `only_ca_bundle` changes only the
    caBundle in the configuration.

    The probe is repeated for `wait_seconds`. It connects to `endpoint`, if set, instead of the address of the webhook.
    With `require_probe`, an unreachable server is an error.
    """

    target: Target
    artifacts: Artifacts | None = None
    names: ServerNames | None = None
    force: bool = False
    secret_first: bool = False
    webhook_rules: WebhookRules | None = None
    only_ca_bundle: bool = False
    skip_probe: bool = False
    require_probe: bool = False
    wait_seconds: float = 0.0
    endpoint: str | None = None


async def register(cluster: Cluster, wanted: Registration, now: datetime) -> AsyncIterator[str]:
    """Register the certificates and yield a description of each completed step.

    Raises:
        InvalidInput: the certificates are not valid for serving, the Secret has another owner, or the server that
            answers is not trusted.
        ApiServerError: the API server does not answer or rejects a request.
    """
    target, place = wanted.target, wanted.target.secret_place
    manifest = registration.manifest(target, wanted.webhook_rules)
    found = await cluster.read(configuration_named(target.configuration))
    registration.check_not_injected(found or manifest)
    called = registration.endpoint_of(manifest if target.url else found or manifest)
    secret = await cluster.read(secret_of(target))
    # This command stores no key of a CA, because every pod that mounts the Secret could read it.
    held = replace(artifacts_in(secret), ca_key=None)
    artifacts, why = _artifacts(wanted, held, called, now)
    _check(artifacts, "--dir" if wanted.artifacts is not None else place, called, now)
    if secret is not None and is_owned(secret) and artifacts != held:
        detail = "the certs controller maintains it: `placement-webhook certs rotate` renews its certificates"
        raise InvalidInput([forbidden(place, f"{detail}; to replace it, remove the controller and the Secret")])
    is_first = wanted.secret_first and bool(inspect(held, now).serving_errors())
    if is_first:
        yield await _write_secret(cluster, wanted, artifacts, why)
    yield await _probed(called, merged_ca_bundle(artifacts, held, found, now), wanted)
    if secret is None and not is_first:
        yield await _write_secret(cluster, wanted, artifacts, why)
    yield await _write_configuration(cluster, wanted, manifest, artifacts, held, now)
    if secret is not None and not is_first:
        is_kept = artifacts == held
        yield f"{place}: kept; {why}" if is_kept else await _write_secret(cluster, wanted, artifacts, why)


def _artifacts(wanted: Registration, held: Artifacts, called: Endpoint, now: datetime) -> tuple[Artifacts, str]:
    """Return the certificates to register (given, from the Secret, or newly issued), and the reason for the choice."""
    if wanted.artifacts is not None:
        return replace(wanted.artifacts, ca_key=None), "as given"
    found = inspect(held, now)
    step = plan_at_once(found, now, names=wanted.names, replacing=wanted.force, ca_key_kept=False)
    step.check("--force replaces it", wanted.target.secret_place)
    if step.action is Action.KEEP:
        if found.names.covers(called.server_name):
            return held, "; ".join(step.reasons)
        step = Step(Action.ISSUE, (f"not for {called.server_name}",))
    # The key of this CA is not kept, so the CA does not need to outlive the one certificate it has signed.
    rules = Rules(wanted.names or registration.names_to_serve(wanted.target, called), ca_validity=SERVER_VALIDITY)
    return replace(carried_out(step, held, rules, now), ca_key=None), f"issued: {'; '.join(step.reasons)}"


def _check(artifacts: Artifacts, place: str, called: Endpoint, now: datetime) -> None:
    found = inspect(artifacts, now)
    errors = found.serving_errors()
    if not errors and not found.names.covers(called.server_name):
        detail = f"must be valid for {called.server_name}, which the API server will ask for; issue one with that name"
        errors = [invalid("tls.crt", str(found.names), detail)]
    if errors:
        raise InvalidInput(error.prefixed(place) for error in errors)


def merged_ca_bundle(artifacts: Artifacts, held: Artifacts, configuration: JsonObject | None, now: datetime) -> bytes:
    """Return, each once: the new CA, that of the served certificate, and the valid CAs that are trusted now."""
    others = (held.ca_certificate or b"", *registration.ca_bundles(configuration or {}))
    known = (certificate for each in others for certificate in readable_certificates(each))
    own = certificates(artifacts.ca_certificate or b"", "ca.crt")
    return encode(*dict.fromkeys((*own, *unexpired(known, now))))


async def _probed(called: Endpoint, bundle: bytes, wanted: Registration) -> str:
    if wanted.skip_probe:
        return "probe: skipped"
    at = registration.parse_endpoint(wanted.endpoint, called.server_name) if wanted.endpoint else called
    result = await probe_until_trusted(at, bundle, wanted.wait_seconds)
    if result.trusted:
        return f"probe: {at}: {result.detail}"
    if result.outcome is Outcome.UNREACHABLE and not wanted.require_probe:
        return f"probe: {at}: not reachable from here ({result.detail}); registered without a probe"
    detail = f"{result.detail}; the API server would not trust it, and the webhook is not registered"
    if result.outcome is Outcome.UNREACHABLE:
        detail = f"not reachable ({result.detail}), and the webhook is not registered"
    raise InvalidInput([invalid("probe", str(at), f"{detail}; --skip-probe registers it without a probe")])


async def probe_until_trusted(endpoint: Endpoint, bundle: bytes, wait_seconds: float) -> Called:
    """Return the outcome of a TLS handshake, retried for `wait_seconds` until the server is up and trusted."""
    deadline = time.monotonic() + wait_seconds
    while True:
        result = await asyncio.to_thread(probe, endpoint, bundle)
        if result.trusted or time.monotonic() + _PAUSE_SECONDS > deadline:
            return result
        await asyncio.sleep(_PAUSE_SECONDS)


async def _write_configuration(
    cluster: Cluster, wanted: Registration, manifest: JsonObject, artifacts: Artifacts, held: Artifacts, now: datetime
) -> str:
    target = wanted.target
    name, place = configuration_named(target.configuration), f"MutatingWebhookConfiguration {target.configuration}"
    for _ in range(_ATTEMPTS):
        found = await cluster.read(name)
        bundle = merged_ca_bundle(artifacts, held, found, now)
        count = len(certificates(bundle, "caBundle"))
        counted = "1 CA in caBundle" if count == 1 else f"{count} CAs in caBundle"
        if found is None:
            await cluster.apply(name, registration.with_ca_bundle(manifest, bundle))
            return f"{place}: created, {counted}"
        added = [] if wanted.only_ca_bundle else registration.missing_webhooks(found, manifest)
        webhook_rules = None if wanted.only_ca_bundle else wanted.webhook_rules
        changes = [] if webhook_rules is None else registration.changed_rules(found, webhook_rules)
        operations = registration.ca_bundle_patch(found, bundle, target.url, added, changes)
        if not operations:
            return f"{place}: unchanged, {counted}"
        if await cluster.change(name, operations):
            names = ", ".join(webhook["name"] for webhook in added)
            return f"{place}: patched, {counted}{f'; added {names}' if names else ''}" + (
                "; rules changed to those of the policy" if changes else ""
            )
    raise InvalidInput([required(place, "another client keeps changing it; try again")])


async def _write_secret(cluster: Cluster, wanted: Registration, artifacts: Artifacts, why: str) -> str:
    target, content = wanted.target, new_secret(wanted.target, artifacts, is_owned=False)
    try:
        await cluster.apply(secret_of(target), content, force=wanted.force)
    except ApiServerError as error:
        if error.code != NOT_FOUND:
            raise
        remedy = f"`kubectl create namespace {target.namespace}` creates it, --namespace names another one"
        raise ApiServerError(f"{error}; {remedy}", error.code) from error
    server = certificates(artifacts.certificate or b"", "tls.crt")[0]
    until = f"until {server.not_valid_after_utc:%Y-%m-%d}"
    return f"{target.secret_place}: written ({why}); valid for {names_of(server)} {until}"
