"""The served certificate: renewed from its files while connections live, and watched for its expiry.

The files are read again every few seconds, not watched: a mounted Secret changes by a swap of the symlink `..data`,
others write in place, and a look at two small files serves both.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

import structlog

from webhook.kube.field import InvalidInput
from webhook.metrics import Metrics
from webhook.serving import tls

_FEW_DAYS = 30
_RENEWAL = "renew it (`placement-webhook certs issue`, or its issuer); it is read without a restart"


class Certificate:
    """The pair in `tls_dir`, served by `context`; `now` returns the time in UTC.

    Raises:
        InvalidInput: the pair cannot be served.
    """

    def __init__(self, tls_dir: Path, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._tls_dir = tls_dir
        self._metrics = metrics
        self._now = now
        self._log = structlog.get_logger()
        self._failure = ""
        self._told = ""
        self._pair = tls.read_pair(tls_dir)
        self.context: ssl.SSLContext = tls.server_context(self._pair)
        self._validity = tls.validity(self._pair)
        self._show_validity()

    def doubt(self) -> str:
        """Return why no API server trusts the certificate now; empty where nothing is known against it."""
        now, validity = self._now(), self._validity
        if now > validity.not_after:
            return "the certificate has expired: no API server trusts it"
        if now < validity.not_before:
            return "the certificate is not valid yet: no API server trusts it"
        return ""

    def look(self) -> None:
        """Read the files again, serve what is new and good in them, and log what has changed about the validity."""
        try:
            self._log_validity()
            pair = tls.read_pair(self._tls_dir)
            if pair != self._pair:
                self._replace(pair)
            self._failure = ""
        except InvalidInput as error:
            self._failed(str(error))
        except Exception as error:
            self._failed(f"internal error: {error!r}")

    def _replace(self, pair: tls.Pair) -> None:
        validity = tls.validity(pair)
        # A pair that does not match would leave the live context without a key.
        tls.server_context(pair)
        tls.load(self.context, pair)
        self._pair, self._validity = pair, validity
        self._metrics.certificate_reloads.labels("success").inc()
        self._log.info("certificate reloaded", not_after=validity.not_after.isoformat())
        self._show_validity()

    def _failed(self, failure: str) -> None:
        """Count a failure, and log one that is new."""
        self._metrics.certificate_reloads.labels("failure").inc()
        if failure != self._failure:
            self._failure = failure
            self._log.error("the certificate cannot be reloaded and the last good one is served", error=failure)

    def _show_validity(self) -> None:
        self._metrics.certificate_not_before.set(self._validity.not_before.timestamp())
        self._metrics.certificate_not_after.set(self._validity.not_after.timestamp())
        self._told = ""
        self._log_validity()

    def _log_validity(self) -> None:
        """Log a certificate that the API server will not trust, or not for long, once for each time that it changes."""
        validity, doubt = self._validity, self.doubt()
        days_left = (validity.not_after - self._now()).days
        told = doubt or ("the certificate expires soon" if days_left < _FEW_DAYS else "")
        if told == self._told:
            return
        self._told = told
        log = self._log.bind(
            not_before=validity.not_before.isoformat(), not_after=validity.not_after.isoformat(), days_left=days_left
        )
        if doubt:
            log.error(doubt, remedy=_RENEWAL)
        elif told:
            log.warning(told, remedy=_RENEWAL)
        else:
            log.info("the certificate is valid")

    @asynccontextmanager
    async def followed(self, poll_seconds: float) -> AsyncIterator[None]:
        """Look at the files that often until the block ends."""
        following = asyncio.create_task(self._follow(poll_seconds), name="certificate")
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def _follow(self, poll_seconds: float) -> None:
        while True:
            await asyncio.sleep(poll_seconds)
            self.look()
