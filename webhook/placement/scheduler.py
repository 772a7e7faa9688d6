"""Whether a pod fits somewhere, and where best: kube-scheduler's scheduling cycle over a snapshot."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from webhook.byte_cache import ByteCache
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired, in_time, never
from webhook.placement.deny_exemption import doubt
from webhook.placement.diagnosis import NodeToStatus, explain, plugins_against
from webhook.placement.framework.filtering import pre_filter_rejection, run_filters, run_pre_filters
from webhook.placement.framework.interface import UncertainScorePlugin
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.framework.result import (
    NO_NODES,
    Placement,
    PlacementVerdict,
    Scores,
    ScoreTable,
    fit_error,
    with_templates,
)
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.pod_signature import ANSWER_CACHE_BYTES, PodSignature
from webhook.placement.profile import DEFAULT, Profile
from webhook.placement.suggest.changes import Situation
from webhook.placement.suggest.suggestions import Suggestion, suggest
from webhook.placement.templates import TemplateNode
from webhook.placement.unmodelled import UnsupportedFeatures

__all__ = ["Placement", "PodSignature", "Scheduler", "never"]


@dataclass(frozen=True, slots=True)
class _Filtered:
    """Which nodes passed every filter, and how many failed for which reason; `refusal`: why none was looked at."""

    feasible: Mask
    reasons: Mapping[str, int]
    refusal: str = ""


class Scheduler:
    """Runs the plugins of a profile. Equal pods are one question: the answers used last are kept, in `cache_bytes`.

    The answers hold for one snapshot; asked about another, all are forgotten. An instance is for one thread.
    `templates` are the nodes that an autoscaler can add; a pod that cannot be placed gets up to `suggestions`.
    """

    def __init__(
        self,
        profile: Profile = DEFAULT,
        *,
        cache_bytes: int = ANSWER_CACHE_BYTES,
        templates: Sequence[TemplateNode] = (),
        suggestions: int = 0,
    ) -> None:
        self._profile = profile
        self._uncertain = [each for each, _ in profile.scores if isinstance(each, UncertainScorePlugin)]
        self._templates = templates
        self._suggestions = suggestions
        self._answers: ByteCache[PodSignature, Placement] = ByteCache(cache_bytes)
        self._answers_for: Snapshot | None = None

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """The caches, to be measured."""
        return (self._answers,)

    def place(self, pod: Mapping[str, Any], snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Where kube-scheduler would put `pod`: the answer to `PodSignature.of(pod)`.

        Raises:
            InvalidInput: a field of the pod that is read is malformed; holds every error.
        """
        return self.answer(PodSignature.of(pod), snapshot, expired)

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Expired = never) -> Placement:
        """Where kube-scheduler would put a pod of which that is `asked`, on the nodes of `snapshot`.

        Every node is looked at, where kube-scheduler may stop early on a hundred or more. `expired` is asked before
        each plugin and, within one, before each of the pod's terms; once it holds, the verdict is Unknown.
        """
        if self._answers_for is not snapshot:
            self._answers.clear()
            self._answers_for = snapshot
        question = PodSignature(asked.info.normalized_for(snapshot), asked.unsupported)
        size_bytes = asked.size_bytes + len(snapshot.nodes)
        answer = self._answers.get(question)
        if answer is not None:
            return answer
        try:
            answer = self._answer(question.info, question.unsupported, snapshot, expired)
        except BudgetSpentError as error:
            answer = Placement.unknown(str(error))
        except DeadlineNearError as error:
            return Placement.unknown(str(error), is_final=False)
        if self._suggestions and answer.verdict in ("Waiting", "Infeasible"):
            try:
                found = self.suggest(question, snapshot, answer.verdict, self._suggestions, expired)
            except DeadlineNearError:
                return replace(answer, is_final=False)
            answer = replace(answer, suggestions=tuple(each.text for each in found))
        self._answers.put(question, answer, size_bytes + len(answer.message))
        return answer

    def explain(self, asked: PodSignature, snapshot: Snapshot) -> NodeToStatus:
        """For each node of `snapshot` that cannot take the pod now, why, in the words that the message counts."""
        return explain(self._profile, asked.info.normalized_for(snapshot), snapshot)

    def suggest(
        self, asked: PodSignature, snapshot: Snapshot, verdict: PlacementVerdict, most: int, expired: Expired = never
    ) -> tuple[Suggestion, ...]:
        """At most `most` changes that would make the pod fit, the best first; `verdict` is the answer without any."""

        def passes(situation: Situation) -> Mask:
            return self._filter(situation.pod, situation.nodes, expired).feasible

        situation = Situation(asked.info.normalized_for(snapshot), snapshot)
        return suggest(self._profile, situation, verdict, passes, most, expired)

    def _answer(
        self, info: PodInfo, unsupported: UnsupportedFeatures, snapshot: Snapshot, expired: Expired
    ) -> Placement:
        required, preferred = self._profile.unmodelled(info, *unsupported.on(snapshot, info, expired))
        for plugin in self._uncertain if info.by_container else ():
            certainty = plugin.certainty(info, snapshot, expired)
            required |= frozenset() if certainty.verdict else {plugin.name}
            preferred |= frozenset() if certainty.scores else {plugin.name}
        unmodelled = tuple(sorted(required | preferred))
        total = len(snapshot.nodes)
        for keeper in self._profile.pre_enqueues:
            if reason := keeper.pre_enqueue(info):
                return Placement("Waiting", None, total, 0, reason, unmodelled=unmodelled)
        if total == 0:
            return self._none_feasible(info, snapshot, NO_NODES, unmodelled, expired)
        filtered = self._filter(info, snapshot, expired)
        feasible = int(np.count_nonzero(filtered.feasible))
        if feasible == 0:
            message = fit_error(total, filtered.reasons, filtered.refusal)
            return self._none_feasible(info, snapshot, message, unmodelled, expired)
        message = f"{feasible}/{total} nodes are available."
        scores = Scores(snapshot, partial(self._score, info, snapshot, filtered.feasible, never))
        if required:
            message += f" Whether one of them will do depends on {', '.join(sorted(required))}, which is not modelled."
            return Placement("Unknown", None, total, feasible, message, scores, unmodelled)
        best_row = self._score(info, snapshot, filtered.feasible, expired).best_row()
        node = snapshot.nodes[best_row].node.name
        return Placement("Feasible", node, total, feasible, message, scores, unmodelled)

    def _none_feasible(
        self, info: PodInfo, snapshot: Snapshot, message: str, unmodelled: tuple[str, ...], expired: Expired
    ) -> Placement:
        """Waiting, where a node could take the pod were it empty, or a new one of a template could."""
        total = len(snapshot.nodes)
        if total and self._filter(info, snapshot.without_pods(), expired, ignore_transient=True).feasible.any():
            return Placement("Waiting", None, total, 0, message, unmodelled=unmodelled)
        uncertain = doubt(info, snapshot, partial(self._fitting_when_empty, snapshot.without_pods(), expired))
        if not self._templates:
            return Placement("Infeasible", None, total, 0, message, unmodelled=unmodelled, deny_exemption=uncertain)
        new_nodes = snapshot.with_other_nodes(template.info for template in self._templates)
        feasible = self._filter(info, new_nodes, expired, ignore_transient=True).feasible
        fitting = [each.name for each in self._templates if feasible[new_nodes.rows[each.info.node.name]]]
        if not fitting:
            return Placement("Infeasible", None, total, 0, message, unmodelled=unmodelled, deny_exemption=uncertain)
        return Placement("Waiting", None, total, 0, with_templates(message, fitting), unmodelled=unmodelled)

    def _fitting_when_empty(self, without_pods: Snapshot, expired: Expired, info: PodInfo) -> int:
        return int(np.count_nonzero(self._filter(info, without_pods, expired, ignore_transient=True).feasible))

    def _filter(
        self, info: PodInfo, snapshot: Snapshot, expired: Expired, *, ignore_transient: bool = False
    ) -> _Filtered:
        """The nodes that pass every filter; a node counts for the first filter that rejects it.

        `ignore_transient`: ignore transient rejections of pre-filters. The nominated node comes first: if it passes, no
        other node is evaluated; if not, the results of its filters stand even where a pre-filter leaves it out.

        Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, findNodesThatFitPod and evaluateNominatedNode
        """
        reasons: Counter[str] = Counter()
        feasible = np.ones(len(snapshot.nodes), dtype=np.bool_)
        chosen = run_pre_filters(self._profile.pre_filters, info, snapshot, ignore_transient=ignore_transient)
        if chosen.refusal:
            return _Filtered(np.zeros_like(feasible), {}, chosen.refusal)
        nominated = snapshot.rows.get(info.nomination.node_name) if info.nomination.node_name else None
        if chosen.node_names is not None:
            feasible = _named(chosen.node_names, snapshot)
            left_out, told_by = ~feasible, frozenset(chosen.plugins)
            if nominated is not None:
                left_out[nominated] = False
                told_by |= plugins_against(self._profile, info, snapshot, nominated, expired)
            reasons[pre_filter_rejection(told_by, leaves_none=False)] = int(np.count_nonzero(left_out))
        with_nominated = nodes_with_nominated_pods(info, snapshot, self._profile.scheduler_names, expired)
        run = partial(run_filters, self._profile.filters, info, snapshot, with_nominated, expired)
        if nominated is not None:
            own = _named(frozenset((info.nomination.node_name,)), snapshot)
            if (alone := run(own, reasons)).any():
                return _Filtered(alone, {})
            feasible = feasible & ~own
        feasible = run(feasible, reasons)
        return _Filtered(feasible, {reason: count for reason, count in reasons.items() if count})

    def _score(self, info: PodInfo, snapshot: Snapshot, feasible: Mask, expired: Expired) -> ScoreTable:
        """The scores of the feasible nodes; a single one is taken unscored."""
        rows = np.flatnonzero(feasible)
        totals = np.zeros(len(rows), dtype=np.int64)
        by_plugin = []
        for plugin, weight in in_time(self._profile.scores if len(rows) > 1 else (), expired):
            scores = None if plugin.skips(info) else plugin.score(info, snapshot, rows, expired)
            if scores is not None:
                weighted = scores if weight == 1 else scores * weight
                totals += weighted
                by_plugin.append((plugin.name, weighted))
        return ScoreTable(rows, totals, tuple(by_plugin))


def _named(names: frozenset[str], snapshot: Snapshot) -> Mask:
    named = np.zeros(len(snapshot.nodes), dtype=np.bool_)
    named[[snapshot.rows[name] for name in names if name in snapshot.rows]] = True
    return named
