"""Report the state of certificates: in a directory, in the cluster's Secret, and in the caBundle. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from certs import pem, registration
from certs.inspection import CA_CERTIFICATE, CERTIFICATE, KEY, Artifacts, Fault, Inspection, inspect, issued_by
from certs.plan import plan
from webhook.kube.documents import field
from webhook.kube.field import FieldError, invalid, required
from webhook.kube.text import printable

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Certificates and their location. `ca_key_kept` is passed to `plan`; `errors` are other errors of the place."""

    name: str
    artifacts: Artifacts
    ca_key_kept: bool
    errors: tuple[FieldError, ...] = ()


def report(
    places: Iterable[Place],
    configuration: JsonObject | None,
    now: datetime,
    least_left: timedelta,
) -> JsonObject:
    """Return facts and problems as one JSON object; `healthy`: there are no problems.

    A certificate that expires within `least_left` is a problem. The certificate of each place is verified against the
    caBundle of each webhook of `configuration`, if any.
    """
    described: list[JsonObject] = []
    problems: list[FieldError] = []
    for place in places:
        found = inspect(place.artifacts, now)
        todo = plan(found, now, ca_key_kept=place.ca_key_kept)
        described.append(_place(place, found, now) | {"next": todo.action.value, "reasons": list(todo.reasons)})
        errors = [*place.errors, *_errors(place, found, now, least_left)]
        problems.extend(error.prefixed(place.name) for error in errors)
        if configuration is not None and found.server is not None:
            problems.extend(error.prefixed(place.name) for error in _untrusting(configuration, place.artifacts, now))
    return {
        "healthy": not problems,
        "places": described,
        "webhooks": [] if configuration is None else list(_webhooks(configuration, now)),
        "missingWebhooks": [] if configuration is None else _missing(configuration),
        "problems": [str(error) for error in problems],
    }


def _errors(place: Place, found: Inspection, now: datetime, least_left: timedelta) -> Iterator[FieldError]:
    for problem in found.problems:
        if problem.fault is Fault.MISSING and problem.file not in (CA_CERTIFICATE, CERTIFICATE, KEY):
            continue  # the CA's key may be kept elsewhere or not at all
        yield problem.error
    for file, certificate in ((CA_CERTIFICATE, found.ca), (CERTIFICATE, found.server)):
        if certificate and now < certificate.not_valid_after_utc < now + least_left:
            end = certificate.not_valid_after_utc
            remedy = (
                "`placement-webhook certs issue` and `certs register` renew it"
                if place.ca_key_kept
                else ("`placement-webhook certs register` renews it")
            )
            yield invalid(file, f"{end:%Y-%m-%d}", f"expires in {(end - now).days} days; {remedy}")


def _place(place: Place, found: Inspection, now: datetime) -> JsonObject:
    server, key_faults = found.server, {problem.fault for problem in found.faults(KEY)}
    chain_faults = {problem.fault for problem in found.faults(CERTIFICATE)} & {Fault.FOREIGN, Fault.UNTRUSTED}
    return {
        "place": place.name,
        "ca": _certificate(found.ca, now) if found.ca else None,
        "certificate": _certificate(server, now) | _names(found) if server else None,
        "keyMatches": server is not None and not key_faults,
        "chainVerifies": found.ca is not None and server is not None and not chain_faults,
        "caKey": place.artifacts.ca_key is not None,
    }


def _certificate(certificate: x509.Certificate, now: datetime) -> JsonObject:
    end = certificate.not_valid_after_utc
    return {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "notBefore": f"{certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}",
        "notAfter": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "daysLeft": (end - now).days,
        "sha256": certificate.fingerprint(SHA256()).hex(),
    }


def _names(found: Inspection) -> JsonObject:
    return {"dnsNames": list(found.names.dns_names), "ipAddresses": [str(each) for each in found.names.ip_addresses]}


def _webhooks(configuration: JsonObject, now: datetime) -> Iterator[JsonObject]:
    bundles = registration.ca_bundles(configuration)
    for webhook, bundle in zip(configuration.get("webhooks") or (), bundles, strict=True):
        cas = [_certificate(ca, now) for ca in pem.readable_certificates(bundle)]
        yield {"configuration": field(configuration, "metadata", "name"), "name": webhook.get("name"), "caBundle": cas}


def _missing(configuration: JsonObject) -> list[str]:
    """Return the names of the webhooks that a configuration made from an earlier manifest lacks."""
    wanted = registration.manifest(registration.Target())
    return [webhook["name"] for webhook in registration.missing_webhooks(configuration, wanted)]


def _untrusting(configuration: JsonObject, artifacts: Artifacts, now: datetime) -> Iterator[FieldError]:
    """Yield an error for each webhook whose caBundle does not trust the server certificate."""
    chain = pem.readable_certificates(artifacts.certificate or b"")
    name = field(configuration, "metadata", "name")
    bundles = registration.ca_bundles(configuration)
    if not bundles:
        yield required(f"MutatingWebhookConfiguration {name}", "a webhook; `placement-webhook certs register` makes it")
    for index, bundle in enumerate(bundles):
        cas = [ca for ca in pem.readable_certificates(bundle) if now < ca.not_valid_after_utc]
        if not any(issued_by(certificate, ca) for certificate in chain for ca in cas):
            path = f"MutatingWebhookConfiguration {name}: webhooks[{index}].clientConfig.caBundle"
            yield required(path, f"must hold the CA of {CERTIFICATE}; `placement-webhook certs register` puts it there")


def as_text(facts: JsonObject) -> str:
    """Return the facts of a report, a few lines for each place and webhook; the caller shows the problems."""
    lines: list[str] = []
    for place in facts["places"]:
        lines.append(place["place"])
        lines.extend(_place_lines(place))
    for webhook in facts["webhooks"]:
        lines.append(f"MutatingWebhookConfiguration {webhook['configuration']}, webhook {webhook['name']}")
        lines.extend(f"  caBundle     {_described(ca)}" for ca in webhook["caBundle"] or [None])
    for name in facts["missingWebhooks"]:
        lines.append(f"webhook {name}")
        lines.append("  not registered; `placement-webhook certs register` adds it")
    return "".join(f"{printable(line)}\n" for line in lines)


def _place_lines(place: JsonObject) -> Iterator[str]:
    certificate = place["certificate"]
    yield f"  CA           {_described(place['ca'])}{', key kept' if place['caKey'] else ''}"
    yield f"  certificate  {_described(certificate)}"
    if certificate:
        yield f"  valid for    {', '.join([*certificate['dnsNames'], *certificate['ipAddresses']])}"
        matches = "matches" if place["keyMatches"] else "does not match"
        verifies = "verifies" if place["chainVerifies"] else "does not verify"
        yield f"  key          {matches} the certificate, which {verifies} under the CA"
    yield f"  next         {place['next']}{''.join(f'; {reason}' for reason in place['reasons'])}"


def _described(certificate: JsonObject | None) -> str:
    if certificate is None:
        return "none"
    return f"{certificate['subject']}, {certificate['daysLeft']} days left (until {certificate['notAfter']})"
