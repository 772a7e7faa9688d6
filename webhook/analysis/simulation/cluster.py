"""The cluster of a simulation: pods come and go, and each change costs one row."""

from dataclasses import replace

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.working_snapshot import WorkingSnapshot


class SimulatedCluster:
    """The nodes and pods of `base`, and the pods that were placed on them. Not thread-safe.

    `snapshot` is changed in place, so a scheduler brings its rankings up to date by the changed rows.
    """

    def __init__(self, base: Snapshot) -> None:
        self._base = base
        self._placed: dict[str, dict[int, RunningPod]] = {info.node.name: {} for info in base.nodes}
        self._working = WorkingSnapshot(base)

    @property
    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""
        return self._working.snapshot

    def add(self, pod: RunningPod, row: int) -> RunningPod:
        """Place `pod` on the node in `row`, and return it as it runs there."""
        bound = replace(pod, node_name=self._base.nodes[row].node.name)
        self._placed[bound.node_name][id(bound)] = bound
        if self._working.is_worn:
            running = [each for pods in self._placed.values() for each in pods.values()]
            self._working = WorkingSnapshot(self._base, running)
        else:
            self._working.add(bound)
        return bound

    def remove(self, pod: RunningPod) -> int:
        """Remove `pod`, which `add` returned, and return the row of its node."""
        node = pod.node_name
        del self._placed[node][id(pod)]
        self._working.follow(self._base, lambda name: tuple(self._placed[name].values()), (node,))
        return self._base.rows[node]
