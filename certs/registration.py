"""Build the webhook's MutatingWebhookConfiguration and its caBundle. Pure: objects in, objects and patches out."""

import base64
from collections.abc import Collection, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from cryptography import x509

from certs import pem
from certs.names import ServerNames, server_names, service_names
from certs.webhook_rules import PODS, WebhookRules
from webhook.documents.documents import JsonObject, field, parse
from webhook.documents.field import InvalidInput, forbidden, invalid
from webhook.runtime.settings import Address

FIELD_MANAGER = "placement-webhook-certs"
"""The field manager of what `certs register` writes."""

MANIFEST = "mutatingwebhookconfiguration.yaml"
INJECTED_BY_CERT_MANAGER = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
_SETTINGS = ("failurePolicy", "namespaceSelector", "objectSelector")
_HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class Target:
    """The names of the objects in the cluster. If `url` is set, the API server calls it instead of the Service."""

    namespace: str = "placement-webhook"
    secret: str = "placement-webhook-tls"  # noqa: S105 - the name of a Secret
    service: str = "placement-webhook"
    configuration: str = "00-placement-webhook"
    url: str | None = None

    @property
    def controller_namespace(self) -> str:
        """Return the namespace of the certs controller, whose permissions users of the webhook's do not get."""
        return f"{self.namespace}-certs"

    @property
    def secret_place(self) -> str:
        """Return the name of the Secret for messages."""
        return f"Secret {self.namespace}/{self.secret}"


@dataclass(frozen=True, slots=True)
class Endpoint(Address):
    """The address to connect to, and the server name that the API server verifies."""

    server_name: str


def manifest(target: Target, webhook_rules: WebhookRules | None = None) -> JsonObject:
    """Return the configuration to create in a new cluster, which is that of `deploy/base` without caBundle.

    `webhook_rules` select the objects for which the webhooks are called. None means those of the built-in policy.
    """
    configuration = deepcopy(_shipped())
    configuration["metadata"]["name"] = target.configuration
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"]["service"].update(namespace=target.namespace, name=target.service)
        for expression in webhook["namespaceSelector"]["matchExpressions"]:
            expression["values"] = ["kube-system", target.namespace, target.controller_namespace]
        if target.url:
            webhook["clientConfig"] = {"url": target.url}
        if webhook_rules is not None:
            webhook.update(webhook_rules.rules(webhook["name"]))
    return configuration


@cache
def _shipped() -> JsonObject:
    return parse(files("certs").joinpath(MANIFEST).read_bytes(), MANIFEST)[0].content


def with_ca_bundle(configuration: JsonObject, bundle: bytes) -> JsonObject:
    """Return the configuration with `bundle` in each of its webhooks."""
    encoded = base64.b64encode(bundle).decode()
    webhooks = [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": encoded}}
        for webhook in configuration["webhooks"]
    ]
    return {**configuration, "webhooks": webhooks}


def ca_bundles(configuration: JsonObject) -> list[bytes]:
    """Return the caBundle of each webhook of `configuration`. It is empty for a webhook without one."""
    bundles: list[bytes] = []
    for webhook in configuration.get("webhooks") or ():
        try:
            bundles.append(base64.b64decode(field(webhook, "clientConfig", "caBundle") or ""))
        except (TypeError, ValueError):
            bundles.append(b"")
    return bundles


def trusted_certificates(configurations: Iterable[JsonObject]) -> tuple[tuple[x509.Certificate, ...], ...]:
    """Return the readable certificates of the caBundle of each webhook of `configurations`."""
    return tuple(
        tuple(pem.readable_certificates(bundle))
        for configuration in configurations
        for bundle in ca_bundles(configuration)
    )


def missing_webhooks(configuration: JsonObject, wanted: JsonObject) -> list[JsonObject]:
    """Return the webhooks of `wanted` that are missing in `configuration`, which an earlier version may have created.

    They get the endpoint and the namespaceSelector of the configuration's webhook for pods. A configuration without a
    webhook for pods was written by another tool, so nothing is missing in it.
    """
    known = {webhook.get("name"): webhook for webhook in configuration.get("webhooks") or ()}
    if PODS not in known:
        return []
    kept = {key: known[PODS][key] for key in ("clientConfig", "namespaceSelector") if key in known[PODS]}
    return [webhook | kept for webhook in wanted["webhooks"] if webhook["name"] not in known]


def changed_rules(configuration: JsonObject, webhook_rules: WebhookRules) -> list[JsonObject]:
    """Return the RFC 6902 operations that change the rules of the webhooks to `webhook_rules`."""
    return [
        {"op": "add", "path": f"/webhooks/{index}/{key}", "value": value}
        for index, webhook in enumerate(configuration.get("webhooks") or ())
        for key, value in webhook_rules.rules(webhook.get("name", "")).items()
        if webhook.get(key) != value
    ]


