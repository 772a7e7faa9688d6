"""The raw API objects of a cluster that are about cards."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, NamedTuple

from webhook.backends.backend import BatchNames
from webhook.backends.registry import batch_names_of, queueing_backend_of
from webhook.cluster.batch import fields
from webhook.cluster.node_info import Node, RunningPod
from webhook.cluster.objects.lease import time_of
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field as field_of
from webhook.documents.parts import object_at
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, ENDED_PHASES, MIRROR_POD_ANNOTATION
from webhook.kube.pod.gang_key import GANG, GANG_SIZE, gangs_of
from webhook.kube.pod.resources import requested_extended_resources
from webhook.placement.packing.free_cards import accelerator_of
from webhook.placement.packing.held_cards import is_of_node
from webhook.placement.reasons.gang_request import group_named, may_have_group
from webhook.policy.policy import Policy

Raw = Mapping[str, Any]
Name = tuple[str, str]
"""The namespace and the name of an object."""
# Most pods have no cards: of these, only the fields that tell their gang and state are kept.
_BARE_FIELDS = frozenset(
    ("namespace", "name", "uid", "labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp")
) | {"nodeName", "nominatedNodeName", "schedulerName", "schedulingGroup", "schedulingGates", "phase"}
# Of those that have ended, also the fields that tell when, because they can have broken their gang.
_ENDED_FIELDS = _BARE_FIELDS | {"containerStatuses", "conditions"}


def seconds(content: Any, *path: str) -> int:
    """Return the time at `path` in Unix seconds, or 0 if there is none after 1970."""
    found = time_of(field_of(content, *path))
    return max(0, int(found.timestamp())) if found else 0


def full_name(content: Raw) -> Name:
    """Return the namespace and the name of an object."""
    return fields.text(content, "metadata", "namespace") or DEFAULT_NAMESPACE, fields.text(content, "metadata", "name")


def condition(content: Raw, kind: str) -> Raw:
    """Return the condition `kind` of an object, or an empty one."""
    found = (each for each in fields.items(content, "status", "conditions") if fields.text(each, "type") == kind)
    return next(found, {})


def written_at(contents: Iterable[Raw]) -> int:
    """Return the approximate time at which a file of the objects `contents` was written, in Unix seconds, or 0.

    It is the newest creation, by the clock of the API server, or the median heartbeat of ready nodes if that is later:
    the clock of one node can be hours ahead. Without heartbeats, the newest change of a status counts for the median.
    """
    created, changed, heartbeats = 0, 0, list[int]()
    for each in contents:
        created = max(created, seconds(each, "metadata", "creationTimestamp"))
        times = [seconds(of, "lastTransitionTime") for of in fields.items(each, "status", "conditions")]
        changed = max(changed, seconds(each, "status", "startTime"), *times)
        ready = condition(each, "Ready")
        if fields.text(ready, "status") == "True" and (heartbeat := seconds(ready, "lastHeartbeatTime")):
            heartbeats.append(heartbeat)
    return max(created, median_low(heartbeats) if heartbeats else changed)


class HoldingPod(NamedTuple):
    """A bound pod that holds `cards` by resource: the raw object, its facts, and its node."""

    content: Raw
    running: RunningPod
    cards: Mapping[str, int]
    node: Node

    @property
    def is_exempt(self) -> bool:
        """Return whether the pod is never reported, because it is static, of a DaemonSet, or being debugged."""
        debuggers = fields.items(self.content, "status", "ephemeralContainerStatuses")
        is_debugged = any(not field_of(each, "state", "terminated") for each in debuggers)
        is_mirror = MIRROR_POD_ANNOTATION in fields.texts(self.content, "metadata", "annotations")
        return is_debugged or is_mirror or is_of_node(self.running)


@dataclass
class Objects:
    """The objects of a cluster with cards of `policy`, collected one by one, and the snapshot with its nodes.

    `pods` have not ended, and `ended` have. Those without cards have only the fields that tell their gang,
    their state and their end. `workloads` are Workloads of Kueue.
    """

    policy: Policy
    snapshot: Snapshot = field(default_factory=lambda: Snapshot.of(()))
    pods: dict[Name, Raw] = field(default_factory=dict)
    ended: dict[Name, Raw] = field(default_factory=dict)
    claims: dict[Name, Raw] = field(default_factory=dict)
    workloads: dict[Name, Raw] = field(default_factory=dict)

    def take(self, content: Raw) -> None:
        """Add an object. Objects of other kinds are ignored."""
        metadata = content.get("metadata")
        maps = (metadata, *(field_of(content, "metadata", key) or {} for key in ("labels", "annotations")))
        if not all(isinstance(each, Mapping) for each in maps):
            return
        match fields.text(content, "apiVersion").rpartition("/")[0], content.get("kind"):
            case "", "Pod":
                has_ended = field_of(content, "status", "phase") in ENDED_PHASES
                found, kept = (self.ended, _ENDED_FIELDS) if has_ended else (self.pods, _BARE_FIELDS)
                found[full_name(content)] = content if self.wants_cards(content) else _bare(content, kept)
            case "resource.k8s.io", "ResourceClaim":
                self.claims[full_name(content)] = content
            case "kueue.x-k8s.io", "Workload":
                self.workloads[full_name(content)] = content

    def node_of(self, name: str) -> Node | None:
        """Return the node `name` if it exists."""
        row = self.snapshot.rows.get(name)
        return None if row is None else self.snapshot.nodes[row].node

    def usable_cards(self) -> Counter[str]:
        """Return the cards of the nodes that are not down, by resource."""
        usable = Counter[str]()
        for info in self.snapshot.nodes:
            if info.node.not_ready_seconds is None:
                usable.update(self.cards_in(info.node.allocatable))
        return usable

    def cards_in(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return those of `amounts`, by resource, that are of cards and not 0."""
        return {name: amount for name, amount in amounts.items() if amount and self.is_card(name)}

    def is_card(self, resource: str) -> bool:
        """Return whether `resource` is one of cards."""
        return accelerator_of(resource, self.policy.spec.accelerators) is not None

    def wants_cards(self, pod: Raw) -> bool:
        """Return whether `pod` requests cards, or has claims, which can be for cards."""
        has_claims = any(fields.items(pod, "spec", "resourceClaims"))
        return has_claims or any(map(self.is_card, requested_extended_resources(pod)))

    def holding(self) -> Iterator[HoldingPod]:
        """Yield the bound pods that hold cards on a node that exists.

        Raises:
            InvalidInput: a field of a pod that is read is malformed; holds every error.
        """
        devices = self._devices_by_pod()
        for content in self.pods.values():
            node = self.node_of(fields.text(content, "spec", "nodeName"))
            if node is None or not self.wants_cards(content):
                continue
            running = RunningPod.of(content)
            # kube-scheduler makes a claim for a request where a driver offers the devices.
            if held := self.cards_in(running.requests) or devices.get(fields.text(content, "metadata", "uid")):
                yield HoldingPod(content, running, held, node)

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
        """Return the gang of `pod`, by its PodGroup or annotations, and its minimum number of pods, or None."""
        namespace, names = full_name(pod)[0], self._batch_names(pod)
        if group := group_named(names, namespace, self.snapshot):
            return ((namespace, group.name), group.members) if group.members > 1 else None
        annotations = fields.texts(pod, "metadata", "annotations")
        for key in gangs_of(namespace, pod["metadata"]):
            size = annotations.get(key.annotation.removesuffix(GANG).removesuffix(GANG_SIZE) + GANG_SIZE, "")
            if size.isdecimal() and int(size) > 1:
                return (namespace, key.name), int(size)
        return None

    def may_be_elastic(self, pod: Raw) -> bool:
        """Return whether the PodGroup of `pod`, which can have a lower minimum, cannot be read."""
        return may_have_group(self._batch_names(pod), self.snapshot)

    def _batch_names(self, pod: Raw) -> tuple[BatchNames, ...]:
        scheduler = fields.text(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        return batch_names_of(pod, queueing_backend_of(self.policy.spec, scheduler))


def _bare(pod: Raw, kept: Collection[str]) -> Raw:
    parts = ("metadata", "spec", "status")
    return {part: {k: v for k, v in object_at(pod, part).items() if k in kept} for part in parts}
