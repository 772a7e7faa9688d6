"""The inspection of certificate files, for faults that no issued certificate has."""

from dataclasses import replace
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from certs.inspection import Fault, inspect
from tests.support.certificates import FRESH, NOW


def _with_broken_alternative_names() -> bytes:
    """Return a certificate whose subjectAltName is not DER."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=30))
    names = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, b"\x01")
    return builder.add_extension(names, critical=False).sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_a_certificate_with_a_malformed_extension_is_unreadable() -> None:
    found = inspect(replace(FRESH, certificate=_with_broken_alternative_names()), NOW)

    assert found.server is None
    assert [(problem.file, problem.fault) for problem in found.problems] == [("tls.crt", Fault.UNREADABLE)]
    assert str(found.problems[0].error) == "tls.crt: Required value: must hold a certificate with valid extensions"
