"""Restore the control plane to its state before a test."""

from collections.abc import Sequence
from contextlib import suppress

from tests.controlplane.client import Client, NotFound, Object, Objects
from tests.controlplane.webhooks import ADMISSION

OWN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

# Owners before what they own: nothing is made again by a controller.
_NAMESPACED = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("policy/v1", "PodDisruptionBudget"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("coordination.k8s.io/v1", "Lease"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
)
# Only tests create objects of these kinds.
_CLUSTER_SCOPED = (
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceSlice"),
)
_WEBHOOK_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# Bindings before their policies.
_ADMISSION_POLICIES = (
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
)
# 1.34 and 1.35 have mutating ones in the second version only, 1.33 has none.
_ADMISSION_VERSIONS = (ADMISSION, "admissionregistration.k8s.io/v1beta1")


def remove_webhook_configurations(client: Client) -> bool:
    """Return true if there were any."""
    found = [obj for kind in _WEBHOOK_CONFIGURATIONS for obj in client.list(kind, api_version=ADMISSION)]
    for obj in found:
        client.delete(obj["kind"], obj["metadata"]["name"], api_version=ADMISSION)
    return bool(found)


def remove_admission_policies(client: Client) -> bool:
    """Return true if there were any."""
    found: Objects = []
    for kind in _ADMISSION_POLICIES:
        for version in _ADMISSION_VERSIONS:
            if client.serves(version, kind):
                found += client.list(kind, api_version=version)
                break
    for obj in found:
        client.delete(obj["kind"], obj["metadata"]["name"], api_version=obj["apiVersion"])
    return bool(found)


def remove_nodes(client: Client) -> Objects:
    """Return the nodes that were removed."""
    nodes = client.list("Node")
    for node in nodes:
        client.delete("Node", node["metadata"]["name"])
    return nodes


def remove_namespaces(client: Client) -> Objects:
    """Remove the namespaces of a test, objects in `default`, and cluster-scoped objects; return what was removed.

    No controller empties and finalizes namespaces here, so that is done by hand: deleted first, they take nothing
    new from controllers that still run.
    """
    namespaces = [ns for ns in client.list("Namespace") if ns["metadata"]["name"] not in OWN_NAMESPACES]
    for namespace in namespaces:
        client.delete("Namespace", namespace["metadata"]["name"])
    removed = _remove_contents(client)
    for api_version, kind in _served(client, _CLUSTER_SCOPED):
        for obj in client.list(kind, api_version=api_version):
            _delete(client, obj)
    for namespace in namespaces:
        finalize(client, namespace["metadata"]["name"])
    return removed


def finalize(client: Client, namespace: str) -> None:
    """Let a deleted namespace end."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {"finalizers": []}}
    client.request("PUT", f"/api/v1/namespaces/{namespace}/finalize", body=body)


def _remove_contents(client: Client) -> Objects:
    removed: Objects = []
    for api_version, kind in _served(client, _NAMESPACED):
        for obj in client.list(kind, api_version=api_version):
            if not _is_own(obj):
                _delete(client, obj)
                removed.append(obj)
    return removed


def _served(client: Client, kinds: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(api_version, kind) for api_version, kind in kinds if client.serves(api_version, kind)]


def _delete(client: Client, obj: Object) -> None:
    """Delete one object at once, past the finalizers of controllers that may not run."""
    api_version, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")
    if metadata.get("finalizers"):
        with suppress(NotFound):
            body = {"metadata": {"finalizers": None}}
            client.patch(kind, name, body, namespace=namespace, api_version=api_version)
    client.delete(kind, name, namespace=namespace, api_version=api_version)


def _is_own(obj: Object) -> bool:
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    return namespace in OWN_NAMESPACES and (namespace != "default" or (obj["kind"], name) == ("Service", "kubernetes"))
