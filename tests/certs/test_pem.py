"""Certificates and keys in PEM."""

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from certs.pem import certificates, encode, private_key, readable_certificates
from certs.pki import issue_ca
from webhook.documents.field import InvalidInput

CA = issue_ca(now=datetime.now(UTC))
(CERTIFICATE,) = certificates(CA.certificate, "ca.crt")


def test_certificates_are_read_as_they_are_written() -> None:
    assert certificates(encode(CERTIFICATE, CERTIFICATE), "ca.crt") == [CERTIFICATE, CERTIFICATE]


def test_what_is_no_certificate_names_the_file_and_not_its_text() -> None:
    with pytest.raises(InvalidInput, match=r"^ca\.crt: Required value: must hold certificates in PEM$"):
        certificates(b"secret", "ca.crt")


def test_readable_certificates_are_found_beside_other_text() -> None:
    broken = CA.certificate.replace(b"MII", b"!!!", 1)

    assert readable_certificates(b"\n" + broken + CA.certificate + b"text") == [CERTIFICATE]
    assert readable_certificates(b"\n") == []


def test_an_encrypted_key_is_refused_with_its_remedy() -> None:
    key = load_pem_private_key(CA.key, password=None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))

    with pytest.raises(InvalidInput, match="store the key unencrypted"):
        private_key(encrypted, "tls.key")


def test_what_is_no_key_is_refused_without_its_text() -> None:
    with pytest.raises(InvalidInput, match=r"^tls\.key: Required value: must hold a private key in PEM$"):
        private_key(b"secret", "tls.key")
