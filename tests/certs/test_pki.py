"""Issued certificates are valid server certificates for strict OpenSSL, Go and browsers."""

import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from certs.pki import BACKDATE, CA_VALIDITY, SERVER_VALIDITY, KeyPair, issue_ca, issue_server
from tests.support.servers.loopback import tls_server
from webhook.documents.field import InvalidInput

NOW = datetime.now(UTC).replace(microsecond=0)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def pair(
    now: datetime = NOW, dns_names: tuple[str, ...] = ("localhost",), ips: tuple[str, ...] = ("127.0.0.1",)
) -> tuple[KeyPair, KeyPair]:
    ca = issue_ca(now=now)
    return ca, issue_server(ca, dns_names=dns_names, ip_addresses=ips, now=now)


def loaded(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def strict_client(ca: KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def test_ca_can_sign_server_certificates_and_nothing_else() -> None:
    ca = loaded(issue_ca(now=NOW))
    constraints = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = ca.extensions.get_extension_for_class(x509.KeyUsage)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.crl_sign, usage.value.digital_signature) == (True, True, False)


def test_server_certificate_can_serve_and_not_sign_certificates() -> None:
    server = loaded(pair()[1])
    constraints = server.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = server.extensions.get_extension_for_class(x509.KeyUsage)
    extended = server.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=False, path_length=None)
    assert (usage.value.digital_signature, usage.value.key_cert_sign) == (True, False)
    assert list(extended.value) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_keys_are_ecdsa_p256() -> None:
    for each in pair():
        key = load_pem_private_key(each.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert isinstance(key.curve, ec.SECP256R1)
        assert key.public_key() == loaded(each).public_key()


def test_authority_key_identifier_leads_to_the_ca() -> None:
    ca, server = map(loaded, pair())
    wanted = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    for certificate in (ca, server):
        identifier = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert identifier.key_identifier == wanted


def test_every_name_stands_in_the_certificate_once_and_in_lower_case() -> None:
    _, server = pair(dns_names=("A.b.svc", "a.b.svc", "*.c.svc"), ips=("10.0.0.1", "fd00::1", "fd00:0::1"))
    names = loaded(server).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.b.svc", "*.c.svc"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["10.0.0.1", "fd00::1"]


def test_certificates_are_valid_a_little_before_their_issue() -> None:
    for each, validity in zip(pair(), (CA_VALIDITY, SERVER_VALIDITY), strict=True):
        assert loaded(each).not_valid_before_utc == NOW - BACKDATE
        assert loaded(each).not_valid_after_utc == NOW + validity


def test_server_certificate_never_outlives_its_ca() -> None:
    ca = issue_ca(now=NOW, validity=timedelta(days=90))
    server = issue_server(ca, dns_names=["localhost"], now=NOW)
    assert loaded(server).not_valid_after_utc == loaded(ca).not_valid_after_utc


def test_server_certificate_is_not_valid_before_a_ca_that_is_younger_than_the_backdate() -> None:
    ca = issue_ca(now=NOW + timedelta(minutes=2))
    server = issue_server(ca, dns_names=["localhost"], now=NOW)
    assert loaded(server).not_valid_before_utc == loaded(ca).not_valid_before_utc > NOW - BACKDATE


def test_server_certificate_of_an_older_ca_begins_with_the_backdate() -> None:
    server = issue_server(issue_ca(now=NOW - timedelta(days=1)), dns_names=["localhost"], now=NOW)
    assert loaded(server).not_valid_before_utc == NOW - BACKDATE


def test_time_of_issue_may_be_in_any_zone() -> None:
    local = NOW.astimezone(tz=None)
    assert loaded(issue_ca(now=local)).not_valid_before_utc == NOW - BACKDATE


def test_serial_numbers_and_subjects_distinguish_two_cas() -> None:
    first, second = loaded(issue_ca(now=NOW)), loaded(issue_ca(now=NOW + timedelta(seconds=1)))
    assert first.serial_number != second.serial_number
    assert first.subject != second.subject


@pytest.mark.parametrize("name", [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
def test_chain_verifies_by_the_rules_of_the_web(name: x509.DNSName | x509.IPAddress) -> None:
    ca, server = map(loaded, pair())
    verifier = PolicyBuilder().store(Store([ca])).time(NOW).build_server_verifier(name)
    assert verifier.verify(server, []) == [server, ca]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_strict_openssl_client_shakes_hands(host: str) -> None:
    ca, server = pair()
    with (
        tls_server(server) as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
        strict_client(ca).wrap_socket(connection, server_hostname=host) as session,
    ):
        assert session.version() == "TLSv1.3"


@pytest.mark.parametrize(
    ("server", "host"),
    [
        pytest.param(lambda: pair(), "elsewhere.svc", id="another name"),
        pytest.param(lambda: pair(now=LONG_AGO), "localhost", id="expired"),
    ],
)
def test_client_refuses(server: Callable[[], tuple[KeyPair, KeyPair]], host: str) -> None:
    ca, serving = server()
    with (
        tls_server(serving) as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        strict_client(ca).wrap_socket(connection, server_hostname=host)


def test_client_of_another_ca_refuses() -> None:
    _, serving = pair()
    with (
        tls_server(serving) as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as connection,
        pytest.raises(ssl.SSLCertVerificationError, match="verify failed"),
    ):
        strict_client(issue_ca(now=NOW)).wrap_socket(connection, server_hostname="localhost")


def test_ca_of_the_user_with_an_rsa_key_can_sign() -> None:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "corporate CA")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), NOW, NOW + timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    server = issue_server(KeyPair(certificate.public_bytes(Encoding.PEM), pem), dns_names=["localhost"], now=NOW)
    loaded(server).verify_directly_issued_by(certificate)


def test_server_certificate_is_not_valid_before_its_ca() -> None:
    ca = issue_ca(now=NOW)
    start = loaded(ca).not_valid_before_utc
    for now in (start + timedelta(seconds=1), start + BACKDATE):
        assert loaded(issue_server(ca, dns_names=["localhost"], now=now)).not_valid_before_utc == start
    later = loaded(issue_server(ca, dns_names=["localhost"], now=NOW + timedelta(seconds=1)))
    assert later.not_valid_before_utc == start + timedelta(seconds=1)


CA = issue_ca(now=NOW)
ENCRYPTED = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
)
ED25519 = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("ca", "message"),
    [
        pytest.param(issue_ca(now=LONG_AGO), 'ca.crt: Invalid value: "2009-12-29"; expired on that day', id="expired"),
        pytest.param(
            issue_ca(now=NOW - timedelta(days=1), validity=timedelta(days=1)), "expired on that day", id="ends now"
        ),
        pytest.param(KeyPair(CA.certificate, issue_ca(now=NOW).key), "the key of another one", id="key of another"),
        pytest.param(KeyPair(CA.certificate, ED25519), "the key of another one", id="key of another kind"),
        pytest.param(KeyPair(CA.certificate, ENCRYPTED), "ca.key: Forbidden: the key is encrypted", id="encrypted key"),
        pytest.param(
            KeyPair(CA.certificate, b"-----BEGIN"), "ca.key: Required value: must hold a private key", id="no key"
        ),
        pytest.param(KeyPair(b"", CA.key), "ca.crt: Required value: must hold certificates", id="no certificate"),
    ],
)
def test_unfit_ca_is_refused(ca: KeyPair, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"^[^\n]+$") as refused:
        issue_server(ca, dns_names=["localhost"], now=NOW)
    assert message in str(refused.value)
