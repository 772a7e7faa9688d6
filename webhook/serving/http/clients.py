"""The clients that may call the webhook's port, by the names in their certificates."""

import ssl
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from aiohttp import web

from webhook.documents.text import cut, printable
from webhook.serving.clock import LimitedLog
from webhook.serving.http.protocol import HttpProtocol

_SHOWN_CHARACTERS = 253
_MOST_NAMES = 5
_ALTERNATIVES = ("DNS", "URI", "email", "IP Address")


class Clients:
    """The clients that may call: all clients, or those whose verified certificate has a name that matches a pattern.

    The names are the CN of the subject and the subject alternative names. Without patterns, every certificate of the CA
    is accepted. TLS verifies the certificate. A client without a certificate completes the handshake, so that probes
    can read the server's certificate, and gets the status 403.
    """

    def __init__(self, patterns: tuple[str, ...] = (), *, is_required: bool = False) -> None:
        self._patterns = patterns
        self._is_required = is_required
        self._log = LimitedLog()

    def verified(self, protocol: HttpProtocol) -> str:
        """Return the name of the client of a connection, or an empty string if no certificate is required.

        Raises:
            HTTPForbidden: the client has no certificate, or one without a name that may call.
        """
        if not self._is_required:
            return ""
        transport, address = protocol.transport, protocol.connection.address
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object") if transport is not None else None
        certificate = tls.getpeercert() if tls is not None else None
        if not certificate:
            raise self._forbidden(address, "no client certificate: the API server needs the kubeconfig of docs/mtls.md")
        names = [*_names(certificate)]
        if self._patterns and not any(fnmatchcase(name, each) for name in names for each in self._patterns):
            shown = ", ".join(names[:_MOST_NAMES]) or "no name"
            raise self._forbidden(address, f"the client certificate of {shown} has no name that --client-name allows")
        return names[0] if names else ""

    def _forbidden(self, address: str, reason: str) -> web.HTTPForbidden:
        self._log.warning("client refused", address=address, reason=reason)
        # The body is not read, and the connection is of no use.
        refusal = web.HTTPForbidden(text=f"{reason}\n")
        refusal.force_close()
        return refusal


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the CN of the subject and the subject alternative names, as `ssl` decodes a certificate."""
    subject = [attribute for part in certificate.get("subject", ()) for attribute in part]
    yield from (_shown(value) for key, value in subject if key == "commonName")
    yield from (_shown(value) for key, value in certificate.get("subjectAltName", ()) if key in _ALTERNATIVES)


def _shown(value: Any) -> str:
    return cut(printable(str(value)), _SHOWN_CHARACTERS)
