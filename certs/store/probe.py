"""Probe whether an API server that trusts a caBundle would trust the server at an endpoint."""

import socket
import ssl
import time
from dataclasses import dataclass
from enum import Enum

from cryptography import x509

from certs.names import names_of
from certs.registration import Endpoint

_ATTEMPT_SECONDS = 3.0
_PAUSE_SECONDS = 1.0


class Outcome(Enum):
    """The outcomes of a probe."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Probe:
    """The outcome and its details."""

    outcome: Outcome
    detail: str


def probe(endpoint: Endpoint, ca_bundle: bytes, wait_seconds: float = 0.0) -> Probe:
    """Return the outcome of a TLS handshake at `endpoint`, retried for `wait_seconds` until it is trusted.

    The wait gives a server time to start or to read its new certificate.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        result = _attempt(endpoint, ca_bundle)
        if result.outcome is Outcome.TRUSTED or time.monotonic() + _PAUSE_SECONDS > deadline:
            return result
        time.sleep(_PAUSE_SECONDS)


def served_certificate(endpoint: Endpoint) -> x509.Certificate | None:
    """Return the certificate that the server at `endpoint` sends, verified or not; None if it sends none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((endpoint.host, endpoint.port), timeout=_ATTEMPT_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=endpoint.server_name) as session,
        ):
            sent = session.getpeercert(binary_form=True)
        certificate = x509.load_der_x509_certificate(sent) if sent else None
        if certificate is not None:
            names_of(certificate)
    except (OSError, ValueError):  # ValueError: it cannot be parsed; its extensions are parsed on first use
        return None
    return certificate


def _attempt(endpoint: Endpoint, ca_bundle: bytes) -> Probe:
    try:
        with (
            socket.create_connection((endpoint.host, endpoint.port), timeout=_ATTEMPT_SECONDS) as connection,
            _context(ca_bundle).wrap_socket(connection, server_hostname=endpoint.server_name) as session,
        ):
            return Probe(Outcome.TRUSTED, f"{session.version()}, certificate valid for {endpoint.server_name}")
    except ssl.SSLCertVerificationError as error:
        return Probe(Outcome.UNTRUSTED, error.verify_message)
    except ssl.SSLError as error:
        return Probe(Outcome.UNTRUSTED, f"not a TLS server: {error.reason or error}")
    except OSError as error:
        return Probe(Outcome.UNREACHABLE, str(error.strerror or error))


def _context(ca_bundle: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_bundle.decode("ascii", "ignore"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go, and thus the API server, accepts chains that Python rejects from 3.13 on, trusts intermediate certificates of
    # the caBundle, which Python does from 3.13 on, and never looks at the common name.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    return context
