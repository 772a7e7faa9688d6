"""Ask the real kube-scheduler about pods, one at a time, and restore the cluster after each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.scheduler_log import Scores
from tests.differential.bindings import CLAIM, VOLUME, Bindings, remove
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.nominations import PRIORITY_CLASSES, is_heeded
from tests.differential.random_objects.pods import OVERHEAD, RUNTIME_CLASS
from tests.differential.random_objects.worlds import World, counts
from tests.support.programs.messages import first_sentence
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document

_RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": RUNTIME_CLASS},
    "handler": RUNTIME_CLASS,
    "overhead": {"podFixed": OVERHEAD},
}
# The kinds that a cluster file can contain.
_KINDS = (
    ("v1", "Node"),
    ("v1", "Namespace"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", CLAIM),
    ("v1", VOLUME),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("v1", "LimitRange"),
    ("policy/v1", "PodDisruptionBudget"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
)
# Of resizes, which count as in 1.37 in every release.
_FIELDS_OF_RESIZES = frozenset(
    ("conditions", "resources", "allocatedResources", "containerStatuses", "initContainerStatuses")
)
_LONG_SECONDS = 3600
# The field of a log line that names the object, where it is not the last word of the event.
_NAMED_BY = {"ResourceSlice added": "slice"}
_ALREADY_THERE = 409

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for a pod: its `node`, or kube-scheduler's `message` up to the first full stop.

    `scores` are the weighted scores of each plugin by node; empty if only one node was feasible.
    """

    node: str | None
    message: str
    scores: Scores


