"""The raw API objects of a cluster that are about cards."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median_low
from typing import Any, NamedTuple

from webhook.backends.registry import batch_names_of, queueing_backend_of
from webhook.cluster.batch import fields
from webhook.cluster.cluster_file import occupies_node
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import is_pending
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field as field_of
from webhook.documents.object_path import object_at
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, MIRROR_POD_ANNOTATION
from webhook.kube.pod.gang_key import GANG, GANG_SIZE, gangs_of
from webhook.kube.pod.taints import NO_EXECUTE, NOT_READY_TAINTS
from webhook.placement.packing.free_cards import accelerator_of
from webhook.placement.packing.held_cards import is_of_node
from webhook.placement.reasons.gang_request import group_named
from webhook.policy.policy import Policy

Raw = Mapping[str, Any]
Name = tuple[str, str]
"""The namespace and the name of an object."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# Most pods have no cards: of these, only the fields that tell their gang and state are kept.
_BARE_FIELDS = frozenset(
    ("namespace", "name", "labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp")
) | {"nodeName", "schedulerName", "schedulingGroup", "phase"}


def seconds(content: Any, *path: str) -> int:
    """Return the time at `path` in Unix seconds, or 0 if there is none."""
    try:
        return int(datetime.fromisoformat(fields.text(content, *path)).timestamp())
    except (ValueError, TypeError):
        return 0


def full_name(content: Raw) -> Name:
    """Return the namespace and the name of an object."""
    return fields.text(content, "metadata", "namespace") or DEFAULT_NAMESPACE, fields.text(content, "metadata", "name")


def condition(content: Raw, kind: str) -> Raw:
    """Return the condition `kind` of an object, or an empty one."""
    found = (each for each in fields.items(content, "status", "conditions") if fields.text(each, "type") == kind)
    return next(found, {})


class NodeState(NamedTuple):
    """The state of a node. It is down if its kubelet does not report. `since` is 0 if the time is not known.

    `evicting` are the keys of its taints by which taint eviction deletes the pods of a node that is down.
    """

    is_down: bool = False
    since: int = 0
    is_out_of_service: bool = False
    evicting: frozenset[str] = frozenset()

    @classmethod
    def of(cls, node: Raw) -> "NodeState":
        """Return the state of `node`, a raw API object."""
        ready, keys = condition(node, "Ready"), set[str]()
        status, times, evicting = fields.text(ready, "status"), [0], set[str]()
        for each in fields.items(node, "spec", "taints"):
            keys.add(key := fields.text(each, "key"))
            if key in NOT_READY_TAINTS:
                times.append(seconds(each, "timeAdded"))
                evicting |= {key} if fields.text(each, "effect") == NO_EXECUTE else set()
        # The taints of a node that is back are removed a little later.
        if status == "True" or not (status or keys & NOT_READY_TAINTS):
            return cls()
        since = seconds(ready, "lastTransitionTime") if status else max(times)
        return cls(True, since, OUT_OF_SERVICE in keys, frozenset(evicting))


class HoldingPod(NamedTuple):
    """A bound pod that holds `cards` by resource: the raw object, its facts, and its node."""

    content: Raw
    running: RunningPod
    cards: Mapping[str, int]
    node: NodeState

    @property
    def is_exempt(self) -> bool:
        """Return whether the pod is never reported, because it is static, of a DaemonSet, or being debugged."""
        debuggers = fields.items(self.content, "status", "ephemeralContainerStatuses")
        is_debugged = any(not field_of(each, "state", "terminated") for each in debuggers)
        is_mirror = MIRROR_POD_ANNOTATION in fields.texts(self.content, "metadata", "annotations")
        return is_debugged or is_mirror or is_of_node(self.running)


