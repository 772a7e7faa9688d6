"""Report the state of certificates: in a directory, in the cluster's Secret, and in the caBundle. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from certs import pem, registration
from certs.chain import distrust, unfit_for_server
from certs.inspection import CA_CERTIFICATE, CERTIFICATE, KEY, Artifacts, Fault, Inspection, inspect
from certs.names import ServerNames, names_of
from certs.plan import plan
from certs.rotation.report import rotation_line
from webhook.kube.documents import field
from webhook.kube.field import FieldError, invalid, required
from webhook.kube.text import printable

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Certificates and their location. `ca_key_kept` is passed to `plan`; `errors` are other errors of the place.

    `rotation` is the state of a Secret that the certs controller maintains; None for other places.
    """

    name: str
    artifacts: Artifacts
    ca_key_kept: bool
    errors: tuple[FieldError, ...] = ()
    rotation: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """The result of calling one webhook as the API server does, at `address`.

    `certificate` is the one that the server sends, None if it is not reachable. `trusted`: the API server trusts it.
    """

    address: str
    trusted: bool
    detail: str
    certificate: x509.Certificate | None


def report(
    places: Iterable[Place],
    configuration: JsonObject | None,
    now: datetime,
    least_left: timedelta,
    called: Sequence[Called | None] = (),
    *,
    require_call: bool = False,
) -> JsonObject:
    """Return facts and problems as one JSON object; `healthy`: there are no problems.

    A certificate that expires within `least_left` is a problem. The certificate of each place is verified against the
    caBundle of each webhook of `configuration`, if any. `called` has a result for each of these webhooks, or none;
    with `require_call`, a server that is not reachable is a problem.
    """
    described: list[JsonObject] = []
    problems: list[FieldError] = []
    for place in places:
        found = inspect(place.artifacts, now)
        described.append(_place(place, found, now) | _next(place, found, now))
        errors = [*place.errors, *_errors(place, found, now, least_left)]
        if configuration is not None:
            # cert-manager stores no CA for an ACME issuer: the caBundle decides.
            errors = [each for each in errors if each.path != CA_CERTIFICATE or place.artifacts.ca_certificate]
        problems.extend(error.prefixed(place.name) for error in errors)
        if configuration is not None and found.server is not None:
            problems.extend(error.prefixed(place.name) for error in _untrusting(configuration, place.artifacts, now))
    if configuration is not None:
        problems.extend(_calling_errors(configuration, called, now, least_left, require_call=require_call))
    return {
        "healthy": not problems,
        "places": described,
        "webhooks": [] if configuration is None else list(_webhooks(configuration, called, now)),
        "missingWebhooks": [] if configuration is None else _missing(configuration),
        "problems": [str(error) for error in problems],
    }


def _next(place: Place, found: Inspection, now: datetime) -> JsonObject:
    if place.rotation is not None:
        return {"next": place.rotation["next"], "reasons": place.rotation["reasons"], "rotation": place.rotation}
    todo = plan(found, now, ca_key_kept=place.ca_key_kept)
    return {"next": todo.action.value, "reasons": list(todo.reasons), "rotation": None}


def _errors(place: Place, found: Inspection, now: datetime, least_left: timedelta) -> Iterator[FieldError]:
    for problem in found.problems:
        if problem.fault is Fault.MISSING and problem.file not in (CA_CERTIFICATE, CERTIFICATE, KEY):
            continue  # the CA's key may be kept elsewhere or not at all
        yield problem.error
    for file, certificate in ((CA_CERTIFICATE, found.ca), (CERTIFICATE, found.server)):
        if certificate and now < certificate.not_valid_after_utc < now + least_left:
            end = certificate.not_valid_after_utc
            yield invalid(file, f"{end:%Y-%m-%d}", f"expires in {(end - now).days} days; {_renewal(place)}")


def _renewal(place: Place) -> str:
    if place.rotation is not None:
        return "the certs controller renews it; check that it runs"
    if place.ca_key_kept:
        return "`placement-webhook certs issue` and `certs register` renew it"
    return "`placement-webhook certs register` renews it"


