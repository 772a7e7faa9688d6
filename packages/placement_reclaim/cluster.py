"""The raw API objects of a cluster that are about cards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from webhook.cluster.batch import fields
from webhook.cluster.cluster_file import occupies_node
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import is_pending
from webhook.documents.documents import field as field_of
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.taints import NOT_READY_TAINTS
from webhook.placement.packing.free_cards import accelerator_of
from webhook.policy.spec.workloads import Accelerator

Raw = Mapping[str, Any]
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def seconds(content: Any, *path: str) -> int:
    """Return the time at `path` in Unix seconds, or 0 if there is none."""
    try:
        return int(datetime.fromisoformat(fields.text(content, *path)).timestamp())
    except (ValueError, TypeError):
        return 0


def full_name(content: Raw) -> tuple[str, str]:
    """Return the namespace and the name of an object."""
    return fields.text(content, "metadata", "namespace") or DEFAULT_NAMESPACE, fields.text(content, "metadata", "name")


def condition(content: Raw, kind: str) -> Raw:
    """Return the condition `kind` of an object, or an empty one."""
    found = (each for each in fields.items(content, "status", "conditions") if fields.text(each, "type") == kind)
    return next(found, {})


@dataclass(frozen=True, slots=True)
class NodeState:
    """The state of a node. It is down if its kubelet does not report. `since` is 0 if the time is not known."""

    is_down: bool = False
    since: int = 0
    is_out_of_service: bool = False

    @classmethod
    def of(cls, node: Raw) -> "NodeState":
        """Return the state of `node`, a raw API object."""
        ready = condition(node, "Ready")
        taints = [*fields.items(node, "spec", "taints")]
        keys = {fields.text(each, "key") for each in taints}
        times = [seconds(each, "timeAdded") for each in taints if fields.text(each, "key") in NOT_READY_TAINTS]
        if ready and fields.text(ready, "status") != "True":
            times = [seconds(ready, "lastTransitionTime")]
        elif not keys & NOT_READY_TAINTS:
            return cls()
        return cls(is_down=True, since=max(times, default=0), is_out_of_service=OUT_OF_SERVICE in keys)


@dataclass(frozen=True, slots=True)
class HoldingPod:
    """A bound pod that holds `cards` by resource: the raw object, its facts, and its node."""

    content: Raw
    running: RunningPod
    cards: Mapping[str, int]
    node: NodeState


@dataclass
class Objects:
    """The objects of a cluster with cards of `accelerators`, collected one by one.

    `pods` are the bound pods, `pending` the pods without a node, and `ended` the pods that have ended. `uids` are those
    of all pods that have not ended. `workloads` are Workloads of Kueue. `latest` is the newest time in the objects, in
    Unix seconds. It is about the time at which a cluster file was written.
    """

    accelerators: tuple[Accelerator, ...]
    nodes: dict[str, NodeState] = field(default_factory=dict)
    pods: dict[tuple[str, str], Raw] = field(default_factory=dict)
    pending: dict[tuple[str, str], Raw] = field(default_factory=dict)
    ended: dict[tuple[str, str], Raw] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)
    claims: dict[tuple[str, str], Raw] = field(default_factory=dict)
    workloads: dict[tuple[str, str], Raw] = field(default_factory=dict)
    latest: int = 0

    def take(self, content: Raw) -> None:
        """Add an object. Objects of other kinds are ignored."""
        group = fields.text(content, "apiVersion").rpartition("/")[0]
        times = [seconds(content, "metadata", "creationTimestamp"), seconds(content, "status", "startTime")]
        for each in fields.items(content, "status", "conditions"):
            times += [seconds(each, "lastHeartbeatTime"), seconds(each, "lastTransitionTime")]
        self.latest = max(self.latest, *times)
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
