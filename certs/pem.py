"""Parse PEM text into certificates and keys, with errors that name the file and the problem."""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes, PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from webhook.documents.field import FieldError, InvalidInput, invalid, required

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"


def certificates(pem: bytes, place: str) -> list[x509.Certificate]:
    """Return all certificates in `pem`, at least one. `place` names `pem` in errors.

    Raises:
        InvalidInput: there is no certificate, or one cannot be read.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise InvalidInput([unreadable(place, "certificates in PEM")]) from error


def readable_certificates(pem: bytes) -> list[x509.Certificate]:
    """Return the readable certificates of `pem` and ignore other content (such as `caBundle: Cg==`)."""
    found: list[x509.Certificate] = []
    for block in pem.split(_BEGIN)[1:]:
        body, end, _ = block.partition(_END)
        try:
            found.append(x509.load_pem_x509_certificate(_BEGIN + body + end))
        except ValueError:
            continue
    return found


def private_key(pem: bytes, place: str) -> PrivateKeyTypes:
    """Return the private key in `pem`.

    Raises:
        InvalidInput: the key is encrypted, of an unknown kind, or not a key. The error never shows the text.
    """
    try:
        return load_pem_private_key(pem, password=None)
    except TypeError as error:
        detail = "the key is encrypted, and the server cannot ask for a passphrase; store the key unencrypted"
        raise InvalidInput([FieldError(place, "Forbidden", None, detail)]) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput([unreadable(place, "a private key in PEM")]) from error


def public_key(certificate: x509.Certificate) -> CertificatePublicKeyTypes | None:
    """Return the key of `certificate`, or None for a kind that the library does not know, as another tool may use."""
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None


def unreadable(place: str, wanted: str) -> FieldError:
    """Return the error of a file with possibly secret content. It only names the place and the expected content."""
    return required(place, f"must hold {wanted}")


def encode(*chain: x509.Certificate) -> bytes:
    """Return these certificates as PEM, concatenated."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)


def expired(certificate: x509.Certificate, place: str) -> FieldError:
    """Return the error of an expired certificate."""
    return invalid(place, f"{certificate.not_valid_after_utc:%Y-%m-%d}", "expired on that day; issue a new one")


def mismatch(key_place: str, certificate_place: str) -> FieldError:
    """Return the error of a key that does not match the certificate."""
    return required(key_place, f"must hold the private key of {certificate_place}; this is the key of another one")
