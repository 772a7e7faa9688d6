"""The served certificate. It is reloaded from its files while connections stay open; a near expiry is logged.

The files are polled every few seconds instead of watched. A mounted Secret changes by a swap of the symlink `..data`,
and other writers change files in place. Polling covers both.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

import structlog

from certs.inspection import least_time_left
from webhook.documents.field import InvalidInput, invalid
from webhook.runtime.metrics import Metrics
from webhook.serving.http import tls
from webhook.serving.scheduling.worker import in_background

_NOT_RELOADED = "the certificate cannot be reloaded and the last good one is served"
_REMEDY = "renew it (`placement-webhook certs issue`, or its issuer); it is read without a restart"


class Certificate:
    """The pair that `read_pair` finds in `tls_dir`, and the TLS context that serves it. `now` returns the time in UTC.

    `server_name` is the name by which API servers call, or empty if it is not known. `client_ca` is the file of the CAs
    of clients. New CAs need a new `context`, because CAs cannot be removed from one.

    Raises:
        InvalidInput: the pair cannot be served.
    """

    def __init__(
        self,
        tls_dir: Path,
        metrics: Metrics,
        now: Callable[[], datetime],
        server_name: str = "",
        client_ca: Path | None = None,
        read_pair: Callable[[Path], tls.Pair] = tls.read_pair,
    ) -> None:
        self._tls_dir = tls_dir
        self._read_pair = read_pair
        self._server_name = server_name
        self._metrics = metrics
        self._now = now
        self._log = structlog.get_logger()
        self._failure = ""
        self._logged = ""
        self._client_ca_path = client_ca
        self._client_ca = tls.read_client_ca(client_ca)
        self._pair = read_pair(tls_dir)
        self.context: ssl.SSLContext = tls.server_context(self._pair, self._client_ca)
        self._validity = tls.validity(self._pair, server_name)
        self._publish_validity()

    def current(self) -> ssl.SSLContext:
        """Return the TLS context for new connections."""
        return self.context

    def invalid_reason(self) -> str:
        """Return the reason why API servers do not trust the certificate now, or an empty string if it is valid."""
        now, validity = self._now(), self._validity
        if now > validity.not_after:
            return "the certificate has expired: no API server trusts it"
        if now < validity.not_before:
            return "the certificate is not valid yet: no API server trusts it"
        return validity.fault

    def reload_failure(self) -> str:
        """Return the reason why the pair in the files is not served, or an empty string if it is served."""
        return f"{_NOT_RELOADED}: {self._failure}" if self._failure else ""

    def reload(self) -> None:
        """Read the files again, serve the pair if it is new and valid, and log a change of the validity."""
        try:
            self._log_validity()
            pair = self._read_pair(self._tls_dir)
            if pair != self._pair:
                self._replace(pair)
            self._reload_client_ca()
            self._failure = ""
        except InvalidInput as error:
            self._failed(str(error))
        except Exception as error:
            self._failed(f"internal error: {error!r}")

    def _replace(self, pair: tls.Pair) -> None:
        validity = tls.validity(pair, self._server_name)
        if validity.fault and not self.invalid_reason():
            raise InvalidInput([invalid("--tls-dir", str(pair.certificate_path), validity.fault)])
        # Loading a mismatched pair into the live context would leave it without a key.
        tls.server_context(pair)
        tls.load(self.context, pair)
        self._pair, self._validity = pair, validity
        self._metrics.certificate_reloads.labels("success").inc()
        self._log.info("certificate reloaded", not_after=validity.not_after.isoformat())
        self._publish_validity()

    def _reload_client_ca(self) -> None:
        client_ca = tls.read_client_ca(self._client_ca_path)
        if client_ca != self._client_ca:
            self.context = tls.server_context(self._pair, client_ca)
            self._client_ca = client_ca
            self._metrics.certificate_reloads.labels("success").inc()
            self._log.info("CA of clients reloaded")

    def _failed(self, failure: str) -> None:
        """Count the failure, and log it if it is new."""
        self._metrics.certificate_reloads.labels("failure").inc()
        if failure != self._failure:
            self._failure = failure
            self._log.error(_NOT_RELOADED, error=failure)

    def _publish_validity(self) -> None:
        self._metrics.certificate_not_before.set(self._validity.not_before.timestamp())
        self._metrics.certificate_not_after.set(self._validity.not_after.timestamp())
        self._logged = ""
        self._log_validity()

    def _log_validity(self) -> None:
        """Log the validity of the certificate whenever it changes: invalid, near its expiry, or valid."""
        validity, reason = self._validity, self.invalid_reason()
        left = validity.not_after - self._now()
        is_late = left < least_time_left(validity.not_before, validity.not_after)
        message = reason or ("the certificate expires soon" if is_late else "")
        if message == self._logged:
            return
        self._logged = message
        log = self._log.bind(
            not_before=validity.not_before.isoformat(), not_after=validity.not_after.isoformat(), days_left=left.days
        )
        if reason:
            log.error(reason, remedy=_REMEDY)
        elif message:
            log.warning(message, remedy=_REMEDY)
        else:
            log.info("the certificate is valid")

    def polled(self, poll_seconds: float) -> AbstractAsyncContextManager[None]:
        """Poll the files until the block ends."""
        return in_background(self._poll(poll_seconds), "certificate")

    async def _poll(self, poll_seconds: float) -> None:
        while True:
            await asyncio.sleep(poll_seconds)
            self.reload()
