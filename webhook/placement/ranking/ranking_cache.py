"""The caches of a scheduler: placements of pods, and rankings of nodes by their inputs."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.index.labels import Mask
from webhook.cluster.row_log import RowLog
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.framework.filtering import run_pre_filters
from webhook.placement.framework.result import Placement
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.pod.inter_pod_info import InterPodInfo
from webhook.placement.pod.pod_info import PodInfo, has_volumes
from webhook.placement.profiles.profile import Profile
from webhook.placement.ranking.node_ranking import FactRanking, NodeRanking, RankingPlugins, facts_of
from webhook.placement.ranking.ranking import AffinityCounts, AffinityKey, Ranking
from webhook.placement.scorer import PodSignature
from webhook.placement.unmodelled import unmodelled_plugins
from webhook.runtime.byte_cache import ByteCache

# The columns of a ranking for each node.
_RANKING_BYTES = 40
_FACTS_BYTES = 24
_COUNTS_BYTES = 16
# An answer without its message and columns.
_KEPT_BYTES = 2048
# The templates of which everything is kept in a cluster with so many nodes that one ranking exceeds the budget.
_LEAST = 8
_ALONE = InterPodInfo("")


@dataclass(slots=True, weakref_slot=True)
class KeptAnswer:
    """The cached parts of a pod that was placed: its normalized info and its last placement.

    The info is valid for snapshots with `log` whose running pods have pod affinity terms (`has_terms`) with
    `term_keys`.
    """

    signature: PodSignature
    log: RowLog
    term_keys: frozenset[str]
    has_terms: bool
    class_count: int
    info: PodInfo
    ranking: Ranking | None = None
    evaluates_all: bool | None = None
    unmodelled: tuple[int, frozenset[str], tuple[str, ...]] | None = None
    answer: Placement | None = None
    position: int = -1
    advised: tuple[Placement, Placement, int] | None = None
    """An answer, the same with suggestions and preemption, and the generation of its snapshot."""
    advised_group: PodGroup | None = None
    """The native PodGroup of the pod for which `advised` was found."""

    def is_advised(self, answer: Placement, generation: int, group: PodGroup | None) -> bool:
        """Return whether `answer` is cached with suggestions that are still valid for a pod of the native `group`.

        If it predicts evictions, it is only valid for the same generation, because start times and budgets of victims
        can change. PodGroups change too often for a new log.
        """
        if self.advised is None or self.advised[0] is not answer or self.advised_group != group:
            return False
        preemption = self.advised[1].preemption
        is_fixed = preemption is None or not (preemption.evicts or self.info.nomination.node_name)
        return is_fixed or self.advised[2] == generation

    passing: tuple[tuple[RowLog, int], Mask] | None = None
    """The nodes that pass every filter on another snapshot, that without the assumed pods, by its state."""

    def is_on(self, snapshot: Snapshot) -> bool:
        """Return whether the cached parts are valid for `snapshot`."""
        pods = snapshot.pods
        if self.log is not snapshot.log or self.has_terms != pods.has_terms:
            return False
        # HyperNodes and the configuration of Volcano are not in the log.
        asked = self.signature.info
        if asked.network is not None and asked.network_on(snapshot) != self.info.network:
            return False
        # Only a new class can have new terms.
        if self.class_count != pods.class_count:
            if self.term_keys != pods.term_keys:
                return False
            self.class_count = pods.class_count
        return True

    def unmodelled_by(
        self, profile: Profile, snapshot: Snapshot, expired: Expired
    ) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return the unmodelled plugins that may exclude nodes, and all unmodelled plugins in order."""
        info, term_count = self.info, snapshot.pods.classes.term_count
        if self.unmodelled is not None and self.unmodelled[0] == term_count:
            return self.unmodelled[1:]
        required, preferred = profile.unmodelled(info, *unmodelled_plugins(info, snapshot, expired))
        for plugin in profile.uncertain_scores if info.by_container else ():
            certainty = plugin.certainty(info, snapshot, expired)
            required |= frozenset() if certainty.verdict else {plugin.name}
            preferred |= frozenset() if certainty.scores else {plugin.name}
        found = required, tuple(sorted(required | preferred))
        # The namespaces of pods, the pods with a term and the free devices can change without a new term.
        inter_pod, has_devices = info.inter_pod, info.device_claims or info.by_container
        is_known = not inter_pod.namespace or inter_pod.namespace in snapshot.namespaces
        carried = () if is_known else tuple(snapshot.pods.classes.carried_by_namespace_labels(dict(inter_pod.labels)))
        if not has_devices and not carried and not any(term.chooses_namespaces for term in inter_pod.terms):
            self.unmodelled = term_count, *found
        return found

    def evaluates_all_by(self, profile: Profile, snapshot: Snapshot) -> bool:
        """Return whether all nodes are filtered alike, because no pod is nominated and no pre-filter names nodes."""
        info = self.info
        if self.evaluates_all is not None:
            return self.evaluates_all
        if snapshot.nominated or info.nomination.node_name:
            return False
        found = run_pre_filters(profile.pre_filters, info, snapshot, ignore_transient=False)
        evaluates_all = not found.reason and found.node_names is None
        if not has_volumes(info) and not info.device_claims:
            # Only volumes and claims depend on other pods.
            self.evaluates_all = evaluates_all
        return evaluates_all


