"""The best nodes for pods that are placed one after the other on one snapshot, which is changed in place."""

import numpy as np

from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import never
from webhook.placement.profiles.profile import Profile
from webhook.placement.ranking.ranking_cache import RankingCache
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

# The rankings of some hundred kinds of pods on thousands of nodes.
_CACHE_BYTES = 256 * 1024 * 1024


class RankedScheduler:
    """A scheduler of `profile` that keeps its rankings of nodes, and brings them up to date by the changed rows."""

    def __init__(self, profile: Profile) -> None:
        self.scheduler = Scheduler(profile, keeps_scores=False)
        self._kept = RankingCache(profile, _CACHE_BYTES)

    def best_rows(self, signature: PodSignature, snapshot: Snapshot) -> Rows:
        """Return the rows of the feasible nodes with the highest score, in order; none for a pod with gates."""
        profile, kept = self.scheduler.profile, self._kept.of(signature, snapshot)
        if any(gate.pre_enqueue(kept.info) for gate in profile.pre_enqueues):
            return np.empty(0, dtype=np.intp)
        if not kept.evaluates_all_by(profile, snapshot):
            return self.scheduler.best_rows(signature, snapshot)
        is_first = kept.ranking is None
        ranking = self._kept.ranking(kept, snapshot)
        if is_first:
            self._kept.put(kept, len(snapshot.nodes))
        passing = ranking.feasible(snapshot, never)
        return ranking.best_rows(snapshot, passing, never) if passing.any() else np.flatnonzero(passing)
