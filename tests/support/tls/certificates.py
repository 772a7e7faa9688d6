"""Certificates in all states, for tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from certs.inspection import Artifacts
from certs.pki import SERVER_VALIDITY, KeyPair, issue_ca, issue_server

NOW = datetime.now(UTC).replace(microsecond=0)


def make_artifacts(
    *,
    dns_names: tuple[str, ...] = ("localhost",),
    ip_addresses: tuple[str, ...] = (),
    server_age: timedelta = timedelta(0),
    ca: KeyPair | None = None,
) -> Artifacts:
    """Return a directory's worth of certificates, the server's issued `server_age` ago."""
    ca = ca or issue_ca(now=NOW - server_age)
    server = issue_server(ca, dns_names=dns_names, ip_addresses=ip_addresses, now=NOW - server_age)
    return Artifacts(ca.certificate, ca.key, server.certificate, server.key)


def ca_of(artifacts: Artifacts) -> KeyPair:
    assert artifacts.ca_certificate
    assert artifacts.ca_key
    return KeyPair(artifacts.ca_certificate, artifacts.ca_key)


def server_of(artifacts: Artifacts) -> KeyPair:
    assert artifacts.certificate
    assert artifacts.key
    return KeyPair(artifacts.certificate, artifacts.key)


def with_malformed_extension() -> KeyPair:
    """Return a certificate with an extension that is not DER, one that TLS libraries do not read."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=30))
    malformed = x509.UnrecognizedExtension(x509.CertificatePolicies.oid, b"\x01")
    made = builder.add_extension(malformed, critical=False).sign(key, hashes.SHA256())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(made.public_bytes(Encoding.PEM), pem)


def encrypted(key: bytes | None) -> bytes:
    return load_pem_private_key(key or b"", None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )


FRESH = make_artifacts()
OTHER = make_artifacts()
AGED = make_artifacts(server_age=SERVER_VALIDITY * 2 / 3 + timedelta(days=1))
EXPIRED = make_artifacts(server_age=SERVER_VALIDITY)
ALL_EXPIRED = make_artifacts(server_age=timedelta(days=3650))
FROM_TOMORROW = make_artifacts(server_age=timedelta(days=-1))
ENCRYPTED_KEY = replace(FRESH, key=encrypted(FRESH.key))
