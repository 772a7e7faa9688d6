"""Restore the control plane to its state before a test.

Objects are deleted in etcd: the API server and its clients receive the same events as of a request, at a small part of
the processor time. Nothing asks for a grace period, a finalizer or a controller that may not run.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from tests.controlplane.client import Client

OWN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
# The address of the Service `kubernetes`.
_OWN_ADDRESS = "10.0.0.1"

# The kinds as etcd names them. Bindings before their policies.
_WEBHOOK_CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_ADMISSION_POLICIES = (
    "mutatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingadmissionpolicies",
)
_NODES = "minions"
_NAMESPACED = (
    "configmaps",
    "controllers",
    "cronjobs",
    "csistoragecapacities",
    "daemonsets",
    "deployments",
    "jobs",
    "leases",
    "limitranges",
    "networkpolicies",
    "persistentvolumeclaims",
    "poddisruptionbudgets",
    "pods",
    "replicasets",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcequotas",
    "rolebindings",
    "roles",
    "secrets",
    "serviceaccounts",
    "services",
    "statefulsets",
)
# Only tests create objects of these kinds, and the addresses of their Services.
_CLUSTER_SCOPED = (
    "csidrivers",
    "csinodes",
    "deviceclasses",
    "ipaddresses",
    "persistentvolumes",
    "resourceslices",
    "runtimeclasses",
    "storageclasses",
    "volumeattachments",
)


class Store(Protocol):
    """What a control plane has stored."""

    def stored_keys(self) -> dict[str, str]:
        """Return the keys of all objects, with their revisions."""

    def delete_keys(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Delete objects, and return what was stored, by key."""


class Cleanup:
    """Deletes the objects that are stored, without those of the control plane itself and those of `kept` keys."""

    def __init__(self, store: Store, kept: Iterable[str] = ()) -> None:
        self._store = store
        self._kept = {*kept}
        self._read_keys()

    def remove_webhook_configurations(self) -> bool:
        """Return true if there were any."""
        return bool(self._remove(_WEBHOOK_CONFIGURATIONS))

    def remove_admission_policies(self) -> bool:
        """Return true if there were any."""
        return bool(self._remove(_ADMISSION_POLICIES))

    def remove_nodes(self) -> list[str]:
        """Return the names of the nodes that were removed."""
        return [key.rpartition("/")[2] for key in self._remove([_NODES])]

    def remove_namespaces(self) -> list[str]:
        """Remove the namespaces of a test, objects in `default`, and cluster-scoped objects; see `remove_contents`."""
        bound = self.remove_contents()
        self._remove((*_CLUSTER_SCOPED, "namespaces"))
        return bound

    def remove_contents(self) -> list[str]:
        """Remove the objects in the namespaces of tests and in `default`; return the pods that took room on a node.

        Until none is left: the scheduler, which binds a pod of the test, may make a claim for it meanwhile. Pods are
        given as `namespace/name`.
        """
        bound: list[str] = []
        self._read_keys()
        while removed := self._remove(_NAMESPACED):
            bound += (
                "/".join(key.split("/")[-2:])
                for key, stored in removed.items()
                if key.startswith("/registry/pods/") and _takes_room(stored)
            )
            self._read_keys()
        return bound

    def _read_keys(self) -> None:
        self._keys = [key for key in self._store.stored_keys() if key not in self._kept and not is_own(key)]

    def _remove(self, kinds: Collection[str]) -> dict[str, bytes]:
        """Delete the objects of the kinds; return what was stored, by key."""
        return self._store.delete_keys([key for key in self._keys if key.split("/")[2] in kinds])


def finalize(client: Client, namespace: str) -> None:
    """Let a deleted namespace end."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {"finalizers": []}}
    client.request("PUT", f"/api/v1/namespaces/{namespace}/finalize", body=body)


def is_own(key: str) -> bool:
    """Return whether the object of this key is of the control plane itself, if it is of a kind that tests create."""
    namespace, name = key.split("/")[-2:]
    if namespace in ("ipaddresses", "namespaces"):
        return name in (*OWN_NAMESPACES, _OWN_ADDRESS)
    return namespace in OWN_NAMESPACES and (namespace != "default" or name == "kubernetes")


def _takes_room(stored_pod: bytes) -> bool:
    """Return whether the scheduler counts the pod on its node.

    Stored are `k8s`, a zero byte and a message `Unknown` with the pod in its field 2.
    Source: k8s.io/apimachinery/pkg/runtime/generated.proto, k8s.io/api/core/v1/generated.proto
    """
    pod = _field(stored_pod[4:], 2)
    node_name, phase = _field(_field(pod, 2), 10), _field(_field(pod, 3), 1)
    return bool(node_name) and phase not in (b"Succeeded", b"Failed")


def _field(message: bytes, number: int) -> bytes:
    """Return the last bytes of this field of a protobuf message; empty if it is not set."""
    return dict(_fields(message)).get(number, b"")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each field that has a length.

    Raises:
        ValueError: a field has a fixed width, as none of a pod has.
    """
    rest = iter(message)
    for first in rest:
        number, kind = divmod(_varint(rest, first), 8)
        if kind not in (0, 2):
            raise ValueError(f"field {number} of type {kind}: not one of a pod")
        value = _varint(rest, next(rest))
        if kind == 2:
            yield number, bytes(next(rest) for _ in range(value))


def _varint(rest: Iterator[int], first: int) -> int:
    value, shift = first & 0x7F, 7
    while first & 0x80:
        first = next(rest)
        value |= (first & 0x7F) << shift
        shift += 7
    return value
