"""Inspect certificate files and find problems. Pure: the content of the files and the time are passed in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs import pem
from certs.names import ServerNames, names_of
from certs.pki import BACKDATE, IssuerKey
from webhook.documents.field import FieldError, InvalidInput, invalid, required

Certificates = tuple[x509.Certificate, ...]

CA_CERTIFICATE = "ca.crt"
CA_KEY = "ca.key"
CERTIFICATE = "tls.crt"
KEY = "tls.key"
FILES = (CA_CERTIFICATE, CA_KEY, CERTIFICATE, KEY)


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The content of the four files of a directory or Secret, or None for a missing file."""

    ca_certificate: bytes | None = None
    ca_key: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None

    def __bool__(self) -> bool:
        return any(self)

    def __iter__(self) -> Iterator[bytes | None]:
        """Return the contents in the order of `FILES`."""
        return iter((self.ca_certificate, self.ca_key, self.certificate, self.key))


class Fault(Enum):
    """The kinds of problems. Each leads to a different action."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    MISMATCH = "mismatch"
    FOREIGN = "foreign"
    EXPIRED = "expired"
    NOT_YET_VALID = "not yet valid"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of one file."""

    file: str
    fault: Fault
    error: FieldError


@dataclass(frozen=True, slots=True)
class Inspection:
    """The parsed files and their problems. `ca` and `server` are None if the file is missing or cannot be read.

    `ca` is the certificate in ca.crt to which the chain of the server certificate leads, or else the first in ca.crt.
    """

    artifacts: Artifacts
    ca: x509.Certificate | None
    server: x509.Certificate | None
    names: ServerNames
    problems: tuple[Problem, ...]

    def faults(self, *files: str) -> tuple[Problem, ...]:
        """Return the problems of the given kinds."""
        return tuple(problem for problem in self.problems if problem.file in files)

    def serving_errors(self) -> list[FieldError]:
        """Return the errors, other than those of the CA's key, for which clients do not trust these files."""
        return [problem.error for problem in self.faults(CA_CERTIFICATE, CERTIFICATE, KEY)]


def inspect(artifacts: Artifacts, now: datetime) -> Inspection:
    """Return the inspection of `artifacts` at `now`."""
    problems: list[Problem] = []
    cas = _chain(CA_CERTIFICATE, artifacts.ca_certificate, problems)
    chain = _chain(CERTIFICATE, artifacts.certificate, problems)
    server = chain[0] if chain else None
    issuing = _issuing(cas, chain, now)
    ca = max(issuing, key=lambda each: each.not_valid_after_utc, default=cas[0] if cas else None)
    for file, certificate in ((CA_CERTIFICATE, ca), (CERTIFICATE, server)):
        if certificate:
            problems.extend(_validity_problems(file, certificate, now))
    problems.extend(_key_problems(CA_KEY, artifacts.ca_key, CA_CERTIFICATE, ca))
    problems.extend(_key_problems(KEY, artifacts.key, CERTIFICATE, server))
    if server and (unfit := unfit_for_server(server)):
        error = invalid(CERTIFICATE, server.subject.rfc4514_string(), f"no API server trusts it: {unfit}")
        problems.append(Problem(CERTIFICATE, Fault.UNTRUSTED, error))
    elif server and ca and not issuing:
        name = ca.subject.rfc4514_string()
        detail = (
            f"must be issued by {CA_CERTIFICATE} ({name}), not with SHA-1, or be followed by an unexpired chain to it"
        )
        error = invalid(CERTIFICATE, f"issued by {server.issuer.rfc4514_string()}", detail)
        problems.append(Problem(CERTIFICATE, Fault.FOREIGN, error))
    return Inspection(artifacts, ca, server, names_of(server) if server else ServerNames((), ()), tuple(problems))


def _issuing(cas: list[x509.Certificate], chain: list[x509.Certificate], now: datetime) -> list[x509.Certificate]:
    """Return the CAs to which `chain` leads: those that issued the server certificate or one of its issuers in `chain`.

    Only signatures and expiry are verified. The probe of the server checks the rest, because the verifier of the
    library cryptography rejects CAs that API servers accept: those of X.509 version 1 and those with an Ed25519 key.
    """
    path, found = list[x509.Certificate](), chain[:1]
    while found:
        last = found.pop()
        path.append(last)
        others = (each for each in unexpired(chain[1:], now) if each not in (*path, *found))
        found += [each for each in others if _is_issued_by(last, each)]
    # A caBundle can have the server certificate itself.
    return [ca for ca in cas if ca in chain[:1] or any(_is_issued_by(each, ca) for each in path)]


