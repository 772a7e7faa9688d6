"""Report the state of certificates: in a directory, in the cluster's Secret, and in the caBundle. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from certs import pem, registration
from certs.chain import distrust, unfit_for_server
from certs.cluster.probe import Called
from certs.inspection import (
    CA_CERTIFICATE,
    CERTIFICATE,
    KEY,
    Artifacts,
    Fault,
    Inspection,
    expires_soon,
    inspect,
    read_key_material,
    time_left,
)
from certs.names import ServerNames, names_of
from certs.plan import Action, Observed, Rules, plan, plan_at_once
from certs.secret import artifacts_in, is_owned, requested_rotation
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import FieldError, invalid, required
from webhook.documents.text import printable

_STATES = {
    Action.KEEP: "one CA is trusted",
    Action.ISSUE_SERVING: "one CA is trusted, and a new server certificate is to be issued",
    Action.ADD_NEXT_CA: "a CA is to be added",
    Action.SWITCH_TO_NEXT_CA: "the next CA is added, and replicas serve certificates of the old one",
    Action.DROP_OLD_CA: "certificates of the next CA are served, and the old one is still trusted",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Certificates and their location. `errors` are other errors of the place.

    `ca_key_kept`: the place keeps the key of its CA. `rotation` is the state of a Secret that the certs controller
    maintains; None for other places.
    """

    name: str
    artifacts: Artifacts
    ca_key_kept: bool
    errors: tuple[FieldError, ...] = ()
    rotation: JsonObject | None = None


def rotation_of(secret: JsonObject | None, configurations: Iterable[JsonObject], now: datetime) -> JsonObject | None:
    """Return the state of a Secret of the controller as one JSON object; None for a Secret of another owner.

    `waitSeconds` is the longest time that the controller waits before the next action, with its default settings. It
    waits less if it has observed the objects for some time.
    """
    if secret is None or not is_owned(secret):
        return None
    artifacts, requested = artifacts_in(secret), requested_rotation(secret)
    seen = Observed(artifacts, registration.trusted_certificates(configurations), requested=requested)
    step = plan(seen, Rules(read_key_material(artifacts, now).pair.names), now)
    return {
        "state": _STATES[step.action],
        "next": str(step.action),
        "reasons": list(step.reasons),
        "waitSeconds": int(step.wait.total_seconds()),
        "requested": str(requested) if requested else None,
    }


def rotation_line(rotation: JsonObject) -> str:
    """Return the state of a rotation as one line."""
    seconds, is_kept = rotation["waitSeconds"], rotation["next"] == Action.KEEP
    wait, until = ("", f", the next renewal in {seconds // 86400} days") if is_kept else (f" within {seconds} s", "")
    return f"{rotation['state']}; next {rotation['next']}{wait}: {'; '.join(rotation['reasons'])}{until}"


def report(
    places: Iterable[Place],
    configuration: JsonObject | None,
    now: datetime,
    least_left: timedelta | None,
    called: Sequence[Called | None] = (),
    *,
    require_call: bool = False,
) -> JsonObject:
    """Return facts and problems as one JSON object; `healthy`: there are no problems.

    A certificate that `expires_soon` is a problem. The certificate of each place is verified against the caBundle of
    each webhook of `configuration`, if any. `called` has a result for each of these webhooks, or none; with
    `require_call`, a server that is not reachable is a problem.
    """
    is_injected = registration.injected_by(configuration or {}) is not None
    described: list[JsonObject] = []
    problems: list[FieldError] = []
    for place in places:
        found = inspect(place.artifacts, now)
        described.append(_place(place, found, now))
        errors = [*place.errors, *_errors(place, found, now, least_left, is_injected=is_injected)]
        if configuration is not None:
            # cert-manager stores no CA for an ACME issuer: the caBundle decides.
            errors = [each for each in errors if each.path != CA_CERTIFICATE or place.artifacts.ca_certificate]
            errors += _untrusting(configuration, place.artifacts, now) if found.server is not None else ()
        problems.extend(error.prefixed(place.name) for error in errors)
    if configuration is not None:
        problems.extend(_calling_errors(configuration, called, now, least_left, require_call=require_call))
    missing = registration.missing_webhooks(configuration or {}, registration.manifest(registration.Target()))
    return {
        "healthy": not problems,
        "places": described,
        "webhooks": [] if configuration is None else list(_webhooks(configuration, called, now)),
        "missingWebhooks": [webhook["name"] for webhook in missing],
        "problems": [str(error) for error in problems],
    }