class KubeScheduler:
    """The real kube-scheduler, on a control plane that holds one world."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._log = cluster.control_plane.scheduler_log
        self._bindings = Bindings(cluster)
        self._made: dict[_Key, Object] = {}
        self._snapshot: Snapshot | None = None
        self._asked = 0
        self._version = self._client.request("GET", "/version").object
        minor = int(self._version["minor"].rstrip("+"))
        self._left_out = _FIELDS_OF_RESIZES if minor < 37 else frozenset()
        # Older releases log no ResourceSlice; they receive it while the pods are made.
        self._slice_event = "ResourceSlice added" if minor >= 37 else ""
        self._make_classes()

    def establish(self, world: World) -> None:
        """Make the cluster equal to `world`, keeping equal objects, and wait until kube-scheduler has the changes.

        Raises:
            ApiError: the API server rejects an object.
        """
        self._snapshot = None
        storage = tuple(obj for obj in world.storage if self._client.serves(obj["apiVersion"], obj["kind"]))
        world = replace(world, storage=storage)
        wanted = {_key(obj): obj for obj in world.objects}
        changed = [key for key, obj in self._made.items() if wanted.get(key) != obj and key[0] != "Namespace"]
        nodes = {name for kind, _, name in changed if kind == "Node"}
        gone = [
            obj for key, obj in self._made.items() if key in changed or obj.get("spec", {}).get("nodeName") in nodes
        ]
        self._remove([obj for obj in gone if obj["kind"] not in ("Pod", "Node")])
        pods = [obj for obj in gone if obj["kind"] == "Pod"]
        self._remove([obj for obj in pods if obj["spec"].get("nodeName")], "Delete event for scheduled pod")
        self._remove([obj for obj in pods if not obj["spec"].get("nodeName")], "Delete event for unscheduled pod")
        self._remove([obj for obj in gone if obj["kind"] == "Node"], "Delete event for node")
        for namespace in world.namespaces:
            if self._made.get(_key(namespace)) != namespace:
                self._made[_key(namespace)] = self._client.apply(namespace).object and namespace
        self._make(world.workloads)
        self._make(world.nodes, "Add event for node")
        self._make([obj for obj in world.storage if obj["kind"] == "ResourceSlice"], self._slice_event)
        self._make(world.storage)
        if world.storage:
            self._bindings.settle()
        self._bindings.remember()
        self._make(world.pods, "Add event for scheduled pod")
        for pod in world.nominated:
            if _key(pod) not in self._made:
                self._nominate(pod)
                self._made[_key(pod)] = pod

    def forget_gone(self) -> None:
        """Note which pods exist no longer, because kube-scheduler has evicted them."""
        pods = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in self._client.list("Pod")}
        self._made = {key: obj for key, obj in self._made.items() if key[0] != "Pod" or key[1:] in pods}
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """Return the cluster as a cluster file has it: read back from the API server."""
        if self._snapshot is None:
            self._snapshot = snapshot_from_documents(Document("cluster", obj) for obj in self.objects())
        return self._snapshot

    def objects(self) -> list[Object]:
        """Return the objects of the cluster as the API server has them, and its version as kubectl prints it."""
        kinds = [(version, kind) for version, kind in _KINDS if self._client.serves(version, kind)]
        found = [obj for version, kind in kinds for obj in self._client.list(kind, api_version=version)]
        return [*found, {"serverVersion": self._version}]

    def ask(self, pod: Object) -> tuple[Answer, Object]:
        """Return kube-scheduler's result for `pod`, and the pod as the API server stored it; delete it afterwards.

        Raises:
            ApiError: the API server rejects the pod.
        """
        self._asked += 1
        since = self._log.end()
        metadata = {**pod["metadata"], "name": f"{pod['metadata']['name']}-{self._asked}"}
        stored = self._stored({**pod, "metadata": metadata})
        node, message, is_begun = wait_for(lambda: self._outcome(stored, since), f"an answer for {metadata['name']}")
        answer = Answer(node, first_sentence(message), self._cluster.scores(stored) if node else {})
        self._cluster.delete_pod(stored)
        if is_begun:
            self._bindings.undo(stored, since)
        return answer, stored

    def _stored(self, pod: Object) -> Object:
        """Create `pod`, nominated if `pod` has a nominated node, which requires a scheduling gate; return it."""
        if "status" not in pod:
            return self._cluster.create(pod).object
        stored = self._nominate(pod)
        self._cluster.release(stored)
        return {**stored, "spec": {key: value for key, value in stored["spec"].items() if key != "schedulingGates"}}

    def _nominate(self, pod: Object) -> Object:
        return self._cluster.nominate(
            {key: value for key, value in pod.items() if key != "status"},
            pod["status"]["nominatedNodeName"],
            wait=is_heeded(pod),
        )

    def _outcome(self, pod: Object, since: int) -> tuple[str | None, str, bool] | None:
        """Return the node or the message, and whether kube-scheduler has only begun to bind claims for the node."""
        current = self._client.get("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        if node := current["spec"].get("nodeName"):
            return node, "", False
        conditions = current["status"].get("conditions", [])
        messages = [
            each["message"] for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"
        ]
        if messages and "nominatedNodeName" in pod["status"]:
            # The first message is about the scheduling gate; the last may date from a time without the nomination.
            messages = [result for result in (self._cluster.first_refusal_yet(pod),) if result is not None]
        if messages:
            return None, messages[0], False
        chosen = self._bindings.chosen_node(pod, since) if self._bindings.are_begun_for(pod) else None
        return (chosen, "", True) if chosen else None

    def _make_classes(self) -> None:
        """Create the classes if they are missing. They stay: they do not affect pods that do not name them."""
        for each in (_RUNTIME_CLASS, *PRIORITY_CLASSES):
            try:
                self._client.create(each)
            except ApiError as error:
                if error.code != _ALREADY_THERE:
                    raise

    def _make(self, objects: Iterable[Object], event: str = "") -> None:
        since = self._log.end()
        made = [obj for obj in objects if _key(obj) not in self._made]
        for obj in made:
            self._client.create(_as_first_written(obj))
            self._made[_key(obj)] = obj
        self._wait(event, made, since)
        for obj in made:
            self._bring_to_state(obj)
        self._wait("Delete event for scheduled pod", [obj for obj in made if not counts(obj)], since)
        self._wait("Update event for scheduled pod", [obj for obj in made if _changes(obj)], since)

    def _bring_to_state(self, obj: Object) -> None:
        """Start to delete the object if it has a deletionTimestamp, and set its status."""
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
        if obj["metadata"].get("deletionTimestamp"):
            path = f"/api/v1/namespaces/{namespace}/{obj['kind'].lower()}s/{name}"
            self._client.request("DELETE", path, body={"gracePeriodSeconds": _LONG_SECONDS})
        if obj["kind"] != "Node" and (status := obj.get("status")):
            body = {"status": {field: value for field, value in status.items() if field not in self._left_out}}
            version = obj["apiVersion"]
            self._client.patch(obj["kind"], name, body, namespace=namespace, api_version=version, subresource="status")

    def _remove(self, objects: Iterable[Object], event: str = "") -> None:
        since = self._log.end()
        removed = list(objects)
        for obj in removed:
            remove(self._client, obj)
            del self._made[_key(obj)]
        self._wait(event, [obj for obj in removed if counts(obj) and is_heeded(obj)], since)

    def _wait(self, event: str, objects: Iterable[Object], since: int) -> None:
        """Wait for kube-scheduler's `event` of each object; it logs none of Services and controllers."""
        if not event:
            return
        names = ["/".join(part for part in _key(obj)[1:] if part) for obj in objects]
        self._log.wait_for_events(event, _NAMED_BY.get(event) or event.rpartition(" ")[2], names, since=since)


def _key(obj: Mapping[str, Any]) -> _Key:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _changes(obj: Object) -> bool:
    """Return true for a pod whose new state still counts on its node."""
    is_changed = obj["metadata"].get("deletionTimestamp") or obj.get("status")
    return bool(obj["kind"] == "Pod" and is_changed and counts(obj))


def _as_first_written(obj: Object) -> Object:
    """Return `obj` without the state that only later requests can bring it to."""
    if obj["kind"] == "Node":
        return obj
    metadata = {key: value for key, value in obj["metadata"].items() if key != "deletionTimestamp"}
    return {key: value for key, value in obj.items() if key != "status"} | {"metadata": metadata}
