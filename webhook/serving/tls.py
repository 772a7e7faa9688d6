"""The server's TLS: TLS 1.2 or newer, from `tls.crt` and `tls.key` in one folder."""

import ssl
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


def not_after(tls_dir: Path) -> datetime:
    """When the server certificate expires, in UTC."""
    return x509.load_pem_x509_certificate((tls_dir / "tls.crt").read_bytes()).not_valid_after_utc
