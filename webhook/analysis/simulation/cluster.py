"""The cluster of a simulation and its schedulers: pods come and go, and each change costs one row."""

import numpy as np

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.cluster.working_snapshot import WorkingSnapshot
from webhook.kube.deadline import never
from webhook.placement.profiles.profile import Profile
from webhook.placement.ranking.ranking_cache import RankingCache
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

# The rankings of some hundred kinds of pods on thousands of nodes.
_CACHE_BYTES = 256 * 1024 * 1024


class SimulatedCluster:
    """The nodes and pods of `base`, and the pods that were placed on them. Not thread-safe.

    `snapshot` is changed in place, so a scheduler brings its rankings up to date by the changed rows.
    """

    def __init__(self, base: Snapshot) -> None:
        self._base = base
        self._placed: dict[int, RunningPod] = {}
        self._working = WorkingSnapshot(base)

    @property
    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""
        return self._working.snapshot

    def add(self, pod: RunningPod, row: int) -> RunningPod:
        """Place `pod` on the node in `row`, and return it as it runs there."""
        bound = pod._replace(node_name=self._base.nodes[row].node.name)
        self._placed[id(bound)] = bound
        if self._working.is_worn:
            self._working = WorkingSnapshot(self._base, self._placed.values())
        else:
            self._working.add(bound)
        return bound

    def remove(self, pod: RunningPod) -> int:
        """Remove `pod`, which `add` returned, and return the row of its node."""
        del self._placed[id(pod)]
        self._working.remove(pod)
        return self._base.rows[pod.node_name]


class RankedScheduler:
    """A scheduler of `profile` that keeps its rankings of nodes, and brings them up to date by the changed rows."""

    def __init__(self, profile: Profile) -> None:
        self.scheduler = Scheduler(profile, keeps_scores=False)
        self._kept = RankingCache(profile, _CACHE_BYTES)

    def best_rows(self, signature: PodSignature, snapshot: Snapshot) -> Rows:
        """Return the rows of the feasible nodes with the highest score, in order; none for a pod with gates."""
        profile, kept = self.scheduler.profile, self._kept.of(signature, snapshot)
        if kept.info.is_gated:
            return np.empty(0, dtype=np.intp)
        if not kept.evaluates_all_by(profile, snapshot):
            return self.scheduler.best_rows(signature, snapshot)
        is_first = kept.ranking is None
        ranking = self._kept.ranking(kept, snapshot)
        if is_first:
            self._kept.put(kept, len(snapshot.nodes))
        passing = ranking.feasible(snapshot, never)
        return ranking.best_rows(snapshot, passing, never) if passing.any() else np.flatnonzero(passing)
