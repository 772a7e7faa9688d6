"""A node with its running pods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from webhook.cluster.index.pod_term import NO_TERMS, PodTerms, read_pod_terms
from webhook.cluster.interner import Interner
from webhook.documents.parts import listed
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, KUEUE_POD_SET
from webhook.kube.pod.amounts import (
    CPU,
    MEMORY,
    PODS,
    Amounts,
    is_extended_resource,
    is_schedulable_resource,
    read_amounts,
)
from webhook.kube.pod.bound_status import controller_name, is_preempted, read_seconds, waiting_reason
from webhook.kube.pod.gang_key import GangKey, gangs_of, workload_of
from webhook.kube.pod.ports import read_host_ports
from webhook.kube.pod.rare_facts import USUAL, RareFacts, usual_of
from webhook.kube.pod.resources import read_pod_resources
from webhook.kube.pod.taints import NOT_READY_TAINTS, Taint
from webhook.kube.pod.volumes import NO_VOLUMES, PodReference, PodVolumes, read_volumes
from webhook.kube.reader import Reader

NO_PRIORITY = 2**31
"""Above every priority of a pod."""


class RunningPod(NamedTuple):
    """A pod that is bound to a node, and the resources that it uses there.

    `requests` are in thousandths of a core for cpu, in bytes or units for other resources. `non_zero` are thousandths
    of a core and bytes of memory, with a default for each container without a request; scores use them. `priority` is
    the value that the API server's Priority plugin sets. Pods of one template share most values, because tens of
    thousands of pods are in memory.
    """

    namespace: str
    name: str
    labels: Mapping[str, str]
    is_terminating: bool
    node_name: str
    requests: Amounts
    non_zero: tuple[int, int]
    terms: PodTerms
    priority: int
    volumes: PodVolumes
    is_reserved: bool = False
    """The pod is not bound yet; its room is reserved."""
    gangs: tuple[GangKey, ...] = ()
    started_seconds: int = 0
    """The time at which the kubelet took the pod, in Unix seconds; 0 if it has not."""
    controller: str = ""
    """Kind and name of its controller, such as `Job/train-1`, or empty if there is none."""
    rare: RareFacts = USUAL

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "RunningPod":
        """Return the facts of `pod`, a raw API object. If the pod is not bound, only the facts about its load are read.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader(pod)
        metadata, spec = reader.object("metadata"), reader.object("spec")
        namespace, name = metadata.text("namespace") or DEFAULT_NAMESPACE, metadata.text("name")
        labels, is_terminating = metadata.text_map("labels"), metadata.raw.get("deletionTimestamp") is not None
        node_name, host_ports = spec.text("nodeName"), read_host_ports(spec)
        resources = read_pod_resources(reader, running=True)
        scheduler = intern(spec.text("schedulerName"))
        scheduler = "" if scheduler == DEFAULT_SCHEDULER else scheduler
        # Preemption only reads these facts of bound pods.
        status = reader.object("status") if node_name and pod.get("status") else None
        reason, deleted, is_evicted = waiting_reason(pod) if status else "", 0, False
        if is_terminating:
            deleted = read_seconds(metadata, "deletionTimestamp")
            is_evicted = status is not None and is_preempted(status)
        workload = workload_of(metadata.raw) if KUEUE_POD_SET in labels else ""
        rare = usual_of(scheduler)
        if is_terminating or reason or host_ports or workload:
            rare = RareFacts((), deleted, is_evicted, reason, host_ports, scheduler, workload)
        found = cls(
            namespace=namespace,
            name=name,
            labels=labels,
            is_terminating=is_terminating,
            node_name=node_name,
            requests={each: amount for each, amount in resources.requests.items() if is_schedulable_resource(each)},
            non_zero=(resources.non_zero_requested.get(CPU, 0), resources.non_zero_requested.get(MEMORY, 0)),
            priority=spec.integer("priority"),
            terms=NO_TERMS if spec.raw.get("affinity") is None else read_pod_terms(spec, namespace, labels),
            volumes=read_volumes(spec, namespace, PodReference(name, metadata.text("uid")))
            if spec.raw.get("volumes")
            else NO_VOLUMES,
            gangs=gangs_of(namespace, metadata.raw),
            started_seconds=read_seconds(status, "startTime") if status else 0,
            controller=controller_name(metadata) if node_name and metadata.raw.get("ownerReferences") else "",
            rare=rare,
        )
        reader.finish()
        return found

    def assumed_on(self, node: str, priority: int) -> "RunningPod":
        """Return the pod as a reservation on `node`, where it will run."""
        return self._replace(node_name=node, priority=priority, is_reserved=True)

    @property
    def deletion_seconds(self) -> int:
        """Return when its deletion ends; see `RareFacts`."""
        return self.rare.deletion_seconds

    @property
    def is_preempted(self) -> bool:
        """Return whether kube-scheduler has preempted it; see `RareFacts`."""
        return self.rare.is_preempted

    @property
    def waiting_reason(self) -> str:
        """Return why a container waits; see `RareFacts`."""
        return self.rare.waiting_reason

    def is_same_load(self, other: "RunningPod") -> bool:
        """Return whether replacing this pod by `other` on a node makes no difference to any scheduler."""
        is_same = _LOAD_OF(self) == _LOAD_OF(other)
        return is_same and (self.rare is other.rare or _RARE_LOAD_OF(self.rare) == _RARE_LOAD_OF(other.rare))


