"""Place the pods of drained nodes on the other nodes, as their controllers and kube-scheduler do after a drain."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from placement_planner.capacity.moves import (
    Placer,
    Progress,
    cordoned,
    replacement_of,
    silent,
    with_pod,
    without_pods,
)
from webhook.cluster.eviction_refusal import budgets_of, eviction_refusal
from webhook.cluster.objects.disruption_budget import Budgets, DisruptionBudget
from webhook.cluster.pods.bound_pods import BoundPod, BoundPods
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.reasons.evictions import eviction_text, violations
from webhook.placement.replicas.replicas import needs_devices

Outcome = Literal["Fits", "Returns", "Waiting", "Unknown", "Lost"]

_DEVICES = "its devices are allocated by ResourceClaims, which a drain frees; this is not modelled"
_PREEMPTS = "{} Waiting; {}."
_SPENT = "the PodDisruptionBudget {} allows {} of these evictions: the new pods find no node, so it allows no other"
_RETURNS = "tolerates the taint of a cordoned node and is placed on one again"


@dataclass(frozen=True, slots=True)
class DrainedPod:
    """A pod that leaves its node, and the result for its replacement.

    The results are: Fits: `node` takes it. Returns: `node`, a drained node, takes it again, because it tolerates the
    cordon. Waiting: no node takes it now; `message` is kube-scheduler's, which may evict others for it (`preemption`).
    Lost: it has no controller, so no pod replaces it. `refusal` is the reason why PodDisruptionBudgets do not allow its
    eviction. If `is_refused_later` is true, this is only so after the evictions of other pods.
    """

    pod: BoundPod
    outcome: Outcome
    node: str | None = None
    message: str = ""
    refusal: str = ""
    preemption: PredictedPreemption | None = None
    is_refused_later: bool = False


@dataclass(frozen=True, slots=True)
class Drain:
    """The drained `nodes`, and their pods: those that leave, in the order of their placement, and those that stay.

    `staying` are the pods of DaemonSets and mirror pods; `ending` are already being deleted. `knows_budgets` is true if
    the PodDisruptionBudgets are known. `snapshot` is the cluster after the drain.
    """

    nodes: tuple[str, ...]
    pods: tuple[DrainedPod, ...]
    staying: tuple[BoundPod, ...]
    ending: tuple[BoundPod, ...]
    knows_budgets: bool
    snapshot: Snapshot = field(compare=False, repr=False)

    @property
    def replaced(self) -> int:
        """Return the number of pods that controllers replace."""
        return sum(each.outcome != "Lost" for each in self.pods)

    @property
    def fitting(self) -> int:
        """Return the number of replaced pods that fit on other nodes."""
        return sum(each.outcome == "Fits" for each in self.pods)

    @property
    def text(self) -> str:
        """Return the counts as text: `17 of 19 pods fit elsewhere`."""
        noun = "pod" if self.replaced == 1 else "pods"
        verb = "fits" if 1 in (self.replaced, self.fitting) else "fit"
        return f"{self.fitting} of {self.replaced} {noun} {verb} elsewhere"


def drain(
    snapshot: Snapshot,
    bound: BoundPods,
    budgets: Budgets | None,
    nodes: Sequence[str],
    placer: Placer,
    progress: Progress = silent,
) -> Drain:
    """Return the moves of the pods of `nodes` if these are drained together. `budgets` are None if not known.

    All pods leave first. Then the replacements are placed one after the other in the order of kube-scheduler's queue:
    by priority, then by the creation time of the old pod. A drained node is cordoned but still exists: it counts for
    topology spread, and takes a pod that tolerates the cordon. `progress` gets the number of placed pods and the total.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.

    Source: k8s.io/kubectl/pkg/drain/filters.go; k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort
    """
    found = [pod for node in nodes for pod in bound.get(node, ())]
    staying = tuple(pod for pod in found if stays(pod))
    ending = tuple(pod for pod in found if pod.is_terminating and not stays(pod))
    leaving = [pod for pod in found if not stays(pod) and not pod.is_terminating]
    leaving.sort(key=lambda pod: (-pod.priority, pod.created, *pod.key))
    gone = {pod.key for pod in (*leaving, *ending)}
    after = without_pods(cordoned(snapshot, nodes), dict.fromkeys(nodes, gone))
    pods = []
    for number, pod in enumerate(leaving, start=1):
        drained, after = _placed(pod, after, frozenset(nodes), placer, eviction_refusal((pod,), budgets or {}))
        pods.append(drained)
        progress(number, len(leaving))
    return Drain(tuple(nodes), _with_spent(pods, budgets or {}), staying, ending, budgets is not None, after)


def stays(pod: BoundPod) -> bool:
    """Return true for a pod that a drain leaves on its node: a pod of a DaemonSet, or a mirror pod."""
    return pod.is_mirror or bool(pod.controller and pod.controller.is_daemon_set)


def _with_spent(pods: Sequence[DrainedPod], budgets: Budgets) -> tuple[DrainedPod, ...]:
    """Return `pods` with permanent refusals: a budget is used up by pods whose replacements find no node."""
    spent: Counter[DisruptionBudget] = Counter()
    found = []
    for drained in pods:
        each = drained
        asked = [] if each.refusal or each.outcome in ("Fits", "Returns") else budgets_of(each.pod, budgets)
        counting = [budget for budget in asked if budget.counts(is_ready=each.pod.is_ready)]
        spent.update(counting)
        over = next((budget for budget in counting if spent[budget] > budget.allowed), None)
        if over is not None:
            each = replace(each, refusal=_SPENT.format(over.full_name, over.allowed), is_refused_later=True)
        found.append(each)
    return tuple(found)


def _placed(
    pod: BoundPod, snapshot: Snapshot, drained: Collection[str], placer: Placer, refusal: str
) -> tuple[DrainedPod, Snapshot]:
    """Return the move of `pod`, and `snapshot` with the pod that replaces it."""
    if pod.controller is None:
        return DrainedPod(pod, "Lost", refusal=refusal), snapshot
    replacement = replacement_of(pod)
    if needs_devices(replacement.signature, snapshot):
        return DrainedPod(pod, "Unknown", message=_DEVICES, refusal=refusal), snapshot
    placement = replacement.answer(placer, snapshot)
    if placement.node is None:
        outcome: Outcome = "Unknown" if placement.verdict == "Unknown" else "Waiting"
        preemption = replacement.preemption(placer, snapshot) if outcome == "Waiting" else None
        if preemption is None or not preemption.evicts:
            return DrainedPod(pod, outcome, message=placement.message, refusal=refusal), snapshot
        message = _PREEMPTS.format(placement.message, "; ".join([eviction_text(preemption), *violations(preemption)]))
        return DrainedPod(pod, outcome, message=message, refusal=refusal, preemption=preemption), snapshot
    after = with_pod(snapshot, replacement, placement.node)
    if placement.node in drained:
        return DrainedPod(pod, "Returns", placement.node, _RETURNS, refusal), after
    return DrainedPod(pod, "Fits", placement.node, refusal=refusal), after
