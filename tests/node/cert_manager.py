"""cert-manager's part on the node: it writes the Secret of a Certificate and the caBundle of a configuration.

Its programs cannot be built as a Go module. The kinds of its objects are served without a schema.
"""

import base64
import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from certs.pki import issue_ca, issue_server
from tests.controlplane.client import ApiError, Client, Object
from tests.controlplane.polling import wait_for
from tests.node.installation import CONFIGURATION, NAMESPACE
from tests.support.on_cluster.kinds import serving_kinds

_GROUP = "cert-manager.io"
_VERSION = f"{_GROUP}/v1"
_CERTIFICATE = "placement-webhook-tls"
_WEBHOOKS = ("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1")


@contextmanager
def playing_cert_manager(client: Client, seconds: float) -> Iterator[None]:
    """Serve the kinds of cert-manager, and fulfil the Certificate of the webhook when it is created."""
    failures: list[Exception] = []

    def fulfil() -> None:
        try:
            _fulfil(client, seconds)
        except Exception as failure:
            failures.append(failure)

    player = threading.Thread(target=fulfil)
    with serving_kinds(client, _GROUP, ("Issuer", "Certificate")):
        player.start()
        try:
            yield
        finally:
            player.join()
            if failures:
                raise failures[0]


def _fulfil(client: Client, seconds: float) -> None:
    certificate = wait_for(lambda: _certificate(client), "the Certificate", deadline_seconds=seconds)
    now = dt.datetime.now(dt.UTC)
    ca = issue_ca(now=now)
    pair = issue_server(ca, dns_names=certificate["spec"]["dnsNames"], now=now)
    files = {"ca.crt": ca.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": certificate["spec"]["secretName"], "namespace": NAMESPACE},
        "data": data,
    }
    client.create(secret)
    # cainjector reads the annotation of the configuration.
    configuration = client.get(_WEBHOOKS[0], CONFIGURATION, api_version=_WEBHOOKS[1])
    assert configuration["metadata"]["annotations"][f"{_GROUP}/inject-ca-from"] == f"{NAMESPACE}/{_CERTIFICATE}"
    injected = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": data["ca.crt"]}
        for index in range(len(configuration["webhooks"]))
    ]
    client.patch(_WEBHOOKS[0], CONFIGURATION, injected, api_version=_WEBHOOKS[1])
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    client.patch("Certificate", _CERTIFICATE, ready, namespace=NAMESPACE, api_version=_VERSION)


def _certificate(client: Client) -> Object | None:
    try:
        found = client.list("Certificate", NAMESPACE, api_version=_VERSION)
    except ApiError:  # 429: the API server still opens the storage of a new kind
        return None
    configured = client.list(_WEBHOOKS[0], api_version=_WEBHOOKS[1])
    named = [each for each in found if each["metadata"]["name"] == _CERTIFICATE]
    is_configured = any(each["metadata"]["name"] == CONFIGURATION for each in configured)
    return named[0] if named and is_configured else None