def own_settings(configuration: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return, by webhook, the failurePolicy and selectors that an administrator has set differently from `wanted`."""
    found: JsonObject = {}
    shipped = {webhook["name"]: webhook for webhook in wanted["webhooks"]}
    for webhook in configuration.get("webhooks") or ():
        meant = shipped.get(webhook.get("name"), {})
        # The API server sets an empty objectSelector.
        given = {key: webhook[key] for key in _SETTINGS if key in webhook}
        own = {key: value for key, value in given.items() if (value or {}) != (meant.get(key) or {})}
        if meant and own:
            found[meant["name"]] = own
    return found


def ca_bundle_patch(
    configuration: JsonObject,
    bundle: bytes,
    url: str | None,
    added: Iterable[JsonObject] = (),
    changes: Iterable[JsonObject] = (),
) -> list[JsonObject]:
    """Return the RFC 6902 operations that set `bundle` and, if given, `url` in each webhook; none without a change.

    The webhooks `added` are appended with the same values, and the operations `changes` follow. The operations test the
    resourceVersion that was read, so that a concurrent change leads to a 409 and is not overwritten.
    """
    encoded = base64.b64encode(bundle).decode()

    def client(webhook: JsonObject) -> JsonObject:
        return {**({"url": url} if url else webhook["clientConfig"]), "caBundle": encoded}

    operations: list[JsonObject] = [
        {"op": "replace", "path": f"/webhooks/{index}/clientConfig", "value": client(webhook)}
        for index, webhook in enumerate(configuration.get("webhooks") or ())
        if webhook["clientConfig"] != client(webhook)
    ]
    whole = (each | {"clientConfig": client(each)} for each in added)
    operations += ({"op": "add", "path": "/webhooks/-", "value": each} for each in whole)
    operations += changes
    if not operations:
        return []
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *operations]


def mending_patch(
    configuration: JsonObject, wanted: Collection[x509.Certificate], added: Collection[JsonObject] = ()
) -> list[JsonObject]:
    """Return the RFC 6902 operations that set each caBundle to exactly `wanted`, or none if nothing differs.

    The order of CAs is ignored, so that two controllers do not overwrite each other. The webhooks `added` are appended.
    """
    bundle = pem.encode(*wanted)
    known = ((found, pem.readable_certificates(found)) for found in ca_bundles(configuration))
    # A block that cannot be read is removed.
    if not added and all(set(cas) == set(wanted) and pem.encode(*cas) == found for found, cas in known):
        return []
    return ca_bundle_patch(configuration, bundle, None, added)


def check_not_injected(configuration: JsonObject) -> None:
    """Reject a configuration whose caBundle has another owner.

    Raises:
        InvalidInput: cert-manager manages this caBundle and would overwrite a change.
    """
    if key := injected_by(configuration):
        place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}"
        detail = f"cert-manager keeps this caBundle (annotation {key}); remove the annotation first"
        raise InvalidInput([forbidden(place, detail)])


def injected_by(configuration: JsonObject) -> str | None:
    """Return the annotation with which cert-manager manages the caBundle of a configuration, or None."""
    annotations = field(configuration, "metadata", "annotations") or {}
    return next((key for key in INJECTED_BY_CERT_MANAGER if key in annotations), None)


def endpoint_of(configuration: JsonObject, webhook: JsonObject | None = None) -> Endpoint:
    """Return the endpoint at which the API server calls `webhook` of `configuration`, by default the first webhook.

    Source: k8s.io/apiserver/pkg/util/webhook/client.go HookClient

    Raises:
        InvalidInput: there is no webhook, or it has neither service nor url.
    """
    place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}"
    if webhook is None:
        webhook = (configuration.get("webhooks") or [{}])[0]
    url, service = field(webhook, "clientConfig", "url"), field(webhook, "clientConfig", "service")
    if url:
        with suppress(ValueError):
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or _HTTPS_PORT
            if host and parts.scheme == "https":
                return Endpoint(host, port, host)
        raise InvalidInput([invalid(place, url, "must be https://HOST[:PORT]/PATH")])
    if not service:
        raise InvalidInput([invalid(place, [webhook], "must have a webhook with a service or a url")])
    name = f"{service['name']}.{service['namespace']}.svc"
    return Endpoint(name, service.get("port") or _HTTPS_PORT, name)


def names_to_serve(target: Target, called: Endpoint) -> ServerNames:
    """Return the names that the certificate needs: those of the Service, or the host of the url that is `called`.

    Raises:
        InvalidInput: the host is neither a DNS name nor an IP address.
    """
    if not target.url:
        return server_names(service_names(target.service, target.namespace))
    try:
        return server_names([], [called.server_name])
    except InvalidInput:
        return server_names([called.server_name])


def parse_endpoint(text: str, server_name: str) -> Endpoint:
    """Return the endpoint in `HOST:PORT` or `[IPv6]:PORT`, with `server_name` as the name to verify.

    Raises:
        InvalidInput: the text has neither form.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidInput([invalid("--endpoint", text, "must be HOST:PORT")])
    return Endpoint(host, int(port), server_name)
