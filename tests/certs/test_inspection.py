"""The inspection of certificate files, for faults that no issued certificate has."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from certs.inspection import Artifacts, Fault, inspect, read_key_material, time_left
from certs.pem import certificates
from certs.pki import BACKDATE, KeyPair, issue_ca, issue_server
from tests.support.tls.certificates import FRESH, NOW, OTHER, with_malformed_extension
from tests.support.tls.pairs import pairs
from webhook.documents.field import InvalidInput


def test_a_certificate_with_a_malformed_extension_is_unreadable() -> None:
    found = inspect(replace(FRESH, certificate=with_malformed_extension().certificate), NOW)

    assert found.server is None
    assert [(problem.file, problem.fault) for problem in found.problems] == [("tls.crt", Fault.UNREADABLE)]
    assert str(found.problems[0].error) == "tls.crt: Required value: must hold a certificate with valid extensions"


def faults(held: Artifacts, now: datetime = NOW) -> set[Fault]:
    return {problem.fault for problem in inspect(held, now).faults("tls.crt")}


def test_a_certificate_sent_along_counts_only_if_it_has_issued_the_one_of_the_server() -> None:
    of_another = replace(OTHER, ca_certificate=FRESH.ca_certificate)
    assert of_another.certificate
    assert FRESH.certificate
    assert faults(replace(of_another, certificate=of_another.certificate + FRESH.certificate)) == {Fault.FOREIGN}


def test_of_two_certificates_of_one_ca_the_one_that_is_valid_for_longer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CA that was made anew with its old key, beside the certificate that it had."""
    key = ec.generate_private_key(ec.SECP256R1())
    with monkeypatch.context() as patched:
        patched.setattr("certs.pki.ec.generate_private_key", lambda _: key)
        old, new = (issue_ca(now=NOW, validity=timedelta(days=days)) for days in (400, 800))
    server = issue_server(old, dns_names=["localhost"], now=NOW)

    for bundle in (old.certificate + new.certificate, new.certificate + old.certificate):
        found = inspect(Artifacts(bundle, new.key, server.certificate, server.key), NOW)
        assert found.problems == ()
        assert found.ca is not None
        assert found.ca.not_valid_after_utc == NOW + timedelta(days=800)


def test_an_expired_intermediate_leads_to_no_ca() -> None:
    (pair,) = [each for each in pairs("trusted") if each.name == "chain-of-cert-manager"]
    held = Artifacts(
        pair.files["ca.crt"].encode(), None, pair.files["tls.crt"].encode(), pair.files["tls.key"].encode()
    )
    assert held.certificate
    intermediate = certificates(held.certificate, "tls.crt")[1]
    end = intermediate.not_valid_after_utc
    assert faults(held, end - timedelta(days=1)) == set()
    assert faults(held, end) == {Fault.FOREIGN, Fault.EXPIRED}


def test_a_ca_whose_key_cannot_sign_has_issued_nothing() -> None:
    """A certificate of the same name with a key for key agreement, which no signature can be verified with."""
    (ca,) = certificates(FRESH.ca_certificate or b"", "ca.crt")
    key, start, end = x25519.X25519PrivateKey.generate().public_key(), ca.not_valid_before_utc, ca.not_valid_after_utc
    builder = x509.CertificateBuilder(ca.subject, ca.subject, key, 1, start, end)
    other = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)

    assert faults(replace(FRESH, ca_certificate=other)) == {Fault.FOREIGN}
    assert faults(replace(FRESH, ca_certificate=other + (FRESH.ca_certificate or b""))) == set()


@pytest.mark.parametrize(("after", "is_valid"), [(timedelta(0), True), (timedelta(seconds=-1), False)])
def test_a_certificate_is_valid_and_signs_from_its_first_second(after: timedelta, is_valid: bool) -> None:
    now = NOW - BACKDATE + after

    assert faults(FRESH, now) == (set() if is_valid else {Fault.NOT_YET_VALID})
    assert (read_key_material(FRESH, now).signer is not None) is is_valid


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (timedelta(days=2), "expires in 2 days"),
        (timedelta(days=2, seconds=-1), "expires in 1 day"),
        (timedelta(days=1), "expires in 1 day"),
        (timedelta(days=1, seconds=-1), "expires in less than a day"),
        (timedelta(seconds=1), "expires in less than a day"),
        (timedelta(0), "expired less than a day ago"),
        (timedelta(days=-1), "expired 1 day ago"),
        (timedelta(days=-2), "expired 2 days ago"),
    ],
)
def test_the_time_that_is_left_is_in_whole_days(left: timedelta, text: str) -> None:
    assert time_left(NOW + left, NOW) == text


def test_a_ca_with_a_key_on_an_unknown_curve_has_issued_nothing_and_signs_nothing() -> None:
    """The identifier of P-256 in the certificate becomes that of a curve which the library does not know."""
    (ca,) = certificates(FRESH.ca_certificate or b"", "ca.crt")
    known, unknown = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030102")
    der = ca.public_bytes(Encoding.DER).replace(known, unknown)
    other = x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)

    found = inspect(replace(FRESH, ca_certificate=other), NOW)
    assert [(each.file, each.fault) for each in found.problems] == [
        ("ca.key", Fault.MISMATCH),
        ("tls.crt", Fault.FOREIGN),
    ]
    assert read_key_material(replace(FRESH, ca_certificate=other), NOW).signer is None
    both = replace(FRESH, ca_certificate=other + (FRESH.ca_certificate or b""))
    assert faults(both) == set()
    assert read_key_material(both, NOW).signer == ca


def test_a_key_with_which_no_certificate_is_signed_here_is_that_of_no_signer() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=30))
    ca = builder.sign(key, None).public_bytes(Encoding.PEM)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    assert read_key_material(Artifacts(ca, pem), NOW).signer is None
    with pytest.raises(InvalidInput, match=r'ca\.key: Invalid value: "Ed25519PrivateKey"; must be an ECDSA or RSA key'):
        issue_server(KeyPair(ca, pem), dns_names=["localhost"], now=NOW)


def test_a_block_of_ca_crt_that_cannot_be_read_does_not_hide_the_ca() -> None:
    block = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (ca,) = certificates(FRESH.ca_certificate or b"", "ca.crt")

    keys = read_key_material(replace(FRESH, ca_certificate=block + (FRESH.ca_certificate or b"")), NOW)

    assert (keys.cas, keys.signer, keys.issuer) == ((ca,), ca, ca)