@dataclass
class Objects:
    """The objects of a cluster with cards of `policy`, collected one by one, and the snapshot of the cluster.

    `pods` are the bound pods, `pending` the pods without a node, and `ended` the pods that have ended. `bare` are the
    pods without cards, with only the fields that tell their gang and state. `uids` are those of all pods that have not
    ended. `workloads` are Workloads of Kueue.
    """

    policy: Policy
    snapshot: Snapshot = field(default_factory=lambda: Snapshot.of(()))
    nodes: dict[str, NodeState] = field(default_factory=dict)
    pods: dict[Name, Raw] = field(default_factory=dict)
    pending: dict[Name, Raw] = field(default_factory=dict)
    ended: dict[Name, Raw] = field(default_factory=dict)
    bare: dict[Name, Raw] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)
    claims: dict[Name, Raw] = field(default_factory=dict)
    workloads: dict[Name, Raw] = field(default_factory=dict)
    _created: int = 0
    _changed: int = 0
    _heartbeats: list[int] = field(default_factory=list)

    @property
    def latest(self) -> int:
        """Return about the time at which a cluster file was written, in Unix seconds, or 0 if it is not known.

        It is by the clock of the API server and the heartbeats of most nodes: that of one node can be hours ahead.
        """
        return max(self._created, median_low(self._heartbeats) if self._heartbeats else self._changed)

    def take(self, content: Raw) -> None:
        """Add an object. Objects of other kinds are ignored."""
        metadata = content.get("metadata")
        if not isinstance(metadata, Mapping):
            return
        if any(not isinstance(metadata.get(key) or {}, Mapping) for key in ("labels", "annotations")):
            return
        self._take_times(content)
        match fields.text(content, "apiVersion").rpartition("/")[0], content.get("kind"):
            case "", "Node":
                self.nodes[full_name(content)[1]] = NodeState.of(content)
            case "", "Pod":
                self._take_pod(content)
            case "resource.k8s.io", "ResourceClaim":
                self.claims[full_name(content)] = content
            case "kueue.x-k8s.io", "Workload":
                self.workloads[full_name(content)] = content

    def _take_times(self, content: Raw) -> None:
        self._created = max(self._created, seconds(content, "metadata", "creationTimestamp"))
        times = [seconds(each, "lastTransitionTime") for each in fields.items(content, "status", "conditions")]
        self._changed = max([self._changed, seconds(content, "status", "startTime"), *times])
        if heartbeat := seconds(condition(content, "Ready"), "lastHeartbeatTime"):
            self._heartbeats.append(heartbeat)

    def _take_pod(self, pod: Raw) -> None:
        is_bound, waits = occupies_node(pod), is_pending(pod)
        if is_bound or waits:
            self.uids.add(fields.text(pod, "metadata", "uid"))
        containers = (each for part in ("containers", "initContainers") for each in fields.items(pod, "spec", part))
        if any(map(self.has_cards, containers)) or any(fields.items(pod, "spec", "resourceClaims")):
            found = self.pods if is_bound else self.pending if waits else self.ended
            found[full_name(pod)] = pod
        else:
            parts = {part: object_at(pod, part).items() for part in ("metadata", "spec", "status")}
            kept = {part: {k: v for k, v in items if k in _BARE_FIELDS} for part, items in parts.items()}
            self.bare[full_name(pod)] = kept

    def usable_cards(self) -> Counter[str]:
        """Return the cards of the nodes that are not down, by resource."""
        usable = Counter[str]()
        for info in self.snapshot.nodes:
            if not self.nodes.get(info.node.name, NodeState()).is_down:
                usable.update({name: n for name, n in info.node.allocatable.items() if self.is_card(name)})
        return usable

    def is_card(self, resource: str) -> bool:
        """Return whether `resource` is one of cards."""
        return accelerator_of(resource, self.policy.spec.accelerators) is not None

    def has_cards(self, container: Raw) -> bool:
        """Return whether `container` requests cards."""
        parts = (field_of(container, "resources", part) for part in ("limits", "requests"))
        return any(self.is_card(name) for part in parts if isinstance(part, Mapping) for name in part)

    def holding(self) -> Iterator[HoldingPod]:
        """Yield the bound pods that hold cards on a node that exists.

        Raises:
            InvalidInput: a field of a pod that is read is malformed; holds every error.
        """
        devices = self._devices_by_pod()
        for content in self.pods.values():
            running = RunningPod.of(content)
            cards = {name: amount for name, amount in running.requests.items() if amount and self.is_card(name)}
            # kube-scheduler makes a claim for a request where a driver offers the devices.
            held = cards or devices.get(fields.text(content, "metadata", "uid"), {})
            if held and running.node_name in self.nodes:
                yield HoldingPod(content, running, held, self.nodes[running.node_name])

    def _devices_by_pod(self) -> Mapping[str, Counter[str]]:
        """Return the numbers of devices by driver, by the uid of the pod, for claims reserved for a single pod."""
        found = defaultdict[str, Counter[str]](Counter)
        for claim in self.claims.values():
            consumers = [fields.text(each, "uid") for each in fields.items(claim, "status", "reservedFor")]
            if len(consumers) == 1:
                found[consumers[0]].update(driver for driver, _ in self.devices_of(claim))
        return found

    def devices_of(self, claim: Raw) -> Iterator[tuple[str, str]]:
        """Yield driver and pool of each card that is allocated to `claim`: `gpu.nvidia.com` has cards, for one."""
        drivers = {".".join(reversed(each.card.split("/"))) for each in self.policy.spec.accelerators}
        for each in fields.items(claim, "status", "allocation", "devices", "results"):
            driver = fields.text(each, "driver")
            if driver in drivers and not each.get("adminAccess"):
                yield driver, fields.text(each, "pool")

    def gang_of(self, pod: Raw) -> tuple[Name, int] | None:
        """Return the gang of `pod` and its minimum number of pods, or None without a gang.

        It is the PodGroup of its scheduler, or that of the annotations with a size.
        """
        namespace = full_name(pod)[0]
        scheduler = fields.text(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        names = batch_names_of(pod, queueing_backend_of(self.policy.spec, scheduler))
        if group := group_named(names, namespace, self.snapshot):
            return ((namespace, group.name), group.members) if group.members > 1 else None
        annotations = fields.texts(pod, "metadata", "annotations")
        for key in gangs_of(namespace, pod["metadata"]):
            size = annotations.get(key.annotation.removesuffix(GANG).removesuffix(GANG_SIZE) + GANG_SIZE, "")
            if size.isdecimal() and int(size) > 1:
                return (namespace, key.name), int(size)
        return None
