"""The cluster of a simulation: its nodes, and the pods that are running on them."""

from collections.abc import Iterable, Sequence

from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.nominated_pods import NominatedPods
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.cluster.working_snapshot import WorkingSnapshot


class SimulatedCluster:
    """The nodes and pods of `base`, and the pods that were placed on them. Not thread-safe.

    `snapshot` is changed in place, so a scheduler only updates its rankings for the changed rows. `last_start` is the
    latest start time of a pod of `base`, in Unix seconds.
    """

    def __init__(self, base: Snapshot) -> None:
        self._base = base
        self._placed: dict[int, RunningPod] = {}
        self._working = WorkingSnapshot(base)
        self._nominated = base.nominated
        self.last_start = max((pod.started_seconds for info in base.nodes for pod in info.pods), default=0)

    @property
    def snapshot(self) -> Snapshot:
        """Return the current state of the cluster."""
        return self._working.snapshot

    def pods_on(self, node: str) -> Sequence[RunningPod]:
        """Return the pods on `node`."""
        return self.snapshot.nodes[self._base.rows[node]].pods

    def add(self, pod: RunningPod, row: int) -> RunningPod:
        """Place `pod` on the node in `row`, and return it as it runs there."""
        return self._add(pod._replace(node_name=self._base.nodes[row].node.name))

    def _add(self, bound: RunningPod) -> RunningPod:
        self._placed[id(bound)] = bound
        if self._working.is_worn:
            self._working = WorkingSnapshot(self._base, self._placed.values())
            self._working.snapshot.nominated = self._nominated
        else:
            self._working.add(bound)
        return bound

    def has(self, pod: RunningPod) -> bool:
        """Return whether `pod`, which `add` or `evict` returned, is still there."""
        return id(pod) in self._placed

    def remove(self, pod: RunningPod) -> int:
        """Remove `pod`, which `add` or `evict` returned, and return the row of its node."""
        del self._placed[id(pod)]
        self._working.remove(pod)
        return self._base.rows[pod.node_name]

    def evict(self, pod: RunningPod) -> RunningPod:
        """Mark `pod`, which must be in the snapshot, as being deleted, and return the marked pod."""
        if self.has(pod):
            self.remove(pod)
        else:
            info = self._base.nodes[self._base.rows[pod.node_name]].without_pod(pod)
            self._base = updated(self._base, (info,), self._base.generation)
            self._working.remove(pod)
        return self._add(pod._replace(is_terminating=True, rare=pod.rare._replace(is_preempted=True)))

    def nominate(self, pods: Iterable[RunningPod]) -> None:
        """Reserve room for `pods` on their nodes, in addition to the nominated pods of `base`."""
        own = [each for kept in self._base.nominated.by_node.values() for each in kept]
        self._nominated = self.snapshot.nominated = NominatedPods.of([*own, *pods])