class RankingCache:
    """The cached placements and rankings for pods, limited to `cache_bytes`. Not thread-safe.

    The keys are the inputs. A placement has the signature as its key; a NodeRanking has the info without relations to
    other pods; a FactRanking also has no amounts; counts of pod affinity have the terms.
    """

    def __init__(self, profile: Profile, cache_bytes: int) -> None:
        self._plugins = RankingPlugins(profile)
        # The largest signature that is kept: the caches keep some entries whatever their size.
        self._most_bytes = cache_bytes * 5 // 32
        # By the signature, and by the part of it that matters on the snapshot.
        self._last: ByteCache[PodSignature, KeptAnswer] = ByteCache(cache_bytes * 5 // 8, _LEAST)
        self._by_content: WeakValueDictionary[tuple[RowLog, PodInfo], KeptAnswer] = WeakValueDictionary()
        self._nodes: ByteCache[tuple[RowLog, PodInfo], NodeRanking] = ByteCache(cache_bytes // 8, _LEAST)
        self._facts: ByteCache[tuple[RowLog, object], FactRanking] = ByteCache(cache_bytes // 8, _LEAST)
        self._counts: ByteCache[tuple[RowLog, AffinityKey], AffinityCounts] = ByteCache(cache_bytes // 8, _LEAST)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """Return the caches, for metrics."""
        return (self._last, self._nodes, self._facts, self._counts)

    def known(self, signature: PodSignature) -> KeptAnswer | None:
        """Return the cached parts of a pod with `signature`, for any snapshot, or None if there are none."""
        return self._last.get(signature)

    def of(self, signature: PodSignature, snapshot: Snapshot) -> KeptAnswer:
        """Return the cached parts of a pod with `signature` for `snapshot`, or a new object without a placement."""
        kept = self._last.get(signature)
        if kept is not None and kept.is_on(snapshot):
            return kept
        pods, info = snapshot.pods, signature.info.normalized_for(snapshot)
        kept = KeptAnswer(signature, snapshot.log, pods.term_keys, pods.has_terms, pods.class_count, info)
        known = self._by_content.get((kept.log, info))
        if known is not None:
            kept = replace(
                known,
                signature=signature,
                term_keys=kept.term_keys,
                has_terms=kept.has_terms,
                class_count=kept.class_count,
                passing=None,
            )
            self.put(kept, len(snapshot.nodes))
        return kept

    def put(self, kept: KeptAnswer, nodes: int) -> None:
        """Cache a placement and its ranking, unless the pod is large."""
        signature, answer = kept.signature, kept.answer
        if signature.size_bytes > self._most_bytes:
            return
        size_bytes = _KEPT_BYTES + 2 * nodes
        if answer is not None:
            size_bytes += len(answer.message) + (0 if answer.best_rows is None else answer.best_rows.nbytes)
        self._last.put(signature, kept, size_bytes + signature.size_bytes)
        self._by_content[kept.log, kept.info] = kept

    def ranking(self, kept: KeptAnswer, snapshot: Snapshot) -> Ranking:
        """Return the ranking of the nodes of `snapshot` for a pod. Pods of one template share the largest part."""
        if kept.ranking is None:
            key = kept.log, kept.info._replace(inter_pod=_ALONE)
            nodes = self._nodes.get(key)
            if nodes is None:
                nodes = NodeRanking(self._plugins, self._facts_for(kept, len(snapshot.nodes)), kept.info)
                if kept.signature.size_bytes <= self._most_bytes:
                    self._nodes.put(key, nodes, kept.signature.size_bytes + len(snapshot.nodes) * _RANKING_BYTES)
            counts_for = partial(self._counts_for, kept.log, len(snapshot.nodes))
            kept.ranking = Ranking(self._plugins, nodes, kept.info, counts_for)
        return kept.ranking

    def _facts_for(self, kept: KeptAnswer, nodes: int) -> FactRanking:
        """Return the part of the ranking that depends on no pods. Pods that differ only in amounts share it."""
        key = kept.log, facts_of(kept.info)
        facts = self._facts.get(key)
        if facts is None:
            facts = FactRanking(self._plugins)
            self._facts.put(key, facts, _KEPT_BYTES + nodes * _FACTS_BYTES)
        return facts

    def _counts_for(self, log: RowLog, nodes: int, plugin: InterPodAffinity, key: AffinityKey) -> AffinityCounts:
        counts = self._counts.get((log, key))
        if counts is None:
            counts = AffinityCounts(plugin, key)
            self._counts.put((log, key), counts, _KEPT_BYTES + nodes * _COUNTS_BYTES)
        return counts
