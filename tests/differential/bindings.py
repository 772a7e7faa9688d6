"""Claims that kube-scheduler starts to bind for a pod. No controller completes the binding, so it is undone."""

import re
from collections.abc import Mapping
from typing import Any

from tests.controlplane.client import Client
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.random_objects.constraints import Object
from tests.support.objects.builders import make_pod
from tests.support.objects.devices import claiming, make_resource_claim
from tests.support.objects.storage import make_pv, make_pvc, make_storage_class, uses

CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
_DEVICE_CLAIM = "ResourceClaim"

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
# Written when a pod's node is chosen, before its claims are bound and the pod after them.
_ASSUMED = r'"AssumePodVolumes" .*\bpod="{pod}" node="([^"]+)"'
# Written at the end of a binding that came to nothing because the pod was deleted.
_GIVEN_UP = r'"Pod doesn\'t exist in informer cache" .*\bpod="{pod}"'


class Bindings:
    """The claims and volumes of one world, as they are while no pod waits."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._log = cluster.control_plane.scheduler_log
        self._settled = 0
        self._remembered: dict[tuple[str, str], Object] = {}

    def remember(self) -> None:
        """Take note of claims and volumes: so they are to be after each pod."""
        self._remembered = {
            (kind, key(obj)): _changing_part(obj) for kind in (CLAIM, VOLUME) for obj in self._client.list(kind)
        }

    def are_begun_for(self, pod: Object) -> bool:
        """Return true if kube-scheduler would bind a claim when it finds a node for `pod`."""
        names = [each["persistentVolumeClaim"]["claimName"] for each in _claim_volumes(pod)]
        claims = [self._remembered.get((CLAIM, f"{pod['metadata']['namespace']}/{name}")) for name in names]
        return any(claim is not None and _BIND_COMPLETED not in claim["metadata"]["annotations"] for claim in claims)

    def chosen_node(self, pod: Object, since: int) -> str | None:
        """Return the node for which kube-scheduler has begun to bind the claims of `pod`."""
        pattern = re.compile(_ASSUMED.format(pod=re.escape(key(pod))))
        return next((found.group(1) for line in self._log.lines(since) if (found := pattern.search(line))), None)

    def undo(self, pod: Object, since: int) -> None:
        """Make claims and volumes as they were, once kube-scheduler has given up on `pod`, which is deleted."""
        given_up = re.compile(_GIVEN_UP.format(pod=re.escape(key(pod))))
        wait_for(lambda: any(map(given_up.search, self._log.lines(since))) or None, f"the end of {key(pod)}")
        for kind in (CLAIM, VOLUME):
            for obj in self._client.list(kind):
                before, now = self._remembered[kind, key(obj)], _changing_part(obj)
                if before != now:
                    patch = _difference(now, before)
                    self._client.patch(kind, obj["metadata"]["name"], patch, namespace=obj["metadata"].get("namespace"))
        self.settle()

    def settle(self) -> None:
        """Return when kube-scheduler has taken in all classes, claims and volumes; it needs a node to say so.

        It says nothing of single ones, but knows the last of each kind after all others: a pod that uses these and
        can be nowhere is reported once they are known.
        """
        self._settled += 1
        name = f"last-{self._settled}"
        claims = [make_pvc(f"{name}-bound", volume=name), make_pvc(f"{name}-waiting", name)]
        last = [make_storage_class(name), make_pv(name), *claims, make_resource_claim(name)]
        for obj in last:
            self._client.create(_in_namespace(obj, self._cluster.namespace))
        volumes = uses(*(each["metadata"]["name"] for each in claims))
        pod = make_pod(name).spec(volumes=volumes, resourceClaims=claiming(name))
        made = self._cluster.create(pod.node_selector("example.com/nowhere", "")).object
        wait_for(lambda: "node(s)" in self._cluster.wait_unschedulable(made), f"{name} being known")
        self._cluster.delete_pod(made)
        for obj in last:
            remove(self._client, _in_namespace(obj, self._cluster.namespace))


def remove(client: Client, obj: Object) -> None:
    """Delete the object, past the finalizers that the API server gives to claims and volumes."""
    name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
    if obj["kind"] in (CLAIM, VOLUME, _DEVICE_CLAIM):
        body, version = {"metadata": {"finalizers": None}}, obj["apiVersion"]
        client.patch(obj["kind"], name, body, namespace=namespace, api_version=version)
    client.delete(obj["kind"], name, namespace=namespace, api_version=obj["apiVersion"])


def _in_namespace(obj: Object, namespace: str) -> Object:
    is_claim = obj["kind"] in (CLAIM, _DEVICE_CLAIM)
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}} if is_claim else obj


def key(obj: Object) -> str:
    """Return `namespace/name`, or the name of what has no namespace."""
    metadata = obj["metadata"]
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)


def _claim_volumes(pod: Object) -> list[Object]:
    return [each for each in pod["spec"].get("volumes", ()) if "persistentVolumeClaim" in each]


def _changing_part(obj: Object) -> Object:
    """Return the fields that kube-scheduler writes when it starts to bind."""
    part: Object = {"metadata": {"annotations": obj["metadata"].get("annotations") or {}}}
    return part | ({"spec": {"claimRef": obj["spec"]["claimRef"]}} if "claimRef" in obj["spec"] else {"spec": {}})


def _difference(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    """Return the merge patch from `now` to `wanted`."""
    patch: Object = {}
    for field in now.keys() | wanted.keys():
        before, after = now.get(field), wanted.get(field)
        if before != after:
            are_objects = isinstance(before, dict) and isinstance(after, dict)
            patch[field] = _difference(before or {}, after or {}) if are_objects else after
    return patch
