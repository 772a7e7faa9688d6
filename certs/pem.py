"""PEM text into certificates and keys, with errors that say which file is wrong and how."""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from webhook.kube.field import FieldError, InvalidInput, invalid, required

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"


def certificates(pem: bytes, place: str) -> list[x509.Certificate]:
    """Every certificate in `pem`, at least one; `place` is what errors call it.

    Raises:
        InvalidInput: there is none, or one cannot be read.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise InvalidInput([unreadable(place, "certificates in PEM")]) from error


def readable_certificates(pem: bytes) -> list[x509.Certificate]:
    """The certificates of `pem` that can be read; what else stands there (`caBundle: Cg==`) counts as nothing."""
    found: list[x509.Certificate] = []
    for block in pem.split(_BEGIN)[1:]:
        body, end, _ = block.partition(_END)
        try:
            found.append(x509.load_pem_x509_certificate(_BEGIN + body + end))
        except ValueError:
            continue
    return found


def private_key(pem: bytes, place: str) -> PrivateKeyTypes:
    """The private key in `pem`.

    Raises:
        InvalidInput: it is encrypted, of an unknown kind, or no key at all. The error never shows the text.
    """
    try:
        return load_pem_private_key(pem, password=None)
    except TypeError as error:
        detail = "the key is encrypted, and the server has nobody to ask for a passphrase; store it without"
        raise InvalidInput([FieldError(place, "Forbidden", None, detail)]) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput([unreadable(place, "a private key in PEM")]) from error


def unreadable(place: str, wanted: str) -> FieldError:
    """What is told of a file whose content may be secret: the place and what should be there, not the value."""
    return required(place, f"must hold {wanted}")


def encode(*chain: x509.Certificate) -> bytes:
    """These certificates as PEM, one after the other."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)


def expired(certificate: x509.Certificate, place: str) -> FieldError:
    """What is told of a certificate whose time is over."""
    return invalid(place, f"{certificate.not_valid_after_utc:%Y-%m-%d}", "expired on that day; issue a new one")


def mismatch(key_place: str, certificate_place: str) -> FieldError:
    """What is told of a key that is not the certificate's."""
    return required(key_place, f"must hold the private key of {certificate_place}; this is the key of another one")
