"""Restore the control plane to its state before a test."""

from collections.abc import Callable, Iterable, Sequence
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
    ("node.k8s.io/v1", "RuntimeClass"),
)
# Source: k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go, SpecialDefaultResourcePrefixes
_OTHER_NAMES = {"Node": "minions", "ReplicationController": "controllers"}
_WEBHOOK_CONFIGURATIONS = ((ADMISSION, "MutatingWebhookConfiguration"), (ADMISSION, "ValidatingWebhookConfiguration"))
# Bindings before their policies.
_ADMISSION_POLICIES = (
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
)
# 1.35 has mutating ones in the second version only.
_ADMISSION_VERSIONS = (ADMISSION, "admissionregistration.k8s.io/v1beta1")
# More objects of a namespace are deleted by one request, which lists them.
_MOST_BY_NAME = 20


class Cleanup:
    """Deletes the objects of the keys that etcd has, without those of the control plane itself.

    Little is listed: the API server reads a list from its cache once that is as new as etcd, for which it asks ten
    times a second at most. Source: k8s.io/apiserver/pkg/storage/cacher/progress/watch_progress.go
    """

    def __init__(self, client: Client, stored_keys: Callable[[], Iterable[str]]) -> None:
        self._client = client
        self._stored_keys = stored_keys
        self._read_keys()

    def remove_webhook_configurations(self) -> bool:
        """Return true if there were any."""
        return bool(self._remove(_WEBHOOK_CONFIGURATIONS))

    def remove_admission_policies(self) -> bool:
        """Return true if there were any."""
        newest = (
            next(((each, kind) for each in _ADMISSION_VERSIONS if self._client.serves(each, kind)), None)
            for kind in _ADMISSION_POLICIES
        )
        return bool(self._remove(each for each in newest if each))

    def remove_nodes(self) -> list[str]:
        """Return the names of the nodes that were removed."""
        return [*self._remove([("v1", "Node")])]

    def remove_namespaces(self) -> Objects:
        """Remove the namespaces of a test, objects in `default`, and cluster-scoped objects; return the pods removed.

        No controller empties and finalizes namespaces here, so that is done by hand: deleted first, they take nothing
        new from controllers that still run.
        """
        namespaces = self._remove([("v1", "Namespace")])
        pods = self.remove_contents()
        self._remove(_CLUSTER_SCOPED)
        for namespace in namespaces:
            finalize(self._client, namespace)
        return pods

    def remove_contents(self) -> Objects:
        """Remove the objects in the namespaces of tests and in `default`; return the pods removed.

        Until none is left: the scheduler, which binds a pod of the test, may make a claim for it meanwhile.
        """
        pods: Objects = []
        self._read_keys()
        while removed := self._remove(_NAMESPACED):
            pods += (obj for obj in removed.values() if obj["kind"] == "Pod")
            self._read_keys()
        return pods

    def _read_keys(self) -> None:
        self._keys = [key.split("/")[2:] for key in self._stored_keys() if not _is_own_key(key)]

    def _remove(self, kinds: Iterable[tuple[str, str]]) -> dict[str, Object]:
        """Delete the objects of the kinds; return what the API server answered, by `namespace/name` or name."""
        removed: dict[str, Object] = {}
        for api_version, kind in kinds:
            stored_as = _OTHER_NAMES.get(kind) or self._client.plural(api_version, kind)
            # `services/specs/NAMESPACE/NAME`, `minions/NAME`
            keys = sorted(key[1:][-2:] for key in self._keys if key[0] == stored_as)
            for within, group in groupby(keys, lambda key: key[:-1]):
                namespace, names = "".join(within), [key[-1] for key in group]
                for name, obj in self._delete(api_version, kind, namespace, names).items():
                    removed[f"{namespace}/{name}".lstrip("/")] = obj
        return removed

    def _delete(self, api_version: str, kind: str, namespace: str, names: Sequence[str]) -> dict[str, Object]:
        """Delete the objects and their finalizers, which are of controllers that may not run."""
        if namespace not in ("", "default") and len(names) > _MOST_BY_NAME:
            listed = self._client.delete_collection(kind, namespace, api_version=api_version)
            deleted = {obj["metadata"]["name"]: obj for obj in listed}
        else:
            answers = {
                name: self._client.delete(kind, name, namespace=namespace, api_version=api_version) for name in names
            }
            deleted = {name: obj for name, obj in answers.items() if obj is not None}
        for name, obj in deleted.items():
            if kind != "Namespace" and obj["metadata"].get("finalizers"):
                with suppress(NotFound):
                    body = {"metadata": {"finalizers": None}}
                    self._client.patch(kind, name, body, namespace=namespace, api_version=api_version)
        return deleted


def finalize(client: Client, namespace: str) -> None:
    """Let a deleted namespace end."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {"finalizers": []}}
    client.request("PUT", f"/api/v1/namespaces/{namespace}/finalize", body=body)


def _is_own_key(key: str) -> bool:
    namespace, name = key.split("/")[-2:]
    if namespace == "namespaces":
        return name in OWN_NAMESPACES
    return namespace in OWN_NAMESPACES and (namespace != "default" or name == "kubernetes")
