"""Issue a CA and the webhook's server certificate, as PEM. Pure: the time is passed in, and no files are accessed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs import pem
from certs.names import server_names
from webhook.documents.field import InvalidInput, invalid

IssuerKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

CA_VALIDITY = timedelta(days=3650)
SERVER_VALIDITY = timedelta(days=365)

# A node whose clock is slightly behind still accepts a new certificate.
# Source: k8s.io/kubernetes/cmd/kubeadm/app/constants/constants.go CertificateBackdate
BACKDATE = timedelta(minutes=5)

CA_NAME_PREFIX = "placement-webhook-ca@"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PKCS#8, not encrypted), both in PEM."""

    certificate: bytes
    key: bytes


def issue_ca(*, now: datetime, validity: timedelta = CA_VALIDITY) -> KeyPair:
    """Return a self-signed CA (ECDSA P-256) that may sign server certificates, but no intermediate CA.

    Its subject contains the time of issue, which distinguishes two CAs in one caBundle.

    Source: k8s.io/client-go/util/cert/cert.go GenerateSelfSignedCertKeyWithOptions
    """
    key = ec.generate_private_key(ec.SECP256R1())
    start = now.astimezone(UTC).replace(microsecond=0)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{CA_NAME_PREFIX}{int(start.timestamp())}")])
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _builder(name, name, key.public_key(), start - BACKDATE, start + validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(sign_certificates=True), critical=True)
        .add_extension(subject_key, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue_server(
    ca: KeyPair,
    *,
    dns_names: Iterable[str],
    ip_addresses: Iterable[str] = (),
    now: datetime,
    validity: timedelta = SERVER_VALIDITY,
) -> KeyPair:
    """Return a server certificate (ECDSA P-256, new key) for these names, signed by `ca`. It never outlives `ca`.

    Raises:
        InvalidInput: a name or address is invalid, or there are none; or `ca` cannot be read, has expired, or its key
            does not match its certificate.
    """
    names = server_names(dns_names, ip_addresses)
    general_names = (*map(x509.DNSName, names.dns_names), *map(x509.IPAddress, names.ip_addresses))
    issuer, issuer_key = _issuer(ca)
    start = now.astimezone(UTC).replace(microsecond=0)
    end = min(start + validity, issuer.not_valid_after_utc)
    if end <= start:
        raise InvalidInput([pem.expired(issuer, "ca.crt")])
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "placement-webhook")])
    certificate = (
        _builder(subject, issuer.subject, key.public_key(), max(start - BACKDATE, issuer.not_valid_before_utc), end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(general_names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_authority_key_identifier(issuer, issuer_key), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def _issuer(ca: KeyPair) -> tuple[x509.Certificate, IssuerKey]:
    certificate = pem.certificates(ca.certificate, "ca.crt")[0]
    key = pem.private_key(ca.key, "ca.key")
    if key.public_key() != pem.public_key(certificate):
        raise InvalidInput([pem.mismatch("ca.key", "ca.crt")])
    if not isinstance(key, IssuerKey):
        raise InvalidInput([invalid("ca.key", type(key).__name__, "must be an ECDSA or RSA key")])
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: CertificatePublicKeyTypes, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_key_identifier(issuer: x509.Certificate, issuer_key: IssuerKey) -> x509.AuthorityKeyIdentifier:
    try:
        subject_key = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        pem.encode(certificate),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
