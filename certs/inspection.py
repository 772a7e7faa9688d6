"""Inspect certificate files and find problems. Pure: the content of the files and the time are passed in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs import pem
from certs.chain import distrust, issued_by, unfit_for_server, unfit_to_issue
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
    """The content of the four files of a directory or Secret; None for a missing file."""

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
    """The kinds of problems that lead to different actions."""

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

    `ca` is the certificate in ca.crt that the server certificate leads to; without such a one, the first.
    """

    artifacts: Artifacts
    ca: x509.Certificate | None
    server: x509.Certificate | None
    names: ServerNames
    problems: tuple[Problem, ...]

    def faults(self, *files: str) -> tuple[Problem, ...]:
        """Return the problems of these files."""
        return tuple(problem for problem in self.problems if problem.file in files)

    def serving_errors(self) -> list[FieldError]:
        """Return the errors for which clients do not trust a server with these files; the CA's key is irrelevant."""
        return [problem.error for problem in self.faults(CA_CERTIFICATE, CERTIFICATE, KEY)]


def inspect(artifacts: Artifacts, now: datetime) -> Inspection:
    """Return the inspection of `artifacts` at `now`."""
    problems: list[Problem] = []
    cas = _chain(CA_CERTIFICATE, artifacts.ca_certificate, problems)
    chain = _chain(CERTIFICATE, artifacts.certificate, problems)
    server = chain[0] if chain else None
    ca = _issuing(cas, chain)
    for file, certificate in ((CA_CERTIFICATE, ca), (CERTIFICATE, server)):
        if certificate:
            problems.extend(_validity_problems(file, certificate, now))
    problems.extend(_key_problems(CA_KEY, artifacts.ca_key, CA_CERTIFICATE, ca))
    problems.extend(_key_problems(KEY, artifacts.key, CERTIFICATE, server))
    if ca and server:
        problems.extend(_chain_problems(cas, ca, chain, now))
    return Inspection(artifacts, ca, server, names_of(server) if server else ServerNames((), ()), tuple(problems))


def _issuing(cas: list[x509.Certificate], chain: list[x509.Certificate]) -> x509.Certificate | None:
    """Return the CA that `chain` leads to, the one that expires last; without such a one, the first."""
    issuing = [ca for ca in cas if ca in chain[:1] or any(issued_by(certificate, ca) for certificate in chain)]
    return max(issuing, key=lambda ca: ca.not_valid_after_utc, default=cas[0] if cas else None)


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
    if certificate and key.public_key() != certificate.public_key():
        yield Problem(file, Fault.MISMATCH, pem.mismatch(file, certificate_file))


def _chain_problems(
    cas: list[x509.Certificate], ca: x509.Certificate, chain: list[x509.Certificate], now: datetime
) -> Iterator[Problem]:
    """Yield a problem if another CA issued the chain (foreign) or API servers do not accept it (untrusted)."""
    server = chain[0]
    if unfit := unfit_for_server(server):
        error = invalid(CERTIFICATE, server.subject.rfc4514_string(), f"no API server trusts it: {unfit}")
        yield Problem(CERTIFICATE, Fault.UNTRUSTED, error)
        return
    # Expiry is a problem of its own. Verify at a time when the server certificate and its CA were valid.
    at = min(max(now, server.not_valid_before_utc, ca.not_valid_before_utc), ca.not_valid_after_utc)
    reason = distrust(chain, cas, at)
    if reason is None:
        return
    if not any(issued_by(certificate, each) for certificate in chain for each in cas) and "signed with" not in reason:
        detail = (
            f"must be issued by {CA_CERTIFICATE} ({ca.subject.rfc4514_string()}), or be followed by the chain to it"
        )
        error = invalid(CERTIFICATE, f"issued by {server.issuer.rfc4514_string()}", detail)
        yield Problem(CERTIFICATE, Fault.FOREIGN, error)
        return
    detail = f"does not verify under {CA_CERTIFICATE}: {reason}"
    yield Problem(CERTIFICATE, Fault.UNTRUSTED, invalid(CERTIFICATE, server.subject.rfc4514_string(), detail))


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """The usable content of a Secret.

    `cas` are those of ca.crt that have not expired. `signer` is the one of them whose key is in ca.key. `issuer` is the
    one that issued the certificate in tls.crt, None unless an API server would trust that certificate and the key of
    tls.key is its own. `pair` is the inspection of the files with `cas` alone.
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
    return next((ca for ca in cas if _public_key(ca) == public and unfit_to_issue(ca, now) is None), None)


def _public_key(certificate: x509.Certificate) -> CertificatePublicKeyTypes | None:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):  # a CA of another tool
        return None


def unexpired(certificates: Iterable[x509.Certificate], now: datetime) -> Certificates:
    """Return the certificates that have not expired, each once, in their order."""
    return tuple(dict.fromkeys(each for each in certificates if now < each.not_valid_after_utc))


def expires_soon(certificate: x509.Certificate, now: datetime, least_left: timedelta | None = None) -> bool:
    """Return whether less than `least_left` is left; None: than `least_time_left`."""
    end = certificate.not_valid_after_utc
    return end - now < (least_time_left(certificate.not_valid_before_utc, end) if least_left is None else least_left)


def least_time_left(begin: datetime, end: datetime) -> timedelta:
    """Return the time before the end of a certificate in which it expires soon: 30 days, or a sixth of its lifetime.

    The smaller one counts. Issuers renew when a third is left, or earlier, so the renewal is late by then.
    """
    return min(timedelta(days=30), (end - begin) / 6)


def time_left(end: datetime, now: datetime) -> str:
    """Return when a certificate expires, or has expired, in whole days: `expires in 12 days`, `expired 2 days ago`."""
    days = abs(end - now).days
    shown = f"{days} day{'s' if days > 1 else ''}" if days else "less than a day"
    return f"expires in {shown}" if now < end else f"expired {shown} ago"


def due_at(certificate: x509.Certificate) -> datetime:
    """Return the time when a third of the certificate's lifetime is left; the backdated part does not count.

    Source: https://cert-manager.io/docs/usage/certificate/#issuance-triggers
    """
    end = certificate.not_valid_after_utc
    return end - max(end - certificate.not_valid_before_utc - BACKDATE, timedelta(0)) / 3