# Fields of a pod that make no difference to schedulers on its node, such as those read for preemption or explanations.
_NOT_LOAD = ("name", "node_name", "is_reserved", "started_seconds", "controller", "rare")
_LOAD_OF = attrgetter(*(name for name in RunningPod._fields if name not in _NOT_LOAD))
_RARE_LOAD_OF = attrgetter("left_out", "host_ports", "scheduler", "workload")


def key_of(pod: RunningPod) -> tuple[str, str]:
    """Return the namespace and the name of `pod`."""
    return pod.namespace, pod.name


@dataclass(frozen=True, slots=True)
class Node:
    """The facts of a Node object that a scheduler reads.

    `allocatable` does not contain `pods`, which is `allowed_pods`. `images` are the sizes of the node's images in
    bytes, by name. `unhealthy` is the number of devices of each extended resource that are in the capacity but not
    allocatable. `not_ready_seconds` is the time since which it is not ready, in Unix seconds. It is 0 if the time is
    not known, and None if the node is ready. `is_silent` is true if it is not ready because its kubelet does not
    report.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Amounts
    allowed_pods: int
    images: Mapping[str, int]
    unhealthy: Amounts = field(default_factory=dict)
    not_ready_seconds: int | None = None
    is_silent: bool = False

    @classmethod
    def of(cls, node: Mapping[str, Any], interner: Interner | None = None) -> "Node":
        """Return the facts of `node`, a raw API object; its capacity stands in for a missing allocatable.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader(node)
        metadata, spec, status = reader.object("metadata"), reader.object("spec"), reader.object("status")
        amounts = read_amounts(status, "capacity" if status.raw.get("allocatable") is None else "allocatable")
        name = metadata.text("name")
        if not name:
            metadata.error("name", name, "a node must have a name")
        taints, images = tuple([Taint.read(each) for each in spec.objects("taints")]), _images(status)
        allocatable = {each: amount for each, amount in amounts.items() if is_schedulable_resource(each)}
        if interner is not None:
            taints = interner.known_or(taints, ("taints", taints))
            allocatable = interner.known_or(allocatable, ("allocatable", *allocatable.items()))
            images = interner.known_or(images, ("images", *images.items()))
        not_ready_seconds, is_silent = _readiness(spec, status)
        facts = cls(
            name=name,
            labels=metadata.text_map("labels"),
            taints=taints,
            unschedulable=spec.boolean("unschedulable"),
            allocatable=allocatable,
            allowed_pods=amounts.get(PODS, 0),
            images=images,
            unhealthy=_unhealthy(status, allocatable),
            not_ready_seconds=not_ready_seconds,
            is_silent=is_silent,
        )
        reader.finish()
        return facts


