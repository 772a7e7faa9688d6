"""Register certificates in a cluster: in the Secret, and their CA in the caBundle of the webhook configuration.

Nothing is written before the probe succeeds, and the API server trusts the served certificate at all times:

    no Secret yet    probe ─► Secret ─► caBundle
    Secret exists    probe ─► caBundle (new CA beside the old) ─► Secret ─► server reads the new certificate

A server that cannot start without the Secret, or that only has an expired certificate, cannot pass a probe. With
`secret_first`, the Secret is written first, and the caBundle after the probe:

    Secret ─► server starts, or reads the new certificate ─► probe ─► caBundle
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from certs import registration
from certs.inspection import Artifacts, inspect
from certs.names import ServerNames, names_of, server_names, service_names
from certs.pem import certificates
from certs.pki import SERVER_VALIDITY, issue_ca, issue_server
from certs.plan import Action, plan
from certs.registration import Endpoint, Target
from certs.rotation.secret import is_owned
from certs.store.cluster import Cluster, JsonObject, artifacts_of
from certs.store.probe import Outcome, probe
from certs.webhook_rules import Coverage
from webhook.kube.field import FieldError, InvalidInput, forbidden, invalid, required

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Probing:
    """Options of the probe: skip it, how long to wait, and whether an unreachable server is an error (`required`)."""

    skip: bool = False
    required: bool = False
    wait_seconds: float = 0.0
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """The certificates to register and how.

    `artifacts` None: the content of the Secret while it is valid, otherwise newly issued certificates. `names` are the
    names of a newly issued certificate; None: those of the Service, or the host of the url. `force` replaces the
    certificates in any case and takes over ownership of the Secret. `secret_first` writes the Secret before the probe
    if it is missing or its certificate is not trusted. `coverage` are the objects that the webhooks are called for;
    None: an existing configuration keeps its rules. `only_ca_bundle` changes nothing else in it.
    """

    target: Target
    artifacts: Artifacts | None = None
    names: ServerNames | None = None
    probing: Probing = Probing()
    force: bool = False
    secret_first: bool = False
    coverage: Coverage | None = None
    only_ca_bundle: bool = False


def register(cluster: Cluster, wanted: Registration, now: datetime) -> Iterator[str]:
    """Register the certificates and yield a description of each completed step.

    Raises:
        InvalidInput: the certificates are not valid for serving, the Secret has another owner, or the server that
            answers is not trusted.
        ClusterError: the API server does not answer or rejects a request.
    """
    target = wanted.target
    found = cluster.configuration(target.configuration)
    configuration = found or _manifest(wanted)
    registration.check_not_injected(configuration)
    called = registration.endpoint(registration.manifest(target) if target.url else configuration)
    secret = cluster.secret(target.namespace, target.secret)
    held = artifacts_of(secret) if secret else Artifacts()
    artifacts, why = _artifacts(wanted, held, called, now)
    _check(artifacts, "--dir" if wanted.artifacts is not None else _place(target), called, now)
    if secret is not None and is_owned(secret) and artifacts != held:
        detail = "the certs controller maintains it: `placement-webhook certs rotate` renews its certificates"
        raise InvalidInput(
            [forbidden(_place(target), f"{detail}; to replace it, remove the controller and the Secret")]
        )
    is_first = wanted.secret_first and bool(inspect(held, now).serving_errors())
    if is_first:
        yield _write_secret(cluster, wanted, artifacts, why)
    bundle = _bundle(artifacts, held, found, now)
    yield _probed(called, bundle, wanted.probing)
    if secret is None and not is_first:
        yield _write_secret(cluster, wanted, artifacts, why)
    yield _write_configuration(cluster, wanted, artifacts, held, now)
    if secret is not None and not is_first:
        yield _write_secret(cluster, wanted, artifacts, why) if artifacts != held else f"{_place(target)}: kept; {why}"


def _artifacts(wanted: Registration, held: Artifacts, called: Endpoint, now: datetime) -> tuple[Artifacts, str]:
    """Return the certificates to register (given, from the Secret, or newly issued) and why these were chosen."""
    if wanted.artifacts is not None:
        given = wanted.artifacts
        return Artifacts(ca_certificate=given.ca_certificate, certificate=given.certificate, key=given.key), "as given"
    found = inspect(held, now)
    todo = plan(found, now, names=wanted.names, replace=wanted.force, ca_key_kept=False)
    if todo.action is Action.REFUSE:
        remedy = [
            FieldError(error.path, error.reason, error.value, f"{error.detail}; --force replaces it")
            for error in todo.obstacles
        ]
        raise InvalidInput(error.prefixed(_place(wanted.target)) for error in remedy)
    if todo.action is Action.KEEP and found.names.covers(called.server_name):
        return held, "; ".join(todo.reasons)
    names = wanted.names or _default_names(wanted.target, called)
    # The key of this CA is not kept, so the CA does not need to outlive the one certificate it has signed.
    ca = issue_ca(now=now, validity=SERVER_VALIDITY)
    server = issue_server(ca, dns_names=names.dns_names, ip_addresses=map(str, names.ip_addresses), now=now)
    reason = f"not for {called.server_name}" if todo.action is Action.KEEP else "; ".join(todo.reasons)
    return Artifacts(ca_certificate=ca.certificate, certificate=server.certificate, key=server.key), f"issued: {reason}"


def _default_names(target: Target, called: Endpoint) -> ServerNames:
    if not target.url:
        return server_names(service_names(target.service, target.namespace))
    try:
        return server_names([], [called.server_name])
    except InvalidInput:
        return server_names([called.server_name])


def _check(artifacts: Artifacts, place: str, called: Endpoint, now: datetime) -> None:
    found = inspect(artifacts, now)
    errors = found.serving_errors()
    if not errors and not found.names.covers(called.server_name):
        detail = f"must be valid for {called.server_name}, which the API server will ask for; issue one with that name"
        errors = [invalid("tls.crt", str(found.names), detail)]
    if errors:
        raise InvalidInput(error.prefixed(place) for error in errors)


def _bundle(artifacts: Artifacts, held: Artifacts, configuration: JsonObject | None, now: datetime) -> bytes:
    """Return the new CA, the CA that is served until the server reads the new Secret, and the CAs trusted so far."""
    before = registration.ca_bundles(configuration) if configuration else []
    return registration.merged_ca_bundle(artifacts.ca_certificate or b"", [held.ca_certificate or b"", *before], now)


def _probed(called: Endpoint, bundle: bytes, probing: Probing) -> str:
    if probing.skip:
        return "probe: skipped"
    at = registration.parse_endpoint(probing.endpoint, called.server_name) if probing.endpoint else called
    result = probe(at, bundle, probing.wait_seconds)
    if result.outcome is Outcome.TRUSTED:
        return f"probe: {at}: {result.detail}"
    if result.outcome is Outcome.UNREACHABLE and not probing.required:
        return f"probe: {at}: not reachable from here ({result.detail}); registered without a probe"
    detail = f"{result.detail}; the API server would not trust it, and the webhook is not registered"
    if result.outcome is Outcome.UNREACHABLE:
        detail = f"not reachable ({result.detail}), and the webhook is not registered"
    raise InvalidInput([invalid("probe", str(at), f"{detail}; --skip-probe registers it without a probe")])


def _write_configuration(
    cluster: Cluster, wanted: Registration, artifacts: Artifacts, held: Artifacts, now: datetime
) -> str:
    target = wanted.target
    place, manifest = f"MutatingWebhookConfiguration {target.configuration}", _manifest(wanted)
    for _ in range(_ATTEMPTS):
        found = cluster.configuration(target.configuration)
        bundle = _bundle(artifacts, held, found, now)
        count = _ca_count_text(len(certificates(bundle, "caBundle")))
        if found is None:
            cluster.apply_configuration(registration.with_ca_bundle(manifest, bundle))
            return f"{place}: created, {count} in caBundle"
        added, changes = _other_changes(found, manifest, wanted)
        operations = registration.ca_bundle_patch(found, bundle, target.url, added, changes)
        if not operations:
            return f"{place}: unchanged, {count} in caBundle"
        if cluster.patch_configuration(target.configuration, operations):
            names = ", ".join(webhook["name"] for webhook in added)
            return f"{place}: patched, {count} in caBundle{f'; added {names}' if names else ''}" + (
                "; rules changed to those of the policy" if changes else ""
            )
    raise InvalidInput([required(place, "another client keeps changing it; try again")])


def _manifest(wanted: Registration) -> JsonObject:
    return registration.manifest(wanted.target, wanted.coverage)


def _other_changes(
    found: JsonObject, manifest: JsonObject, wanted: Registration
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the webhooks to add to `found`, and the operations that change the rules of its own ones."""
    if wanted.only_ca_bundle:
        return [], []
    changes = registration.changed_rules(found, wanted.coverage) if wanted.coverage is not None else []
    return registration.missing_webhooks(found, manifest), changes


def _write_secret(cluster: Cluster, wanted: Registration, artifacts: Artifacts, why: str) -> str:
    cluster.apply_secret(wanted.target.namespace, wanted.target.secret, artifacts, force=wanted.force)
    server = certificates(artifacts.certificate or b"", "tls.crt")[0]
    return (
        f"{_place(wanted.target)}: written ({why}); "
        f"valid for {names_of(server)} until {server.not_valid_after_utc:%Y-%m-%d}"
    )


def _place(target: Target) -> str:
    return f"Secret {target.namespace}/{target.secret}"


def _ca_count_text(count: int) -> str:
    return "1 CA" if count == 1 else f"{count} CAs"
