"""The server's TLS: TLS 1.2 or newer, from `tls.crt` and `tls.key` in one folder."""

import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from webhook.kube.field import InvalidInput, invalid


def server_context(tls_dir: Path) -> ssl.SSLContext:
    """A context that serves `tls.crt` with `tls.key`.

    Raises:
        InvalidInput: a file is missing, unreadable, or they do not belong together.
    """
    certificate, key = tls_dir / "tls.crt", tls_dir / "tls.key"
    missing = [path for path in (certificate, key) if not path.is_file()]
    if missing:
        remedy = "no such file; `placement-webhook certs issue --dir DIR --dns NAME` makes one"
        raise InvalidInput(invalid("--tls-dir", str(path), remedy) for path in missing)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An empty password: without one, an encrypted key would have OpenSSL ask on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        detail = f"must be PEM and belong together, the key unencrypted: {error.reason or error}"
        raise InvalidInput([invalid("--tls-dir", f"{certificate}, {key}", detail)]) from error
    except OSError as error:
        detail = f"cannot be read: {error.strerror or error}"
        raise InvalidInput([invalid("--tls-dir", str(error.filename or tls_dir), detail)]) from error
    return context


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when a certificate holds, in UTC."""

    not_before: datetime
    not_after: datetime


def validity(tls_dir: Path) -> Validity:
    """That of the server certificate in `tls.crt`.

    Raises:
        InvalidInput: it cannot be read; OpenSSL takes more than is PEM of a certificate.
    """
    path = tls_dir / "tls.crt"
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        return Validity(certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    except (OSError, ValueError) as error:
        detail = f"must be a certificate in PEM, from -----BEGIN CERTIFICATE----- on: {error}"
        raise InvalidInput([invalid("--tls-dir", str(path), detail)]) from error
