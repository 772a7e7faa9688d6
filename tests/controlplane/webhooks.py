"""Registering the webhook under test, and knowing when the API server acts on it."""

import uuid
from typing import Any

from tests.controlplane.client import ApiError, Client, Object
from tests.controlplane.polling import wait_for

ADMISSION = "admissionregistration.k8s.io/v1"

_SENTINEL = "zz-sentinel-of-the-tests"
_PROBE: Object = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "probe"},
    "template": {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "probe"}]}},
}


def webhook_configuration(name: str, url: str, ca_bundle: str, overrides: dict[str, Any]) -> Object:
    """Return a MutatingWebhookConfiguration that sends created pods to `url`; `overrides` are fields of its webhook.

    It fails closed, unlike a cautious installation, so that a test notices when a call fails.
    """
    webhook = {
        "name": f"{name}.maip.mxsf.io",
        "clientConfig": {"url": url, "caBundle": ca_bundle},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "reinvocationPolicy": "IfNeeded",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
    return {
        "apiVersion": ADMISSION,
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook | overrides],
    }


def settle(client: Client, namespace: str) -> None:
    """Return when the API server acts on every MutatingWebhookConfiguration written, or removed, before.

    It learns of them by a watch, a moment after the writer has its answer. All come by the same watch, in order:
    so one more is written, whose effect shows (its webhook cannot be reached, and PodTemplates of the
    namespace are refused), and what came before it is in force as soon as that one is. It has a name of its own, so
    no test has to wait until it is forgotten.
    """
    name = f"{_SENTINEL}-{uuid.uuid4().hex[:8]}"
    sentinel = webhook_configuration(name, "https://127.0.0.1:1/", "", {"timeoutSeconds": 1})
    sentinel["webhooks"][0] |= {
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["podtemplates"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    client.create(sentinel)
    try:
        wait_for(lambda: _refuses(name, client, namespace), "the API server acting on a webhook configuration")
    finally:
        client.delete("MutatingWebhookConfiguration", name, api_version=ADMISSION)


def _refuses(name: str, client: Client, namespace: str) -> bool:
    """Return whether the sentinel of this name is in force, whether or not an earlier one still is."""
    try:
        client.create(_PROBE, namespace=namespace, dry_run=True)
    except ApiError as error:
        if _SENTINEL not in error.message:
            raise
        return name in error.message
    return False
