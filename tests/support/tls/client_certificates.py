"""Certificates of clients, for tests of mTLS."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.pki import KeyPair


def issue_client(ca: KeyPair, name: str, alternatives: tuple[str, ...] = ()) -> KeyPair:
    """Return a client certificate with the CN `name` and these DNS names, signed by `ca`."""
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    issuer_key = serialization.load_pem_private_key(ca.key, None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    if alternatives:
        names = x509.SubjectAlternativeName([x509.DNSName(each) for each in alternatives])
        builder = builder.add_extension(names, critical=False)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return KeyPair(
        builder.sign(issuer_key, hashes.SHA256()).public_bytes(encoding),
        key.private_bytes(encoding, form, serialization.NoEncryption()),
    )


def presenting(trusted_ca: Path, client: KeyPair | None, folder: Path) -> ssl.SSLContext:
    """Return the TLS of a client that trusts `trusted_ca` and presents `client`, whose files are put into `folder`."""
    context = ssl.create_default_context(cafile=str(trusted_ca))
    if client is not None:
        certificate, key = folder / "client.crt", folder / "client.key"
        certificate.write_bytes(client.certificate)
        key.write_bytes(client.key)
        context.load_cert_chain(certificate, key)
    return context
