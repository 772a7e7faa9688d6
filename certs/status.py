"""Report the state of the certificates in a directory. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from certs.inspection import (
    CA_CERTIFICATE,
    CERTIFICATE,
    KEY,
    Artifacts,
    Fault,
    Inspection,
    expires_soon,
    inspect,
    time_left,
)
from certs.plan import plan_at_once
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError, invalid
from webhook.documents.text import printable


def report(
    place: str, artifacts: Artifacts, mode_errors: Sequence[FieldError], now: datetime, least_left: timedelta | None
) -> JsonObject:
    """Return facts and problems as JSON; a certificate that `expires_soon` and `mode_errors` are problems."""
    found = inspect(artifacts, now)
    errors = [*mode_errors, *_errors(found, now, least_left)]
    return {
        "healthy": not errors,
        "places": [_place(place, found, now)],
        "problems": [str(error.prefixed(place)) for error in errors],
    }


def _errors(found: Inspection, now: datetime, least_left: timedelta | None) -> Iterator[FieldError]:
    for problem in found.problems:
        # The CA's key may be kept elsewhere or not at all.
        if problem.fault is not Fault.MISSING or problem.file in (CA_CERTIFICATE, CERTIFICATE, KEY):
            yield problem.error
    for file, certificate in ((CA_CERTIFICATE, found.ca), (CERTIFICATE, found.server)):
        if certificate and now < certificate.not_valid_after_utc and expires_soon(certificate, now, least_left):
            end = certificate.not_valid_after_utc
            renewal = "`placement-webhook certs issue` and `certs register` renew it"
            yield invalid(file, f"{end:%Y-%m-%d}", f"{time_left(end, now)}; {renewal}")


def _place(place: str, found: Inspection, now: datetime) -> JsonObject:
    server, step = found.server, plan_at_once(found, now)
    chain_faults = {problem.fault for problem in found.faults(CERTIFICATE)} & {Fault.FOREIGN, Fault.UNTRUSTED}
    names = {
        "dnsNames": list(found.names.dns_names),
        "ipAddresses": [str(each) for each in found.names.ip_addresses],
    }
    return {
        "place": place,
        "ca": _certificate(found.ca, now) if found.ca else None,
        "certificate": _certificate(server, now) | names if server else None,
        "keyMatches": server is not None and not found.faults(KEY),
        "chainVerifies": found.ca is not None and server is not None and not chain_faults,
        "caKey": found.artifacts.ca_key is not None,
        "next": str(step.action),
        "reasons": list(step.reasons),
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


def as_text(facts: JsonObject) -> str:
    """Return the facts of a report as a few lines of text. The caller prints the problems."""
    lines = [line for place in facts["places"] for line in (place["place"], *_place_lines(place))]
    return "".join(f"{printable(line)}\n" for line in lines)


def _place_lines(place: JsonObject) -> Iterator[str]:
    certificate = place["certificate"]
    yield f"  CA           {_described(place['ca'])}{', key kept' if place['caKey'] else ''}"
    yield f"  certificate  {_described(certificate)}"
    if certificate:
        yield f"  valid for    {', '.join([*certificate['dnsNames'], *certificate['ipAddresses']])}"
        matches = "matches" if place["keyMatches"] else "does not match"
        leads = "leads" if place["chainVerifies"] else "does not lead"
        under = f", which {leads} to the CA" if place["ca"] else ""
        yield f"  key          {matches} the certificate{under}"
    yield f"  next         {'; '.join([place['next'], *place['reasons']])}"


def _described(certificate: JsonObject | None) -> str:
    if certificate is None:
        return "none"
    return f"{certificate['subject']}, {certificate['expires']} ({certificate['notAfter']})"
