"""Verify a certificate chain as the API server does: by the rules of Go, which are laxer than those of RFC 5280. Pure.

Go requires neither key identifiers nor key usages nor critical basic constraints, and trusts every certificate of the
caBundle, be it a root, an intermediate or the server certificate itself. It rejects signatures with SHA-1 and
certificates without a subject alternative name. Name constraints are not evaluated here; a probe of the server does.

Source: crypto/x509/verify.go, crypto/x509/x509.go CheckSignatureFrom
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

Extension = TypeVar("Extension", bound=x509.ExtensionType)

_INSECURE_HASHES = {"md5": "MD5", "sha1": "SHA-1"}
_SERVER_USAGES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
_MOST_INTERMEDIATES = 10


def issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    """Return whether `ca` signed `certificate`."""
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def distrust(chain: Sequence[x509.Certificate], cas: Sequence[x509.Certificate], at: datetime) -> str | None:
    """Return the reason why a client with these `cas` does not trust the server with `chain`; None if it does.

    The server certificate is the first of the chain. Its validity is not verified, that of the others is, at `at`.
    """
    server, *intermediates = chain
    if reason := unfit_for_server(server):
        return reason
    reasons = list(_path_reasons([server], intermediates[:_MOST_INTERMEDIATES], cas, at))
    if None in reasons:
        return None
    found = next((reason for reason in reasons if reason), None)
    return found or "none of the CAs has issued it, nor an intermediate certificate that is sent with it"


def unfit_for_server(certificate: x509.Certificate) -> str | None:
    """Return the reason why no API server trusts a server with `certificate`, under any CA; None if there is none."""
    if not _has_names(certificate):
        return "it has no subject alternative name, and the common name is not looked at"
    if not _serves(certificate):
        return "its extendedKeyUsage does not include serverAuth"
    return None


def unfit_to_issue(ca: x509.Certificate, at: datetime) -> str | None:
    """Return the reason why no API server trusts what `ca` issues for servers, at `at`; None if there is none."""
    return _parent_fault(ca, (ca,), at, is_ca=True)


def _path_reasons(
    path: list[x509.Certificate],
    intermediates: Sequence[x509.Certificate],
    cas: Sequence[x509.Certificate],
    at: datetime,
) -> Iterator[str | None]:
    """Yield for each way from the last of `path` to a CA the reason why it is rejected, or None."""
    last = path[-1]
    if len(path) == 1 and last in cas:
        yield None
        return
    if insecure := _insecure_hash(last):
        yield f'"{_name(last)}" is signed with {insecure}, which is insecure; sign it with SHA-256'
        return
    for parent in cas:
        if issued_by(last, parent):
            yield _parent_fault(parent, path, at, is_ca=True)
    for parent in intermediates:
        if parent not in path and issued_by(last, parent):
            fault = _parent_fault(parent, path, at, is_ca=False)
            if fault is None:
                yield from _path_reasons([*path, parent], intermediates, cas, at)
            else:
                yield fault


def _parent_fault(
    parent: x509.Certificate, path: Sequence[x509.Certificate], at: datetime, *, is_ca: bool
) -> str | None:
    """Return the reason why `parent` may not issue the last of `path`."""
    name = _name(parent)
    if not parent.not_valid_before_utc <= at <= parent.not_valid_after_utc:
        return f'"{name}" has expired or is not valid yet'
    constraints = _extension(parent, x509.BasicConstraints)
    may_lack = is_ca and parent.version is x509.Version.v1
    if not (constraints.ca if constraints else may_lack):
        return f'"{name}" is not a CA (basicConstraints)'
    if constraints and constraints.path_length is not None and len(path) - 1 > constraints.path_length:
        return f'"{name}" allows fewer intermediate certificates (pathlen)'
    usage = _extension(parent, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        return f'"{name}" may not sign certificates (keyUsage)'
    if not _serves(parent):
        return f'"{name}" may not issue certificates of servers (extendedKeyUsage)'
    return None


def _serves(certificate: x509.Certificate) -> bool:
    usages = _extension(certificate, x509.ExtendedKeyUsage)
    return usages is None or any(usage in _SERVER_USAGES for usage in usages)


def _has_names(certificate: x509.Certificate) -> bool:
    names = _extension(certificate, x509.SubjectAlternativeName)
    return names is not None and any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names)


def _insecure_hash(certificate: x509.Certificate) -> str | None:
    try:
        algorithm = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return None
    return None if algorithm is None else _INSECURE_HASHES.get(algorithm.name)


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, ValueError):  # ValueError: cryptography parses extensions on first use
        return None


def _name(certificate: x509.Certificate) -> str:
    return certificate.subject.rfc4514_string()
