"""The server's TLS: TLS 1.2 or newer, from `tls.crt` and `tls.key` in one folder."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from cryptography import x509

from certs.inspection import unfit_for_server
from certs.names import names_of
from webhook.documents.field import InvalidInput, invalid


@dataclass(frozen=True, slots=True)
class Pair:
    """The contents of `tls.crt` and `tls.key` in `tls_dir`."""

    tls_dir: Path
    certificate: bytes
    key: bytes

    @property
    def certificate_path(self) -> Path:
        """The file of the certificate chain."""
        return self.tls_dir / "tls.crt"


def read_pair(tls_dir: Path) -> Pair:
    """Return the pair in `tls_dir`.

    Raises:
        InvalidInput: a file is missing or cannot be read.
    """
    paths = tls_dir / "tls.crt", tls_dir / "tls.key"
    missing = [path for path in paths if not path.is_file()]
    if missing:
        remedy = "no such file; `placement-webhook certs issue --dir DIR --dns NAME` makes one"
        raise InvalidInput(invalid("--tls-dir", str(path), remedy) for path in missing)
    try:
        certificate, key = (path.read_bytes() for path in paths)
    except OSError as error:
        detail = f"cannot be read: {error.strerror or error}"
        raise InvalidInput([invalid("--tls-dir", str(error.filename or tls_dir), detail)]) from error
    return Pair(tls_dir, certificate, key)


def read_client_ca(path: Path | None) -> str:
    """Return the certificates in the file of `--client-ca`, or none if there is no file.

    Raises:
        InvalidInput: the file cannot be read, or holds no certificate in PEM.
    """
    if path is None:
        return ""
    try:
        content = path.read_bytes()
        x509.load_pem_x509_certificates(content)
        return content.decode("ascii", "replace")
    except OSError as error:
        raise InvalidInput([invalid("--client-ca", str(path), f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        detail = "must hold the certificates, in PEM, of the CAs that sign the certificates of clients"
        raise InvalidInput([invalid("--client-ca", str(path), detail)]) from error


def server_context(pair: Pair, client_ca: str = "") -> ssl.SSLContext:
    """Return a context that serves `pair` and verifies certificates of clients, if they send one, by a CA.

    Raises:
        InvalidInput: the two files do not belong together, or one is not PEM.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A resumed session would keep the certificate of its first handshake. API servers keep no sessions.
    context.num_tickets = 0
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        # As Go does: an intermediate CA in the file is trusted without its root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=client_ca)
    load(context, pair)
    return context


def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load `pair` for the next handshakes. After an invalid pair, the context is unusable.

    Raises:
        InvalidInput: the two files do not belong together, or one is not PEM.
    """
    try:
        # OpenSSL reads only files, and the files in the folder may have changed since they were read.
        with _as_file(pair.certificate) as certificate, _as_file(pair.key) as key:
            # An empty password: without one, OpenSSL would prompt on the terminal for an encrypted key.
            context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        detail = f"must be PEM and belong together, the key unencrypted: {_explained(pair, error)}"
        files = f"{pair.certificate_path}, {pair.tls_dir / 'tls.key'}"
        raise InvalidInput([invalid("--tls-dir", files, detail)]) from error


def _explained(pair: Pair, error: ssl.SSLError) -> str:
    """Return OpenSSL's reason, and the remedy if one is known."""
    reason = error.reason or str(error)
    if "MD_TOO_WEAK" in reason:
        return f"{reason}: the certificate is signed with SHA-1 or MD5, which API servers reject; sign it with SHA-256"
    if "KEY_TOO_SMALL" in reason:
        return f"{reason}: the key is too short; make one of RSA 2048 or more, or ECDSA P-256"
    if "KEY_VALUES_MISMATCH" in reason and pair.certificate.count(b"-----BEGIN CERTIFICATE-----") > 1:
        return f"{reason}: the server certificate must be the first in tls.crt, before its intermediate certificates"
    return reason


def in_memory(name: str) -> IO[bytes]:
    """Return a file for only this process, in memory if possible, or else on disk until it is closed."""
    # The image's file systems are read-only, and the key must not be on disk.
    return os.fdopen(os.memfd_create(name), "w+b") if hasattr(os, "memfd_create") else tempfile.NamedTemporaryFile()


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file with `content` that only this process can read, until the block ends."""
    with in_memory("tls") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if isinstance(file.name, int) else file.name


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity period of a certificate, in UTC, and the reason why API servers always reject it, or empty."""

    not_before: datetime
    not_after: datetime
    fault: str = ""


def validity(pair: Pair, server_name: str = "") -> Validity:
    """Return the validity of the server certificate in `pair` for `server_name`. If it is empty, any name is accepted.

    Raises:
        InvalidInput: the certificate cannot be parsed; OpenSSL accepts some input that is not PEM.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        return Validity(
            certificate.not_valid_before_utc, certificate.not_valid_after_utc, _fault(certificate, server_name)
        )
    except (ValueError, x509.InvalidVersion) as error:
        detail = f"must be a certificate in PEM, from -----BEGIN CERTIFICATE----- on: {error}"
        raise InvalidInput([invalid("--tls-dir", str(pair.certificate_path), detail)]) from error


def _fault(certificate: x509.Certificate, server_name: str) -> str:
    if reason := unfit_for_server(certificate):
        return f"no API server trusts the certificate: {reason}"
    names = names_of(certificate)
    if server_name and not names.covers(server_name):
        return f"the certificate is not valid for {server_name}, which API servers call, but for {names}"
    return ""