def _place(place: Place, found: Inspection, now: datetime) -> JsonObject:
    server, key_faults = found.server, {problem.fault for problem in found.faults(KEY)}
    chain_faults = {problem.fault for problem in found.faults(CERTIFICATE)} & {Fault.FOREIGN, Fault.UNTRUSTED}
    return {
        "place": place.name,
        "ca": _certificate(found.ca, now) if found.ca else None,
        "certificate": _certificate(server, now) | _names(found.names) if server else None,
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


def _names(names: ServerNames) -> JsonObject:
    return {"dnsNames": list(names.dns_names), "ipAddresses": [str(each) for each in names.ip_addresses]}


def _webhooks(configuration: JsonObject, called: Sequence[Called | None], now: datetime) -> Iterator[JsonObject]:
    bundles = registration.ca_bundles(configuration)
    for webhook, bundle, call in zip_longest(configuration.get("webhooks") or (), bundles, called):
        cas = [_certificate(ca, now) for ca in pem.readable_certificates(bundle)]
        yield {
            "configuration": field(configuration, "metadata", "name"),
            "name": webhook.get("name"),
            "caBundle": cas,
            "served": _served(call, now) if call else None,
        }


def _served(call: Called, now: datetime) -> JsonObject:
    sent = call.certificate
    names = names_of(sent) if sent else None
    return {
        "endpoint": call.address,
        "reachable": sent is not None,
        "trusted": call.trusted,
        "detail": call.detail,
        "certificate": _certificate(sent, now) | _names(names) if sent and names else None,
    }


def _calling_errors(
    configuration: JsonObject,
    called: Sequence[Called | None],
    now: datetime,
    least_left: timedelta,
    *,
    require_call: bool,
) -> Iterator[FieldError]:
    """Yield an error for each webhook whose server the API server does not trust, or only for a short time."""
    for index, call in enumerate(called):
        place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}: webhooks[{index}]"
        if call is None:
            continue
        if call.certificate is None:
            if require_call:
                yield invalid(place, call.address, f"is not reachable: {call.detail}; check that the server runs")
            continue
        end = call.certificate.not_valid_after_utc
        if not call.trusted:
            detail = unfit_for_server(call.certificate) or call.detail
            remedy = "compare its names, expiry and issuer with the caBundle"
            yield invalid(
                place, call.address, f"serves a certificate that API servers do not trust: {detail}; {remedy}"
            )
        elif end < now + least_left:
            detail = f"serves a certificate that expires in {(end - now).days} days; renew it"
            yield invalid(place, call.address, detail)


def _missing(configuration: JsonObject) -> list[str]:
    """Return the names of the webhooks that a configuration made from an earlier manifest lacks."""
    wanted = registration.manifest(registration.Target())
    return [webhook["name"] for webhook in registration.missing_webhooks(configuration, wanted)]


def _untrusting(configuration: JsonObject, artifacts: Artifacts, now: datetime) -> Iterator[FieldError]:
    """Yield an error for each webhook whose caBundle does not trust the server certificate."""
    chain = pem.certificates(artifacts.certificate or b"", CERTIFICATE)
    name = field(configuration, "metadata", "name")
    bundles = registration.ca_bundles(configuration)
    if not bundles:
        yield required(f"MutatingWebhookConfiguration {name}", "a webhook; `placement-webhook certs register` makes it")
    for index, bundle in enumerate(bundles):
        cas = [ca for ca in pem.readable_certificates(bundle) if now < ca.not_valid_after_utc]
        if unfit_for_server(chain[0]) is None and distrust(chain, cas, now) is not None:
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
        lines.extend(_served_lines(webhook["served"]))
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
        under = f", which {verifies} under the CA" if place["ca"] else ""
        yield f"  key          {matches} the certificate{under}"
    if place["rotation"]:
        yield f"  rotation     {rotation_line(place['rotation'])}"
        return
    yield f"  next         {place['next']}{''.join(f'; {reason}' for reason in place['reasons'])}"


def _served_lines(served: JsonObject | None) -> Iterator[str]:
    if served is None:
        return
    certificate = served["certificate"]
    if certificate is None:
        yield f"  served       not known: {served['endpoint']} is not reachable from here ({served['detail']})"
        return
    verdict = "trusted" if served["trusted"] else "not trusted"
    yield f"  served       {_described(certificate)}, at {served['endpoint']}"
    yield f"  valid for    {', '.join([*certificate['dnsNames'], *certificate['ipAddresses']])}"
    yield f"  API servers  {verdict}: {served['detail']}"


def _described(certificate: JsonObject | None) -> str:
    if certificate is None:
        return "none"
    return f"{certificate['subject']}, {certificate['daysLeft']} days left (until {certificate['notAfter']})"
