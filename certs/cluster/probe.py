"""Probe a server with a TLS handshake, as an API server that trusts a caBundle."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

from cryptography import x509

from certs import pem
from certs.names import names_of
from certs.registration import Endpoint, ca_bundles, endpoint_of, parse_endpoint
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.watch.trust import trusting_as_go

_ATTEMPT_SECONDS = 3.0


class _UnreadableBundleError(Exception):
    """A caBundle has text, but no certificate that can be read."""


class Outcome(Enum):
    """The outcomes of a probe."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Called:
    """The outcome of a TLS handshake at `address`.

    `certificate` is the certificate that the server sends, or None if the server is not reachable or was not probed.
    """

    address: str
    outcome: Outcome
    detail: str
    certificate: x509.Certificate | None = None

    @property
    def trusted(self) -> bool:
        """True if API servers trust the server."""
        return self.outcome is Outcome.TRUSTED


def probe(endpoint: Endpoint, ca_bundle: bytes) -> Called:
    """Return the outcome of a TLS handshake at `endpoint`."""
    try:
        with _session(endpoint, lambda: _context(ca_bundle)) as session:
            outcome, detail = Outcome.TRUSTED, f"{session.version()}, certificate valid for {endpoint.server_name}"
    except _UnreadableBundleError:
        outcome, detail = Outcome.UNTRUSTED, "the caBundle cannot be read as certificates"
    except ssl.SSLCertVerificationError as error:
        outcome, detail = Outcome.UNTRUSTED, error.verify_message
    except ssl.SSLError as error:
        outcome, detail = Outcome.UNTRUSTED, f"not a TLS server: {error.reason or error}"
    except OSError as error:
        outcome, detail = Outcome.UNREACHABLE, str(error.strerror or error)
    return Called(str(endpoint), outcome, detail)


def call_webhooks(configuration: JsonObject, at: str | None = None) -> list[Called | None]:
    """Return the result for each webhook of `configuration`, or None for a webhook without a service or a valid url.

    `at` is the HOST:PORT to connect to instead of the address of the webhook.

    Raises:
        InvalidInput: `at` is not HOST:PORT.
    """
    if at is not None:
        parse_endpoint(at, "")
    known: dict[tuple[Endpoint, bytes], Called] = {}
    called: list[Called | None] = []
    for webhook, bundle in zip(configuration.get("webhooks") or (), ca_bundles(configuration), strict=True):
        try:
            meant = endpoint_of(configuration, webhook)
        except InvalidInput:
            called.append(None)
            continue
        endpoint = meant if at is None else parse_endpoint(at, meant.server_name)
        if (endpoint, bundle) not in known:
            result = probe(endpoint, bundle)
            if result.outcome is not Outcome.UNREACHABLE:
                result = replace(result, certificate=_served_certificate(endpoint))
            known[endpoint, bundle] = result
        called.append(known[endpoint, bundle])
    return called


def _served_certificate(endpoint: Endpoint) -> x509.Certificate | None:
    """Return the certificate that the server at `endpoint` sends, verified or not, or None if it sends none."""
    try:
        with _session(endpoint, _unverified) as session:
            sent = session.getpeercert(binary_form=True)
        certificate = x509.load_der_x509_certificate(sent or b"")
        names_of(certificate)
    except (OSError, ValueError):  # ValueError: it cannot be parsed; its extensions are parsed on first use
        return None
    return certificate


@contextmanager
def _session(endpoint: Endpoint, context: Callable[[], ssl.SSLContext]) -> Iterator[ssl.SSLSocket]:
    # A server that is away is unreachable also under a caBundle without a certificate, which makes no context.
    with (
        socket.create_connection((endpoint.host, endpoint.port), timeout=_ATTEMPT_SECONDS) as connection,
        context().wrap_socket(connection, server_hostname=endpoint.server_name) as session,
    ):
        yield session


def _context(ca_bundle: bytes) -> ssl.SSLContext:
    # An API server skips what it cannot read (Go: crypto/x509, CertPool.AppendCertsFromPEM).
    known = pem.readable_certificates(ca_bundle)
    if ca_bundle and not known:
        raise _UnreadableBundleError
    context = ssl.create_default_context(cadata=pem.encode(*known).decode())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return trusting_as_go(context)


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