def _errors(
    place: Place, found: Inspection, now: datetime, least_left: timedelta | None, *, is_injected: bool
) -> Iterator[FieldError]:
    for problem in found.problems:
        # The CA's key may be kept elsewhere or not at all.
        if problem.fault is not Fault.MISSING or problem.file in (CA_CERTIFICATE, CERTIFICATE, KEY):
            yield problem.error
    renewal = "`placement-webhook certs register` renews it"
    if place.rotation is not None:
        renewal = "the certs controller renews it; check that it runs"
    elif is_injected and not place.ca_key_kept:
        renewal = "cert-manager renews it; check its Certificate"
    elif place.ca_key_kept:
        renewal = "`placement-webhook certs issue` and `certs register` renew it"
    for file, certificate in ((CA_CERTIFICATE, found.ca), (CERTIFICATE, found.server)):
        end = certificate.not_valid_after_utc if certificate else now
        if certificate and now < end and expires_soon(certificate, now, least_left):
            yield invalid(file, f"{end:%Y-%m-%d}", f"{time_left(end, now)}; {renewal}")


def _place(place: Place, found: Inspection, now: datetime) -> JsonObject:
    server, key_faults = found.server, {problem.fault for problem in found.faults(KEY)}
    chain_faults = {problem.fault for problem in found.faults(CERTIFICATE)} & {Fault.FOREIGN, Fault.UNTRUSTED}
    step = plan_at_once(found, now, ca_key_kept=place.ca_key_kept)
    following = place.rotation or {"next": str(step.action), "reasons": list(step.reasons)}
    return {
        "place": place.name,
        "ca": _certificate(found.ca, now) if found.ca else None,
        "certificate": _certificate(server, now) | _names(found.names) if server else None,
        "keyMatches": server is not None and not key_faults,
        "chainVerifies": found.ca is not None and server is not None and not chain_faults,
        "caKey": place.artifacts.ca_key is not None,
        "next": following["next"],
        "reasons": following["reasons"],
        "rotation": place.rotation,
    }


def _certificate(certificate: x509.Certificate, now: datetime) -> JsonObject:
    end = certificate.not_valid_after_utc
    return {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "notBefore": f"{certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}",
        "notAfter": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        # Whole days since the end are negative.
        "daysLeft": int((end - now) / timedelta(days=1)),
        "expires": time_left(end, now),
        "sha256": certificate.fingerprint(SHA256()).hex(),
    }


def _names(names: ServerNames) -> JsonObject:
    return {"dnsNames": list(names.dns_names), "ipAddresses": [str(each) for each in names.ip_addresses]}


def _webhooks(configuration: JsonObject, called: Sequence[Called | None], now: datetime) -> Iterator[JsonObject]:
    bundles = registration.ca_bundles(configuration)
    for webhook, bundle, call in zip_longest(configuration.get("webhooks") or (), bundles, called):
        yield {
            "configuration": field(configuration, "metadata", "name"),
            "name": webhook.get("name"),
            "caBundle": [_certificate(ca, now) for ca in pem.readable_certificates(bundle)],
            "served": _served(call, now) if call else None,
        }


def _served(call: Called, now: datetime) -> JsonObject:
    sent = call.certificate
    return {
        "endpoint": call.address,
        "reachable": sent is not None,
        "trusted": call.trusted,
        "detail": call.detail,
        "certificate": _certificate(sent, now) | _names(names_of(sent)) if sent else None,
    }


