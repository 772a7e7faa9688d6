"""The raw API objects of a cluster that are about cards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median_low
from typing import Any

from webhook.cluster.batch import fields
from webhook.cluster.cluster_file import occupies_node
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import is_pending
from webhook.documents.documents import field as field_of
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.taints import NOT_READY_TAINTS
from webhook.placement.packing.free_cards import accelerator_of
from webhook.policy.spec.accelerators import Accelerator

Raw = Mapping[str, Any]
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_BARE_FIELDS = {
    "metadata": (
        "namespace",
        "name",
        "labels",
        "annotations",
        "ownerReferences",
        "creationTimestamp",
        "deletionTimestamp",
    ),
    "spec": ("nodeName", "schedulerName", "schedulingGroup"),
    "status": ("phase",),
}


def seconds(content: Any, *path: str) -> int:
    """Return the time at `path` in Unix seconds, or 0 if there is none."""
    try:
        return int(datetime.fromisoformat(fields.text(content, *path)).timestamp())
    except (ValueError, TypeError):
        return 0


def full_name(content: Raw) -> tuple[str, str]:
    """Return the namespace and the name of an object."""
    return fields.text(content, "metadata", "namespace") or DEFAULT_NAMESPACE, fields.text(content, "metadata", "name")


def _some(content: Raw, part: str, names: Iterable[str]) -> Raw:
    """Return the fields `names` of a part of an object."""
    found = content.get(part)
    return {name: found[name] for name in names if name in found} if isinstance(found, Mapping) else {}


def condition(content: Raw, kind: str) -> Raw:
    """Return the condition `kind` of an object, or an empty one."""
    found = (each for each in fields.items(content, "status", "conditions") if fields.text(each, "type") == kind)
    return next(found, {})


@dataclass(frozen=True, slots=True)
class NodeState:
    """The state of a node. It is down if its kubelet does not report. `since` is 0 if the time is not known.

    `taints` are the keys of its taints that state so.
    """

    is_down: bool = False
    since: int = 0
    is_out_of_service: bool = False
    taints: frozenset[str] = frozenset()

    @classmethod
    def of(cls, node: Raw) -> "NodeState":
        """Return the state of `node`, a raw API object."""
        ready, status = condition(node, "Ready"), fields.text(condition(node, "Ready"), "status")
        taints = [*fields.items(node, "spec", "taints")]
        keys = {fields.text(each, "key") for each in taints}
        times = [seconds(each, "timeAdded") for each in taints if fields.text(each, "key") in NOT_READY_TAINTS]
        if status == "True" or not (status or keys & NOT_READY_TAINTS):
            # The taints of a node that is back are removed a little later.
            return cls()
        if status:
            times = [seconds(ready, "lastTransitionTime")]
        return cls(True, max(times, default=0), OUT_OF_SERVICE in keys, NOT_READY_TAINTS & keys)


@dataclass(frozen=True, slots=True)
class HoldingPod:
    """A bound pod that holds `cards` by resource: the raw object, its facts, and its node."""

    content: Raw
    running: RunningPod
    cards: Mapping[str, int]
    node: NodeState


@dataclass
class _Clock:
    """The time at which objects were read, by the clock of the API server and the heartbeats of most nodes.

    The clock of a single node can be hours ahead.
    """

    created: int = 0
    transition: int = 0
    heartbeats: list[int] = field(default_factory=list)

    def take(self, content: Raw) -> None:
        """Add the times of an object."""
        self.created = max(self.created, seconds(content, "metadata", "creationTimestamp"))
        if heartbeat := seconds(condition(content, "Ready"), "lastHeartbeatTime"):
            self.heartbeats.append(heartbeat)
        times = [seconds(each, "lastTransitionTime") for each in fields.items(content, "status", "conditions")]
        self.transition = max([self.transition, seconds(content, "status", "startTime"), *times])

    @property
    def seconds(self) -> int:
        """Return the time. Without heartbeats, it is that of the last change."""
        return max(self.created, median_low(self.heartbeats) if self.heartbeats else self.transition)


@dataclass
class Objects:
    """The objects of a cluster with cards of `accelerators`, collected one by one.

    `pods` are the bound pods, `pending` the pods without a node, and `ended` the pods that have ended. `bare` are the
    pods without cards, with only the fields that tell their gang and state. `uids` are those of all pods that have not
    ended. `workloads` are Workloads of Kueue.
    """

    accelerators: tuple[Accelerator, ...]
    nodes: dict[str, NodeState] = field(default_factory=dict)
    pods: dict[tuple[str, str], Raw] = field(default_factory=dict)
    pending: dict[tuple[str, str], Raw] = field(default_factory=dict)
    ended: dict[tuple[str, str], Raw] = field(default_factory=dict)
    bare: dict[tuple[str, str], Raw] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)
    claims: dict[tuple[str, str], Raw] = field(default_factory=dict)
    workloads: dict[tuple[str, str], Raw] = field(default_factory=dict)
    _clock: _Clock = field(default_factory=_Clock)

    @property
    def latest(self) -> int:
        """Return about the time at which a cluster file was written, in Unix seconds, or 0 if it is not known."""
        return self._clock.seconds

    def take(self, content: Raw) -> None:
        """Add an object. Objects of other kinds are ignored."""
        metadata = content.get("metadata")
        if not isinstance(metadata, Mapping):
            return
        if any(not isinstance(metadata.get(key) or {}, Mapping) for key in ("labels", "annotations")):
            return
        group = fields.text(content, "apiVersion").rpartition("/")[0]
        self._clock.take(content)
        match group, content.get("kind"):
            case "", "Node":
                self.nodes[full_name(content)[1]] = NodeState.of(content)
            case "", "Pod":
                self._take_pod(content)
            case "resource.k8s.io", "ResourceClaim":
                self.claims[full_name(content)] = content
            case "kueue.x-k8s.io", "Workload":
                self.workloads[full_name(content)] = content

    def _take_pod(self, pod: Raw) -> None:
        is_bound, waits = occupies_node(pod), is_pending(pod)
        if is_bound or waits:
            self.uids.add(fields.text(pod, "metadata", "uid"))
        if any(self.cards_of(pod)) or any(fields.items(pod, "spec", "resourceClaims")):
            found = self.pods if is_bound else self.pending if waits else self.ended
            found[full_name(pod)] = pod
        else:
            self.bare[full_name(pod)] = {part: _some(pod, part, names) for part, names in _BARE_FIELDS.items()}

    def cards_of(self, pod: Raw) -> Iterator[str]:
        """Yield the resources of cards that the containers of `pod` request."""
        for part in ("containers", "initContainers"):
            for container in fields.items(pod, "spec", part):
                yield from self.cards_of_container(container)

    def cards_of_container(self, container: Raw) -> Iterator[str]:
        """Yield the resources of cards that `container` requests."""
        for part in ("limits", "requests"):
            names = field_of(container, "resources", part)
            yield from (name for name in names if self._is_card(name)) if isinstance(names, Mapping) else ()

    def holding(self) -> Iterator[HoldingPod]:
        """Yield the bound pods that hold cards on a node that exists.

        Raises:
            InvalidInput: a field of a pod that is read is malformed; holds every error.
        """
        devices = self._devices_by_pod()
        for content in self.pods.values():
            running = RunningPod.of(content)
            if running.node_name not in self.nodes:
                continue
            cards: Mapping[str, int] = {
                name: amount for name, amount in running.requests.items() if amount and self._is_card(name)
            }
            # kube-scheduler makes a claim for a request where a driver offers the devices.
            if cards := cards or devices.get(fields.text(content, "metadata", "uid"), {}):
                yield HoldingPod(content, running, cards, self.nodes[running.node_name])

    def _is_card(self, resource: str) -> bool:
        return accelerator_of(resource, self.accelerators) is not None

    def _devices_by_pod(self) -> Mapping[str, Mapping[str, int]]:
        """Return the numbers of devices by driver, by the uid of the pod, for claims reserved for a single pod."""
        found: dict[str, dict[str, int]] = {}
        for claim in self.claims.values():
            consumers = [fields.text(each, "uid") for each in fields.items(claim, "status", "reservedFor")]
            if len(consumers) == 1:
                cards = found.setdefault(consumers[0], {})
                for driver, _ in self.devices_of(claim):
                    cards[driver] = cards.get(driver, 0) + 1
        return found

    def devices_of(self, claim: Raw) -> Iterator[tuple[str, str]]:
        """Yield driver and pool of each card that is allocated to `claim`: `gpu.nvidia.com` has cards, for one."""
        drivers = {".".join(reversed(each.card.split("/"))) for each in self.accelerators}
        for each in fields.items(claim, "status", "allocation", "devices", "results"):
            driver = fields.text(each, "driver")
            if driver in drivers and not each.get("adminAccess"):
                yield driver, fields.text(each, "pool")
