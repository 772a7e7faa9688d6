"""Predict the node of a pod: kube-scheduler's scheduling cycle over a snapshot."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, never
from webhook.kube.pod.taints import TEMPORARY_TAINTS
from webhook.placement.framework.fit_error import fit_error, with_templates
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import (
    GATED,
    NO_NODES,
    QUEUED,
    Placement,
    PlacementVerdict,
    Scores,
    ScoreTable,
)
from webhook.placement.framework.scoring import run_scores
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.preemption.default_preemption import not_predicted_for, predict_preemption
from webhook.placement.profiles.node_templates import TemplateNode
from webhook.placement.profiles.profile import DEFAULT, Profile
from webhook.placement.ranking.nodes_that_fit import find_nodes_that_fit
from webhook.placement.ranking.ranking_cache import KeptAnswer, RankingCache
from webhook.placement.reasons.deny_exemption import SHARED, UNLISTED, deny_exemption
from webhook.placement.reasons.diagnosis import NodeToStatus, explain
from webhook.placement.scorer import ANSWER_CACHE_BYTES, PodSignature
from webhook.placement.suggest.changes import Scenario
from webhook.placement.suggest.suggestions import Suggestion, suggest
from webhook.runtime.byte_cache import ByteCache

__all__ = ["NOT_MODELLED", "Placement", "PodSignature", "Scheduler", "never"]

NOT_MODELLED = "which is not modelled"
"""The end of the message of a verdict that depends on plugins that were not evaluated."""


class Scheduler:
    """Run the plugins of a profile. Up to `cache_bytes` of placements and rankings of nodes are cached.

    Not thread-safe. `templates` are the nodes that an autoscaler can add, and `temporary_taints` the keys of temporary
    taints in addition to those of Kubernetes. A pod that cannot be placed gets up to `suggestions` suggestions. Without
    `keeps_scores`, placements have no scores, because scores keep a snapshot in memory. If `is_listed` is false, the
    rules of the scheduler are not known, and no pod is Infeasible.
    """

    def __init__(
        self,
        profile: Profile = DEFAULT,
        *,
        cache_bytes: int = ANSWER_CACHE_BYTES,
        templates: Sequence[TemplateNode] = (),
        temporary_taints: Collection[str] = TEMPORARY_TAINTS,
        suggestions: int = 0,
        keeps_scores: bool = True,
        is_listed: bool = True,
    ) -> None:
        self.profile, self.is_listed, self.temporary_taints = profile, is_listed, temporary_taints
        self._templates = templates
        self._suggestions = suggestions
        self._keeps_scores = keeps_scores
        self._kept = RankingCache(profile, cache_bytes)
        self._filter = partial(find_nodes_that_fit, profile)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """The caches, for metrics."""
        return self._kept.caches

    def place(self, pod: Mapping[str, Any], snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Return the placement of `pod`, a raw API object.

        Raises:
            InvalidInput: a field of the pod that is read is malformed; holds every error.
        """
        return self.answer(PodSignature.of(pod), snapshot, expired)

    def answer(self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Return the placement by kube-scheduler of a pod with `signature` on the nodes of `snapshot`.

        Every node is evaluated, although kube-scheduler may stop early in clusters of 100 nodes or more. `expired` is
        called before each plugin and, within a plugin, before each term of the pod. Once it returns true, the verdict
        is Unknown.
        """
        kept = self._kept.of(signature, snapshot)
        answer = self._placed(kept, snapshot, expired)
        if not self._suggestions or answer.verdict not in ("Waiting", "Infeasible"):
            return answer
        group = signature.info.native_group(snapshot)
        if kept.advised is None or not kept.is_advised(answer, snapshot.generation, group):
            try:
                preemption = self.preemption(signature, snapshot, expired)
                found = self.suggest(signature, snapshot, answer.verdict, self._suggestions, expired, preemption)
            except DeadlineNearError:
                return replace(answer, is_final=False)
            remedies = tuple(each.remedy for each in found)
            texts = tuple(each.text for each in found)
            advised = replace(answer, suggestions=texts, remedies=remedies, preemption=preemption)
            kept.advised, kept.advised_group = (answer, advised, snapshot.generation), group
        return kept.advised[1]

    def preemption(
        self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never
    ) -> PredictedPreemption | None:
        """Return the predicted evictions by kube-scheduler for a pod that no node of `snapshot` can take.

        The result is None if kube-scheduler does not try preemption, because the pod has scheduling gates, there is no
        node, or the profile never preempts.
        """
        info = signature.info.normalized_for(snapshot)
        if info.gates or not snapshot.nodes or not self.profile.preempts:
            return None
        if group := signature.info.native_group(snapshot):
            return not_predicted_for(group)
        return predict_preemption(self.profile, info, snapshot, expired)

    def answer_alone(self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Return the placement without suggestions, which take longer. The cached rankings are shared with `answer`."""
        return self._placed(self._kept.of(signature, snapshot), snapshot, expired)

    def _placed(self, kept: KeptAnswer, snapshot: Snapshot, expired: Expired) -> Placement:
        position = snapshot.log.position
        if kept.answer is not None and kept.position == position:
            return kept.answer
        try:
            answer = self._answer(kept, snapshot, expired)
            if kept.info.is_queued:
                answer = replace(answer, message=f"{answer.message.removesuffix('.')}. {QUEUED}")
        except BudgetSpentError as error:
            answer = Placement.unknown(str(error))
        except DeadlineNearError as error:
            return Placement.unknown(str(error), is_final=False)
        is_first = kept.answer is None
        kept.answer, kept.position = answer, position
        if is_first:
            self._kept.put(kept, len(snapshot.nodes))
        return answer

    def feasible(self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Mask:
        """Return a mask of the nodes of `snapshot` that pass every filter.

        Raises:
            BudgetSpentError: the search for devices takes too many steps.
        """
        return self._filter(signature.info.normalized_for(snapshot), snapshot, expired).feasible

    def best_rows(self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Rows:
        """Return the feasible rows with the highest score, of which kube-scheduler picks one, or none.

        Raises:
            BudgetSpentError: the search for devices takes too many steps.
        """
        info = signature.info.normalized_for(snapshot)
        table = self._score(info, snapshot, self._filter(info, snapshot, expired).feasible, expired)
        return table.best_rows() if len(table.rows) else table.rows

    def explain(self, signature: PodSignature, snapshot: Snapshot) -> NodeToStatus:
        """Return the reasons of each node of `snapshot` that rejects the pod, as the message counts them."""
        return explain(self.profile, signature.info.normalized_for(snapshot), snapshot)

    def feasible_rows(self, signature: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Rows:
        """Return the rows of the nodes that pass every filter, or none for a pod with scheduling gates."""
        kept = self._kept.known(signature)
        if kept is not None and kept.passing is not None and kept.passing[0] == snapshot.state:
            return np.flatnonzero(kept.passing[1])
        info = signature.info.normalized_for(snapshot)
        if info.gates:
            return np.empty(0, dtype=np.intp)
        passing = self._filter(info, snapshot, expired).feasible
        if kept is not None:
            kept.passing = snapshot.state, passing
        return np.flatnonzero(passing)

    def reads_other_nodes(self, signature: PodSignature, snapshot: Snapshot) -> bool:
        """Return true if pods on other nodes or claims affect whether a node of `snapshot` can take the pod."""
        info = signature.info.normalized_for(snapshot)
        across = self.profile.cross_node_filters
        return bool(info.volumes.claims) or any(each.is_relevant(info, snapshot, never) for each in across)

    def suggest(
        self,
        signature: PodSignature,
        snapshot: Snapshot,
        verdict: PlacementVerdict,
        most: int,
        expired: Expired = never,
        preemption: PredictedPreemption | None = None,
    ) -> tuple[Suggestion, ...]:
        """Return at most `most` suggestions that make the pod fit, the best first.

        `verdict` is the verdict on the unchanged pod. `preemption` is its preemption, or None if that is not computed
        yet.
        """

        def feasible_nodes(scenario: Scenario) -> Mask:
            return self._filter(scenario.pod, scenario.nodes, expired).feasible

        scenario = Scenario(signature.info.normalized_for(snapshot), snapshot)
        preemption = preemption or self.preemption(signature, snapshot, expired)
        return suggest(
            self.profile, scenario, verdict, feasible_nodes, most, expired, self.temporary_taints, preemption
        )

    def _answer(self, kept: KeptAnswer, snapshot: Snapshot, expired: Expired) -> Placement:
        info = kept.info
        required, unmodelled = kept.unmodelled_by(self.profile, snapshot, expired)
        total = len(snapshot.nodes)
        if info.gates:
            # A gate may wait for another cluster, a quota or new nodes, and the controller that removes it may restrict
            # the pod's nodes first. So the only prediction for a gated pod is that it waits.
            return Placement("Waiting", None, total, 0, GATED, unmodelled=unmodelled)
        if total == 0:
            return self._none_feasible(info, snapshot, NO_NODES, unmodelled, expired)
        ranking = self._kept.ranking(kept, snapshot) if kept.evaluates_all_by(self.profile, snapshot) else None
        passing = ranking.feasible(snapshot, expired) if ranking else self._filter(info, snapshot, expired).feasible
        feasible = int(np.count_nonzero(passing))
        if feasible == 0:
            filtered = self._filter(info, snapshot, expired)
            message = fit_error(total, filtered.reasons, filtered.pre_filter_msg, self.profile.wording)
            return self._none_feasible(info, snapshot, message, unmodelled, expired)
        message = f"{feasible}/{total} nodes are available.{self.profile.wording.note}"
        scores: Mapping[str, Mapping[str, float]] = {}
        if self._keeps_scores:
            scores = Scores(snapshot, partial(self._score, info, snapshot, passing, never))
        if required:
            message += f" Whether one of them will do depends on {', '.join(sorted(required))}, {NOT_MODELLED}."
            return Placement("Unknown", None, total, feasible, message, scores, unmodelled)
        if ranking is None:
            best_rows = self._score(info, snapshot, passing, expired).best_rows()
        else:
            best_rows = ranking.best_rows(snapshot, passing, expired)
        return Placement(
            "Feasible",
            snapshot.nodes[int(best_rows[0])].node.name,
            total,
            feasible,
            message,
            scores,
            unmodelled,
            best_rows=best_rows,
            feasible_mask=passing,
        )

    def _none_feasible(
        self, info: PodInfo, snapshot: Snapshot, message: str, unmodelled: tuple[str, ...], expired: Expired
    ) -> Placement:
        """Return Waiting if an emptied node or a new node of a template can take the pod, or else Infeasible."""
        total, empty = len(snapshot.nodes), snapshot.without_pods()
        answer = partial(Placement, node=None, total=total, feasible=0, message=message, unmodelled=unmodelled)
        passing = partial(self._filter, expired=expired, ignore_transient=True)
        if total and passing(info, empty).feasible.any():
            return answer("Waiting")
        if self._templates:
            new_nodes = snapshot.with_other_nodes(template.info for template in self._templates)
            feasible = passing(info, new_nodes).feasible
            fitting = [each.name for each in self._templates if feasible[new_nodes.rows[each.info.node.name]]]
            if fitting:
                return answer("Waiting", message=with_templates(message, fitting))
        if info.shares or not self.is_listed:
            return answer("Unknown", deny_exemption=SHARED if info.shares else UNLISTED)
        doubt = deny_exemption(info, snapshot, self.temporary_taints, lambda *changed: passing(*changed).feasible)
        return answer("Infeasible", deny_exemption=doubt)

    def _score(self, info: PodInfo, snapshot: Snapshot, feasible: Mask, expired: Expired) -> ScoreTable:
        """Return the scores of the feasible nodes. A single node is not scored."""
        return run_scores(self.profile.scores, info, snapshot, np.flatnonzero(feasible), expired)
