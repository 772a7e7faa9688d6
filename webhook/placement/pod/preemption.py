"""The priority, the scheduler and the nominated node of a pending pod."""

from typing import NamedTuple

from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.priority_class import NEVER, priority_class_named
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.kube.reader import Reader


class Preemption(NamedTuple):
    """A pod's priority, which is None until its class is looked up. `is_never` is true if the pod never preempts.

    `class_name` is set if the class is not known; the pod then has priority 0. `group` is the name of its PodGroup of
    kube-scheduler itself, or empty.
    """

    priority: int | None
    class_name: str = ""
    is_never: bool = False
    group: str = ""

    @classmethod
    def of(cls, spec: Reader) -> "Preemption":
        """Return the preemption of a pod with `spec`, whose class the API server may not have resolved yet."""
        is_never = spec.text("preemptionPolicy") == NEVER
        group = spec.object("schedulingGroup").text("podGroupName") if spec.raw.get("schedulingGroup") else ""
        if spec.raw.get("priority") is not None:
            return cls(spec.integer("priority"), is_never=is_never, group=group)
        return cls(None, spec.text("priorityClassName"), is_never, group)

    def normalized_for(self, snapshot: Snapshot) -> "Preemption":
        """Return the preemption with the class looked up in `snapshot`."""
        if self.priority is not None:
            return self
        found = priority_class_named(self.class_name, snapshot.priority_classes)
        if found is None:
            return Preemption(0, self.class_name, self.is_never, self.group)
        return Preemption(found.value, "", self.is_never or found.never_preempts, self.group)

    def can_preempt(self, priority: int) -> bool:
        """Return whether the pod can preempt a pod of `priority`."""
        return not self.is_never and (self.priority or 0) > priority


class Nomination(NamedTuple):
    """The scheduler that a pod names, and its nominated node. Each is empty if the pod has none.

    `namespace` and `name` identify the pod among the nominated pods; they are empty without a nominated node.
    """

    scheduler_name: str = DEFAULT_SCHEDULER
    node_name: str = ""
    namespace: str = ""
    name: str = ""

    @classmethod
    def of(cls, pod: Reader, metadata: Reader, spec: Reader) -> "Nomination":
        """Return the nomination of `pod`, which has `metadata` and `spec`."""
        scheduler_name = spec.text("schedulerName") or DEFAULT_SCHEDULER
        if not pod.raw.get("status"):
            return _DEFAULT_NOMINATION if scheduler_name == DEFAULT_SCHEDULER else cls(scheduler_name)
        node_name = pod.object("status").text("nominatedNodeName")
        if not node_name:
            return cls(scheduler_name)
        namespace = metadata.text("namespace") or DEFAULT_NAMESPACE
        return cls(scheduler_name, node_name, namespace, metadata.text("name"))

    def normalized_for(self, snapshot: Snapshot) -> "Nomination":
        """Return the nomination, or the default one if it does not matter on `snapshot`."""
        return self if self.node_name or snapshot.nominated else _DEFAULT_NOMINATION

    def is_of(self, pod: RunningPod) -> bool:
        """Return whether the nominated pod `pod` is this pod itself."""
        return bool(self.node_name) and (pod.namespace, pod.name) == (self.namespace, self.name)


_DEFAULT_NOMINATION = Nomination()