def _calling_errors(
    configuration: JsonObject,
    called: Sequence[Called | None],
    now: datetime,
    least_left: timedelta | None,
    *,
    require_call: bool,
) -> Iterator[FieldError]:
    """Yield an error for each webhook whose server the API server does not trust, or only for a short time."""
    for index, call in enumerate(called):
        if call is None:
            continue
        sent, detail = call.certificate, ""
        if sent is None:
            detail = f"is not reachable: {call.detail}; check that the server runs" if require_call else ""
        elif not call.trusted:
            reason = f"{unfit_for_server(sent) or call.detail}; compare its names, expiry and issuer with the caBundle"
            detail = f"serves a certificate that API servers do not trust: {reason}"
        elif expires_soon(sent, now, least_left):
            detail = f"serves a certificate that {time_left(sent.not_valid_after_utc, now)}; renew it"
        if detail:
            place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}: webhooks[{index}]"
            yield invalid(place, call.address, detail)


def _untrusting(configuration: JsonObject, artifacts: Artifacts, now: datetime) -> Iterator[FieldError]:
    """Yield an error for each webhook whose caBundle does not trust the server certificate."""
    chain = pem.certificates(artifacts.certificate or b"", CERTIFICATE)
    name = field(configuration, "metadata", "name")
    is_injected = registration.injected_by(configuration) is not None
    trusted = registration.trusted_certificates([configuration])
    if not trusted:
        remedy = "its manifest has them" if is_injected else "`placement-webhook certs register` makes it"
        yield required(f"MutatingWebhookConfiguration {name}", f"a webhook; {remedy}")
    for index, found in enumerate(trusted):
        cas = [ca for ca in found if now < ca.not_valid_after_utc]
        if unfit_for_server(chain[0]) is None and distrust(chain, cas, now) is not None:
            path = f"MutatingWebhookConfiguration {name}: webhooks[{index}].clientConfig.caBundle"
            remedy = "cert-manager's cainjector" if is_injected else "`placement-webhook certs register`"
            yield required(path, f"must hold the CA of {CERTIFICATE}; {remedy} puts it there")


def as_text(facts: JsonObject, configuration: JsonObject | None) -> str:
    """Return the facts of a report, a few lines for each place and webhook; the caller shows the problems."""
    is_injected = registration.injected_by(configuration or {}) is not None
    remedy = "apply its manifest again" if is_injected else "`placement-webhook certs register` adds it"
    lines: list[str] = []
    for place in facts["places"]:
        lines += [place["place"], *_place_lines(place)]
    for webhook in facts["webhooks"]:
        lines.append(f"MutatingWebhookConfiguration {webhook['configuration']}, webhook {webhook['name']}")
        lines.extend(f"  caBundle     {_described(ca)}" for ca in webhook["caBundle"] or [None])
        lines.extend(_served_lines(webhook["served"]) if webhook["served"] else ())
    for name in facts["missingWebhooks"]:
        lines += [f"webhook {name}", f"  not registered; {remedy}"]
    return "".join(f"{printable(line)}\n" for line in lines)


def _place_lines(place: JsonObject) -> Iterator[str]:
    certificate = place["certificate"]
    yield f"  CA           {_described(place['ca'])}{', key kept' if place['caKey'] else ''}"
    yield f"  certificate  {_described(certificate)}"
    if certificate:
        yield _names_line(certificate)
        matches = "matches" if place["keyMatches"] else "does not match"
        verifies = "verifies" if place["chainVerifies"] else "does not verify"
        under = f", which {verifies} under the CA" if place["ca"] else ""
        yield f"  key          {matches} the certificate{under}"
    if place["rotation"]:
        yield f"  rotation     {rotation_line(place['rotation'])}"
    else:
        yield f"  next         {'; '.join([place['next'], *place['reasons']])}"


def _served_lines(served: JsonObject) -> Iterator[str]:
    certificate = served["certificate"]
    if certificate is None:
        yield f"  served       not known: {served['endpoint']} is not reachable from here ({served['detail']})"
        return
    verdict = "trusted" if served["trusted"] else "not trusted"
    yield f"  served       {_described(certificate)}, at {served['endpoint']}"
    yield _names_line(certificate)
    yield f"  API servers  {verdict}: {served['detail']}"


def _names_line(certificate: JsonObject) -> str:
    return f"  valid for    {', '.join([*certificate['dnsNames'], *certificate['ipAddresses']])}"


def _described(certificate: JsonObject | None) -> str:
    if certificate is None:
        return "none"
    return f"{certificate['subject']}, {certificate['expires']} ({certificate['notAfter']})"
