"""The administrator's client of a node's API server, and what it asks while the node starts."""

from contextlib import suppress
from pathlib import Path

import urllib3
from urllib3.util.ssl_ import create_urllib3_context

from tests.controlplane.client import ApiError, Client
from tests.node.running.configuration import NODE_NAME, SERVER
from webhook.watch.trust import trusting_as_go


def admin_client(ca: Path, certificate: Path, key: Path) -> Client:
    """Return a client that presents the certificate."""
    trust = trusting_as_go(create_urllib3_context())
    trust.load_verify_locations(ca)
    trust.load_cert_chain(certificate, key)
    return Client(urllib3.PoolManager(ssl_context=trust), SERVER)


def is_serving(client: Client) -> bool:
    """Return whether the API server is ready."""
    with suppress(ApiError, urllib3.exceptions.HTTPError):
        client.request("GET", "/readyz")
        return True
    return False


def is_ready(client: Client) -> bool:
    """Return whether the node is ready."""
    with suppress(ApiError, urllib3.exceptions.HTTPError):
        conditions = client.get("Node", NODE_NAME)["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return False


def allocatable(client: Client, resource: str) -> str | None:
    """Return the amount of a resource that pods can have on the node; None if the node does not offer it."""
    amounts: dict[str, str] = client.get("Node", NODE_NAME)["status"]["allocatable"]
    return amounts.get(resource)
