"""The metrics of the certs controller, and its admin port: liveness, readiness, metrics."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import product

from aiohttp import web
from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest

from certs.plan import STEPS_OF_A_ROTATION
from webhook.documents.field import InvalidInput, invalid
from webhook.runtime.metrics import CONTENT_TYPE
from webhook.runtime.settings import Address

MEND = "mend_ca_bundle"
CREATE = "create_configuration"
RECORD = "record_configuration"
ACTIONS = (*map(str, STEPS_OF_A_ROTATION), MEND, CREATE, RECORD)
_RESULTS = ("done", "conflict", "failed")
_PREFIX = "placement_webhook_certs_controller"


class ControllerMetrics:
    """The metrics of one controller, in their own registry."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types
        self.registry = registry = CollectorRegistry()

        text = "Changes of the Secret and the webhook configurations, by action and result."
        self.actions = Counter(f"{_PREFIX}_actions", text, ("action", "result"), registry=registry)
        for labels in product(ACTIONS, _RESULTS):
            self.actions.labels(*labels)
        text = "Attempts to compare the certificates with the cluster that failed; the log has the reason."
        self.failures = Counter(f"{_PREFIX}_failures", text, registry=registry)
        text = "1 while the next action is not to keep the certificates."
        self._rotating = Gauge(f"{_PREFIX}_rotation_in_progress", text, registry=registry)
        text = "Expiry time of the CA that signs; 0 if there is none."
        self._ca_end = Gauge("placement_webhook_ca_not_after_timestamp_seconds", text, registry=registry)
        text = "Expiry time of the server certificate in the Secret; 0 if there is none."
        self._end = Gauge(f"{_PREFIX}_certificate_not_after_timestamp_seconds", text, registry=registry)

    def show(self, ca: x509.Certificate | None, server: x509.Certificate | None, *, is_rotating: bool) -> None:
        """Export the expiry times of the signing CA and of the certificate, and whether a rotation is in progress."""
        self._rotating.set(is_rotating)
        for gauge, certificate in ((self._ca_end, ca), (self._end, server)):
            gauge.set(certificate.not_valid_after_utc.timestamp() if certificate else 0)


@asynccontextmanager
async def admin_port(
    address: Address, metrics: ControllerMetrics, unready_reason: Callable[[], str], note: Callable[[], str]
) -> AsyncIterator[Address]:
    """Serve `/healthz`, `/readyz` and `/metrics` until the block ends. Yield the address with its port.

    Raises:
        InvalidInput: the port is in use, or the address is not of this machine.
    """

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        reason = unready_reason()
        lines = filter(None, [f"not ready: {reason}" if reason else "ok", note()])
        return web.Response(status=503 if reason else 200, text="".join(f"{line}\n" for line in lines))

    async def measured(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.add_routes([web.get("/healthz", healthy), web.get("/readyz", ready), web.get("/metrics", measured)])
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host, address.port).start()
        except OSError as error:
            detail = f"cannot listen there: {error.strerror or error}; choose another address"
            raise InvalidInput([invalid("--admin-listen", str(address), detail)]) from error
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()