def _is_issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def unfit_for_server(certificate: x509.Certificate) -> str | None:
    """Return the reason why API servers do not trust `certificate`, whatever its CA, or None if there is no reason."""
    names = names_of(certificate)
    if not (names.dns_names or names.ip_addresses):
        return "it has no subject alternative name, and the common name is not looked at"
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return None
    if ExtendedKeyUsageOID.SERVER_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages:
        return None
    return "its extendedKeyUsage does not include serverAuth"


def _chain(file: str, content: bytes | None, problems: list[Problem]) -> list[x509.Certificate]:
    if not content:
        problems.append(Problem(file, Fault.MISSING, required(file, "a certificate in PEM")))
        return []
    try:
        chain = pem.certificates(content, file)
    except InvalidInput as error:
        problems.append(Problem(file, Fault.UNREADABLE, error.errors[0]))
        return []
    try:
        names_of(chain[0])
    except ValueError:
        # cryptography parses extensions on first use.
        problems.append(Problem(file, Fault.UNREADABLE, pem.unreadable(file, "a certificate with valid extensions")))
        return []
    return chain


def _validity_problems(file: str, certificate: x509.Certificate, now: datetime) -> Iterator[Problem]:
    start = certificate.not_valid_before_utc
    if now < start:
        error = invalid(file, f"{start:%Y-%m-%dT%H:%M:%SZ}", "is not valid before that time; set the clock right")
        yield Problem(file, Fault.NOT_YET_VALID, error)
    if now >= certificate.not_valid_after_utc:
        yield Problem(file, Fault.EXPIRED, pem.expired(certificate, file))


def _key_problems(
    file: str, content: bytes | None, certificate_file: str, certificate: x509.Certificate | None
) -> Iterator[Problem]:
    if content is None:
        yield Problem(file, Fault.MISSING, required(file, f"the private key of {certificate_file}"))
        return
    try:
        key = pem.private_key(content, file)
    except InvalidInput as error:
        yield Problem(file, Fault.UNREADABLE, error.errors[0])
        return
    if certificate and key.public_key() != pem.public_key(certificate):
        yield Problem(file, Fault.MISMATCH, pem.mismatch(file, certificate_file))


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """The usable content of a Secret.

    `cas` are the CAs in ca.crt that have not expired. `signer` is the CA whose key is in ca.key. `issuer` is the CA to
    which the certificate in tls.crt leads, or None if the server certificate or its key has a problem. `pair` is the
    inspection of the files with only `cas` in ca.crt.
    """

    cas: Certificates
    signer: x509.Certificate | None
    issuer: x509.Certificate | None
    pair: Inspection


def read_key_material(artifacts: Artifacts, now: datetime) -> KeyMaterial:
    """Return the usable content of `artifacts` at `now`."""
    cas = unexpired(pem.readable_certificates(artifacts.ca_certificate or b""), now)
    pair = inspect(replace(artifacts, ca_certificate=pem.encode(*cas) or None), now)
    return KeyMaterial(
        cas, _signer(cas, artifacts.ca_key or b"", now), None if pair.serving_errors() else pair.ca, pair
    )


def _signer(cas: Certificates, key_pem: bytes, now: datetime) -> x509.Certificate | None:
    try:
        key = pem.private_key(key_pem, CA_KEY)
    except InvalidInput:
        return None
    if not isinstance(key, IssuerKey):
        return None
    public = key.public_key()
    return next((ca for ca in cas if pem.public_key(ca) == public and ca.not_valid_before_utc <= now), None)


def unexpired(certificates: Iterable[x509.Certificate], now: datetime) -> Certificates:
    """Return the certificates that have not expired, in order and without duplicates."""
    return tuple(dict.fromkeys(each for each in certificates if now < each.not_valid_after_utc))


def expires_soon(certificate: x509.Certificate, now: datetime, least_left: timedelta | None = None) -> bool:
    """Return whether less than `least_left` is left before the expiry. None means `least_time_left`."""
    end = certificate.not_valid_after_utc
    return end - now < (least_time_left(certificate.not_valid_before_utc, end) if least_left is None else least_left)


def least_time_left(begin: datetime, end: datetime) -> timedelta:
    """Return the remaining time below which a certificate expires soon: 30 days or a sixth of its lifetime."""
    return min(timedelta(days=30), (end - begin) / 6)


def time_left(end: datetime, now: datetime) -> str:
    """Return a text about the expiry in whole days: `expires in 12 days`, `expired 2 days ago`."""
    days = abs(end - now).days
    shown = f"{days} day{'s' if days > 1 else ''}" if days else "less than a day"
    return f"expires in {shown}" if now < end else f"expired {shown} ago"


def due_at(certificate: x509.Certificate) -> datetime:
    """Return the time at which a third of the certificate's lifetime is left. The backdated part does not count.

    Source: https://cert-manager.io/docs/usage/certificate/#issuance-triggers
    """
    end = certificate.not_valid_after_utc
    return end - max(end - certificate.not_valid_before_utc - BACKDATE, timedelta(0)) / 3
