"""A service account with limited rights, on the real API server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster

Object = dict[str, Any]

RBAC = "rbac.authorization.k8s.io/v1"


@contextmanager
def limited_to(cluster: Cluster, folder: Path, rules: list[Object]) -> Iterator[Path]:
    """Return the kubeconfig of a service account with the rights in `rules`."""
    name, client = "limited", cluster.client
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    binding = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
    }
    for content in (account, role, binding):
        cluster.create(content)
    file = token_kubeconfig(cluster, folder, cluster.namespace, name)
    try:
        yield file
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            client.delete(kind, name, api_version=RBAC)
        client.delete("ServiceAccount", name, namespace=cluster.namespace)


def token_kubeconfig(cluster: Cluster, folder: Path, namespace: str, name: str) -> Path:
    """Return a kubeconfig with a token of this service account."""
    token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    token = cluster.client.request("POST", path, body=token_request).object["status"]["token"]
    config = json.loads(cluster.control_plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file
