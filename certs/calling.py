"""Call each webhook of a configuration with a TLS handshake, as the API server does."""

from certs import registration
from certs.registration import Endpoint, parse_endpoint
from certs.status import Called
from certs.store.cluster import JsonObject
from certs.store.probe import Outcome, probe, served_certificate
from webhook.kube.field import InvalidInput


def call_webhooks(configuration: JsonObject, at: str | None = None) -> list[Called | None]:
    """Return the result for each webhook of `configuration`; None for one without a service or a valid url.

    `at` is the HOST:PORT to connect to in place of that of the webhook.

    Raises:
        InvalidInput: `at` has another form.
    """
    if at is not None:
        parse_endpoint(at, "")
    known: dict[tuple[Endpoint, bytes], Called] = {}
    called: list[Called | None] = []
    webhooks = configuration.get("webhooks") or ()
    for webhook, bundle in zip(webhooks, registration.ca_bundles(configuration), strict=True):
        try:
            meant = registration.webhook_endpoint(configuration, webhook)
        except InvalidInput:
            called.append(None)
            continue
        endpoint = meant if at is None else parse_endpoint(at, meant.server_name)
        if (endpoint, bundle) not in known:
            known[endpoint, bundle] = _call(endpoint, bundle)
        called.append(known[endpoint, bundle])
    return called


def _call(endpoint: Endpoint, bundle: bytes) -> Called:
    result = probe(endpoint, bundle)
    certificate = None if result.outcome is Outcome.UNREACHABLE else served_certificate(endpoint)
    return Called(str(endpoint), result.outcome is Outcome.TRUSTED, result.detail, certificate)
