"""Restore the control plane to its state before a test."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby

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
    ("v1", "ReplicationController"),
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
# Source: k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go, SpecialDefaultResourcePrefixes
_OTHER_NAMES = {"Node": "minions", "ReplicationController": "controllers"}
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


class Stored:
    """The kinds that have an object in etcd, by its keys, so that only those are listed.

    A kind whose name in the API's paths is that of another may be found without an object. Objects of the control
    plane itself do not count.
    """

    def __init__(self, client: Client, keys: Iterable[str]) -> None:
        self._client = client
        self._parts = {part for key in keys if not _is_own_key(key) for part in key.split("/")}

    def kinds(self, kinds: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return those of the kinds, given by apiVersion and kind, that have objects."""
        return [each for each in kinds if not self._parts.isdisjoint(self._names(*each))]

    def _names(self, api_version: str, kind: str) -> set[str]:
        """Return the name of the kind in keys, which mostly is that in paths; none if it is not served."""
        plural = self._client.plural(api_version, kind)
        return {_OTHER_NAMES.get(kind, plural)} if plural else set()


def remove_webhook_configurations(client: Client, stored: Stored | None = None) -> bool:
    """Return true if there were any, for all that is known of what is `stored`."""
    kinds: Sequence[tuple[str, str]] = [(ADMISSION, kind) for kind in _WEBHOOK_CONFIGURATIONS]
    found = _listed(client, stored.kinds(kinds) if stored else kinds)
    for obj in found:
        client.delete(obj["kind"], obj["metadata"]["name"], api_version=ADMISSION)
    return bool(found)


def remove_admission_policies(client: Client, stored: Stored) -> bool:
    """Return true if there were any."""
    newest = (
        next(((each, kind) for each in _ADMISSION_VERSIONS if client.serves(each, kind)), None)
        for kind in _ADMISSION_POLICIES
    )
    found = _listed(client, stored.kinds(each for each in newest if each))
    for obj in found:
        client.delete(obj["kind"], obj["metadata"]["name"], api_version=obj["apiVersion"])
    return bool(found)


def remove_nodes(client: Client, stored: Stored) -> Objects:
    """Return the nodes that were removed."""
    nodes = _listed(client, stored.kinds([("v1", "Node")]))
    for node in nodes:
        client.delete("Node", node["metadata"]["name"])
    return nodes


def remove_namespaces(client: Client, stored: Stored) -> Objects:
    """Remove the namespaces of a test, objects in `default`, and cluster-scoped objects; return what was removed.

    No controller empties and finalizes namespaces here, so that is done by hand: deleted first, they take nothing
    new from controllers that still run.
    """
    namespaces = [ns for ns in client.list("Namespace") if ns["metadata"]["name"] not in OWN_NAMESPACES]
    for namespace in namespaces:
        client.delete("Namespace", namespace["metadata"]["name"])
    removed = remove_contents(client, stored)
    for obj in _listed(client, stored.kinds(_CLUSTER_SCOPED)):
        _let_go(client, obj)
        client.delete(obj["kind"], obj["metadata"]["name"], api_version=obj["apiVersion"])
    for namespace in namespaces:
        finalize(client, namespace["metadata"]["name"])
    return removed


def remove_contents(client: Client, stored: Stored) -> Objects:
    """Remove the objects in the namespaces of tests and in `default`; return what was removed."""
    removed = [obj for obj in _listed(client, stored.kinds(_NAMESPACED)) if not _is_own(obj)]
    for obj in removed:
        _let_go(client, obj)
    for (api_version, kind, namespace), objects in groupby(removed, _collection):
        if namespace == "default":
            for obj in objects:
                client.delete(kind, obj["metadata"]["name"], namespace=namespace, api_version=api_version)
        else:
            client.delete_collection(kind, namespace, api_version=api_version)
    return removed


def finalize(client: Client, namespace: str) -> None:
    """Let a deleted namespace end."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {"finalizers": []}}
    client.request("PUT", f"/api/v1/namespaces/{namespace}/finalize", body=body)


def _listed(client: Client, kinds: Iterable[tuple[str, str]]) -> Objects:
    """Return the objects of the kinds in their order, those of a namespace together."""
    return [obj for api_version, kind in kinds for obj in client.list(kind, api_version=api_version)]


def _collection(obj: Object) -> tuple[str, str, str]:
    return obj["apiVersion"], obj["kind"], obj["metadata"]["namespace"]


def _let_go(client: Client, obj: Object) -> None:
    """Remove the finalizers of controllers that may not run."""
    metadata = obj["metadata"]
    if metadata.get("finalizers"):
        with suppress(NotFound):
            body = {"metadata": {"finalizers": None}}
            namespace, api_version = metadata.get("namespace"), obj["apiVersion"]
            client.patch(obj["kind"], metadata["name"], body, namespace=namespace, api_version=api_version)


def _is_own(obj: Object) -> bool:
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    return namespace in OWN_NAMESPACES and (namespace != "default" or (obj["kind"], name) == ("Service", "kubernetes"))


def _is_own_key(key: str) -> bool:
    namespace, name = key.split("/")[-2:]
    return namespace in OWN_NAMESPACES and (namespace != "default" or name == "kubernetes")
