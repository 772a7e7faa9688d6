"""The webhook's MutatingWebhookConfiguration and its caBundle. Pure: objects in, objects and patches out."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from certs import pem
from webhook.kube.documents import field, parse
from webhook.kube.field import InvalidInput, forbidden, invalid

JsonObject = dict[str, Any]

MANIFEST = "mutatingwebhookconfiguration.yaml"
INJECTED_BY_CERT_MANAGER = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
_HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class Target:
    """The names in the cluster. Where `url` is set, the API server calls it rather than the Service."""

    namespace: str = "placement-webhook"
    secret: str = "placement-webhook-tls"  # noqa: S105 - the name of a Secret
    service: str = "placement-webhook"
    configuration: str = "00-placement-webhook"
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect, and the name that the API server will verify there."""

    host: str
    port: int
    server_name: str

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def manifest(target: Target) -> JsonObject:
    """The configuration to create in a cluster that has none, as `deploy/base` has it, without caBundle."""
    text = files("certs").joinpath(MANIFEST).read_bytes()
    configuration = parse(text, MANIFEST)[0].content
    configuration["metadata"]["name"] = target.configuration
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"]["service"].update(namespace=target.namespace, name=target.service)
        for expression in webhook["namespaceSelector"]["matchExpressions"]:
            expression["values"] = ["kube-system", target.namespace]
        if target.url:
            webhook["clientConfig"] = {"url": target.url}
    return configuration


def with_ca_bundle(configuration: JsonObject, bundle: bytes) -> JsonObject:
    """The configuration with `bundle` in each of its webhooks."""
    encoded = base64.b64encode(bundle).decode()
    webhooks = [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": encoded}}
        for webhook in configuration["webhooks"]
    ]
    return {**configuration, "webhooks": webhooks}


def merged_ca_bundle(ca: bytes, others: Iterable[bytes], now: datetime) -> bytes:
    """`ca`, then the CAs of `others` that have not expired, each once.

    Servers go on with the certificate of an old CA until they have read the new one, so the API server must trust both.
    """
    kept: dict[x509.Certificate, None] = dict.fromkeys(pem.certificates(ca, "ca.crt"))
    for other in others:
        for certificate in pem.readable_certificates(other):
            if now < certificate.not_valid_after_utc:
                kept[certificate] = None
    return pem.encode(*kept)


def ca_bundles(configuration: JsonObject) -> list[bytes]:
    """The caBundle of each webhook of `configuration`; empty where there is none."""
    bundles: list[bytes] = []
    for webhook in configuration.get("webhooks") or ():
        try:
            bundles.append(base64.b64decode(field(webhook, "clientConfig", "caBundle") or ""))
        except (binascii.Error, TypeError, ValueError):
            bundles.append(b"")
    return bundles


def ca_bundle_patch(configuration: JsonObject, bundle: bytes, url: str | None) -> list[JsonObject]:
    """RFC 6902 operations that put `bundle` (and `url`, if any) into each webhook; none where they are there already.

    They name the resourceVersion that was read: a change made since is answered 409 rather than overwritten.
    """
    encoded = base64.b64encode(bundle).decode()
    operations: list[JsonObject] = []
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        wanted = {**({"url": url} if url else webhook["clientConfig"]), "caBundle": encoded}
        if wanted != webhook["clientConfig"]:
            operations.append({"op": "replace", "path": f"/webhooks/{index}/clientConfig", "value": wanted})
    if not operations:
        return []
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *operations]


def check_not_injected(configuration: JsonObject) -> None:
    """Refuses a configuration whose caBundle is somebody else's to write.

    Raises:
        InvalidInput: cert-manager keeps this caBundle, and would undo what is written.
    """
    annotations = field(configuration, "metadata", "annotations") or {}
    for key in INJECTED_BY_CERT_MANAGER:
        if key in annotations:
            place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}"
            detail = f"cert-manager keeps this caBundle (annotation {key}); remove the annotation first"
            raise InvalidInput([forbidden(place, detail)])


def endpoint(configuration: JsonObject) -> Endpoint:
    """Where the API server calls the first webhook of `configuration`.

    Source: k8s.io/apiserver/pkg/util/webhook/client.go HookClient

    Raises:
        InvalidInput: it has no webhook, or one without service and url.
    """
    place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}"
    webhooks = configuration.get("webhooks") or [{}]
    url, service = field(webhooks[0], "clientConfig", "url"), field(webhooks[0], "clientConfig", "service")
    if url:
        return _url_endpoint(url, place)
    if not service:
        raise InvalidInput([invalid(place, webhooks, "must have a webhook with a service or a url")])
    name = f"{service['name']}.{service['namespace']}.svc"
    return Endpoint(name, service.get("port") or _HTTPS_PORT, name)


def _url_endpoint(url: str, place: str) -> Endpoint:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    else:
        if parts.scheme != "https":
            host = None
    if not host:
        raise InvalidInput([invalid(place, url, "must be https://HOST[:PORT]/PATH")])
    return Endpoint(host, port or _HTTPS_PORT, host)


def parse_endpoint(text: str, server_name: str) -> Endpoint:
    """`HOST:PORT` or `[IPv6]:PORT` as an endpoint where `server_name` is verified.

    Raises:
        InvalidInput: it is neither.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidInput([invalid("--endpoint", text, "must be HOST:PORT")])
    return Endpoint(host, int(port), server_name)
