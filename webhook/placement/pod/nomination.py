"""The scheduler and the nominated node of a pending pod."""

from typing import NamedTuple

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.kube.reader import Reader


class Nomination(NamedTuple):
    """The scheduler that a pod names, and its nominated node, empty without one.

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
        """Return whether `pod`, a nominated one, is the pod itself."""
        return bool(self.node_name) and (pod.namespace, pod.name) == (self.namespace, self.name)


_DEFAULT_NOMINATION = Nomination()
