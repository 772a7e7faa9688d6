"""Keys and certificates of one control plane: an authority, the servers' certificate, an administrator, tokens' key."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=1)
_CERTIFICATE_SIGN = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Credentials:
    """PEM files; the administrator is in `system:masters`, which RBAC lets do everything."""

    ca: Path
    server_certificate: Path
    server_key: Path
    admin_certificate: Path
    admin_key: Path
    webhook_client_certificate: Path
    webhook_client_key: Path
    service_account_key: Path


def issue(folder: Path, now: dt.datetime) -> Credentials:
    """Return new credentials, valid for a day, written into `folder`."""
    folder.mkdir()
    authority = _Authority(now)
    (folder / "ca.crt").write_bytes(authority.pem)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _SERVER_NAMES]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    server = authority.issue("kube-apiserver", "", x509.SubjectAlternativeName(names))
    admin = authority.issue("admin", "system:masters", None)
    webhook_client = authority.issue("kube-apiserver-webhook-client", "", None)
    for name, (certificate, key) in {"server": server, "admin": admin, "webhook-client": webhook_client}.items():
        (folder / f"{name}.crt").write_bytes(certificate)
        (folder / f"{name}.key").write_bytes(key)
    (folder / "service-account.key").write_bytes(key_pem(ec.generate_private_key(ec.SECP256R1())))
    return Credentials(
        ca=folder / "ca.crt",
        server_certificate=folder / "server.crt",
        server_key=folder / "server.key",
        admin_certificate=folder / "admin.crt",
        admin_key=folder / "admin.key",
        webhook_client_certificate=folder / "webhook-client.crt",
        webhook_client_key=folder / "webhook-client.key",
        service_account_key=folder / "service-account.key",
    )


class _Authority:
    def __init__(self, now: dt.datetime) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "control plane of the tests")])
        self._now = now
        certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_CERTIFICATE_SIGN, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, group: str, alternatives: x509.SubjectAlternativeName | None) -> tuple[bytes, bytes]:
        """Return certificate and key, as PEM: a server's where it has alternative names, else a client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if group:
            subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        usage = ExtendedKeyUsageOID.SERVER_AUTH if alternatives else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(x509.Name(subject), key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        """Return the common parts of all certificates; Python 3.13 and later reject those without key identifiers."""
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - dt.timedelta(minutes=5))
            .not_valid_after(self._now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(issuer_key, critical=False)
        )


def key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """Return a private key, not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