def _readiness(spec: Reader, status: Reader) -> tuple[int | None, bool]:
    """Return `not_ready_seconds` and `is_silent` by the condition Ready, or by the taints if the node has none."""
    ready = next(
        (each for each in listed(status.raw, "conditions") if each.get("type") == "Ready" and each.get("status")), None
    )
    if ready is not None:
        if ready["status"] == "True":
            # The taints of a node that is back are removed a little later.
            return None, False
        return read_seconds(Reader(ready), "lastTransitionTime"), ready["status"] != "False"
    taints = [each for each in spec.objects("taints") if each.text("key") in NOT_READY_TAINTS]
    return (max([read_seconds(each, "timeAdded") for each in taints]), True) if taints else (None, False)


_ALL_HEALTHY: Amounts = {}


def _unhealthy(status: Reader, allocatable: Amounts) -> Amounts:
    """Return the number of devices that are unhealthy: all of them while their device plugin is down.

    Source: k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/manager.go, GetCapacity
    """
    whole, left = status.object("capacity").raw, status.object("allocatable").raw
    # In most nodes, both have equal texts.
    if not left or all(left.get(name) == whole[name] for name in whole if is_extended_resource(str(name))):
        return _ALL_HEALTHY
    amounts = {name: amount for name, amount in read_amounts(status, "capacity").items() if is_extended_resource(name)}
    return {name: lost for name, amount in amounts.items() if (lost := amount - allocatable.get(name, 0)) > 0}


def _images(status: Reader) -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    for image in status.objects("images"):
        size_bytes = image.integer("sizeBytes")
        for name in image.texts("names"):
            # Thousands of nodes have the same images: each name is stored once.
            sizes.setdefault(intern(name), size_bytes)
    return sizes


class NodeInfo(NamedTuple):
    """A node with its pods and the sum of their requests.

    `schedulers` are those of the pods except the default one, and `lowest_priority` is the lowest of the pods.
    """

    node: Node
    pods: tuple[RunningPod, ...]
    requested: Amounts
    non_zero_milli_cpu: int
    non_zero_memory_bytes: int
    schedulers: frozenset[str] = frozenset()
    gangs: tuple[GangKey, ...] = ()
    lowest_priority: int = NO_PRIORITY

    @classmethod
    def of(cls, node: Node, pods: Iterable[RunningPod] = ()) -> "NodeInfo":
        """Return `node` with `pods` bound to it."""
        return cls(node, (), {}, 0, 0).with_pods(pods)

    def with_pods(self, pods: Iterable[RunningPod]) -> "NodeInfo":
        """Return the node with `pods` added to its own."""
        added, requested, schedulers, gangs = tuple(pods), dict(self.requested), self.schedulers, self.gangs
        milli_cpu, memory_bytes = self.non_zero_milli_cpu, self.non_zero_memory_bytes
        lowest = self.lowest_priority
        for pod in added:
            for resource, amount in pod.requests.items():
                requested[resource] = requested.get(resource, 0) + amount
            milli_cpu += pod.non_zero[0]
            memory_bytes += pod.non_zero[1]
            if pod.rare.scheduler:
                schedulers |= {pod.rare.scheduler}
            if pod.gangs:
                gangs += pod.gangs
            if pod.priority < lowest:
                lowest = pod.priority
        return NodeInfo(self.node, self.pods + added, requested, milli_cpu, memory_bytes, schedulers, gangs, lowest)

    def without_pod(self, pod: RunningPod) -> "NodeInfo":
        """Return the node without `pod`, which is one of its own."""
        at, requested, schedulers, gangs = self.pods.index(pod), dict(self.requested), self.schedulers, [*self.gangs]
        pods = self.pods[:at] + self.pods[at + 1 :]
        for resource, amount in pod.requests.items():
            requested[resource] -= amount
            if amount and not requested[resource]:
                del requested[resource]
        if pod.rare.scheduler:
            schedulers = frozenset([each.rare.scheduler for each in pods if each.rare.scheduler])
        for gang in pod.gangs:
            gangs.remove(gang)
        milli_cpu = self.non_zero_milli_cpu - pod.non_zero[0]
        memory_bytes = self.non_zero_memory_bytes - pod.non_zero[1]
        lowest = self.lowest_priority
        if pod.priority == lowest:
            lowest = min([each.priority for each in pods], default=NO_PRIORITY)
        return NodeInfo(self.node, pods, requested, milli_cpu, memory_bytes, schedulers, tuple(gangs), lowest)
