"""Read and write the Secret and the MutatingWebhookConfiguration of a cluster.

All writes are PATCH requests on one name. Server-side apply also creates objects, so a Role can restrict `get`,
`create` and `patch` to the two `resourceNames`; a POST has no name to restrict.
"""

import base64
import binascii
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from kubernetes import config, dynamic
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from certs.inspection import CA_CERTIFICATE, CERTIFICATE, KEY, Artifacts
from certs.registration import FIELD_MANAGER
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput, invalid
from webhook.kube.kubeconfig import read_kubeconfig

JsonObject = dict[str, Any]

_TIMEOUT_SECONDS = (5, 20)

# The package has no types for these.
_load_incluster_config: Any = config.load_incluster_config
_load_kubeconfig: Any = config.load_kube_config_from_dict
_DynamicClient: Any = dynamic.DynamicClient


class ClusterError(Exception):
    """The API server cannot be reached or rejected a request. `code` is the HTTP status, 0 without a response."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client of the API server for the two objects. `dry_run` sends every write with `dryRun=All`."""

    client: Any
    dry_run: bool = False

    def secret(self, namespace: str, name: str) -> JsonObject | None:
        """Return the Secret, or None if it does not exist."""
        return self._get(_secret_path(namespace, name))

    def configuration(self, name: str) -> JsonObject | None:
        """Return the MutatingWebhookConfiguration, or None if it does not exist."""
        return self._get(_configuration_path(name))

    def apply_secret(self, namespace: str, name: str, artifacts: Artifacts, *, force: bool) -> None:
        """Write these certificates to the Secret; `force` takes over the fields of other field managers.

        The CA's key is left out, because every pod that mounts the Secret could read it.
        """
        content = {CA_CERTIFICATE: artifacts.ca_certificate, CERTIFICATE: artifacts.certificate, KEY: artifacts.key}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {
                    "app.kubernetes.io/name": "placement-webhook",
                    "app.kubernetes.io/part-of": "placement-webhook",
                },
            },
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(value or b"").decode() for key, value in content.items()},
        }
        try:
            self._apply(_secret_path(namespace, name), secret, force=force)
        except ClusterError as error:
            if error.code != 404:
                raise
            remedy = f"`kubectl create namespace {namespace}` creates it, --namespace names another one"
            raise ClusterError(f"{error}; {remedy}", error.code) from error

    def apply_configuration(self, configuration: JsonObject) -> None:
        """Create the MutatingWebhookConfiguration."""
        self._apply(_configuration_path(configuration["metadata"]["name"]), configuration, force=False)

    def patch_configuration(self, name: str, operations: list[JsonObject]) -> bool:
        """Apply these RFC 6902 operations; return False if the object has changed since it was read.

        A JSON patch owns no fields by apply, so `kubectl apply` of the manifest without caBundle keeps the caBundle.
        """
        try:
            self._request("patch", _configuration_path(name), operations, "application/json-patch+json")
        except ClusterError as error:
            if error.code == 409:
                return False
            raise
        return True

    def patch_secret(self, namespace: str, name: str, patch: JsonObject) -> bool:
        """Apply a merge patch (RFC 7386) with a resourceVersion; return False if the Secret has changed since then."""
        try:
            self._request("patch", _secret_path(namespace, name), patch, "application/merge-patch+json")
        except ClusterError as error:
            if error.code == 409:
                return False
            raise
        return True

    def _get(self, path: str) -> JsonObject | None:
        try:
            return self._request("get", path)
        except ClusterError as error:
            if error.code == 404:
                return None
            raise

    def _apply(self, path: str, content: JsonObject, *, force: bool) -> None:
        self._request("patch", path, content, "application/apply-patch+yaml", force_conflicts="true" if force else None)

    def _request(
        self, method: str, path: str, body: Any = None, content_type: str | None = None, **parameters: str | None
    ) -> JsonObject:
        if method != "get":
            parameters |= {"field_manager": FIELD_MANAGER, "dry_run": "All" if self.dry_run else None}
        try:
            response = self.client.request(
                method,
                path,
                body=body,
                content_type=content_type,
                serialize=False,
                _request_timeout=_TIMEOUT_SECONDS,
                **parameters,
            )
            content: JsonObject = json.loads(response.data)
        except ApiException as error:
            raise ClusterError(f"{method.upper()} {path}: {_reason(error)}", error.status or 0) from error
        except (HTTPError, OSError, ValueError) as error:
            host = self.client.configuration.host
            raise ClusterError(f"{host}: the API server does not answer: {error}") from error
        return content


def connect(
    *, kubeconfig: Path | None = None, context: str | None = None, in_cluster: bool = False, dry_run: bool = False
) -> Cluster:
    """Return the cluster of `kubeconfig` (None: as kubectl, $KUBECONFIG or ~/.kube/config) or of this pod.

    Raises:
        InvalidInput: the kubeconfig is missing or invalid, or this is not a pod with a service account.
    """
    configuration = Configuration()
    configuration.retries = 1
    place = "--in-cluster" if in_cluster else "--kubeconfig"
    try:
        if in_cluster:
            _load_incluster_config(client_configuration=configuration)
        else:
            found = read_kubeconfig(kubeconfig, context)
            _load_kubeconfig(found.content, context=found.context, client_configuration=configuration)
    except InvalidInput:
        raise
    except (ConfigException, OSError, ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        shown = str(kubeconfig) if kubeconfig else ""
        raise InvalidInput([invalid(place, shown, f"no cluster can be read from it: {error}")]) from error
    # Two fixed paths need no discovery.
    return Cluster(_DynamicClient(ApiClient(configuration), discoverer=lambda *_: None), dry_run)


def artifacts_of(secret: JsonObject) -> Artifacts:
    """Return the certificates in the Secret."""
    data = secret.get("data") or {}

    def content(key: str) -> bytes | None:
        try:
            return base64.b64decode(data[key]) or None
        except (KeyError, TypeError, ValueError, binascii.Error):
            return None

    return Artifacts(ca_certificate=content(CA_CERTIFICATE), certificate=content(CERTIFICATE), key=content(KEY))


def _secret_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets/{quote(name, safe='')}"


def _configuration_path(name: str) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{quote(name, safe='')}"


def _reason(error: ApiException) -> str:
    try:
        status = json.loads(error.body or "")
        message = field(status, "message")
    except (TypeError, ValueError):
        message = None
    return f"{error.status} {message or error.reason}"
