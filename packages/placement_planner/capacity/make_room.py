"""Find the fewest pods to move so that a pending pod fits. The filters prove every move."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from placement_planner.capacity.drain import stays
from placement_planner.capacity.moves import Placer, PodToPlace, Progress, replacement_of, silent, without_pods
from placement_planner.capacity.proof import Plan, prove
from placement_planner.capacity.subsets import Candidate, fewest, sets_of, shortage
from webhook.cluster.eviction_refusal import budgets_of, eviction_refusal
from webhook.cluster.index.labels import Mask
from webhook.cluster.objects.disruption_budget import Budgets
from webhook.cluster.pods.bound_pods import BoundPod, BoundPods
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.replicas.replicas import needs_devices

# A trial runs the filters a few times, which takes milliseconds on thousands of nodes; a step takes a microsecond.
MOST_TRIALS = 2_000
MOST_STEPS = 500_000
MOST_MOVES = 10

Verdict = Literal["Fits", "Moves", "None", "Unknown"]


@dataclass(frozen=True, slots=True)
class Tried:
    """The extent of a search: the nodes on which moves could make room, and the sets of pods that were tried.

    `moves` is the size of the largest sets. `is_complete` is true if no set of at most MOST_MOVES pods was left out.
    `unmovable` counts the pods of all nodes that are not moved, by reason.
    """

    nodes: int
    sets: int
    moves: int
    is_complete: bool
    unmovable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Room:
    """The way to make room for a pod.

    The results are: Fits: the pod has room on `node` now. Moves: `plan` makes room. None: no plan was found. Unknown:
    the pod was not evaluated, and `message` is the reason. For a pod that does not fit, `message` is kube-scheduler's.
    """

    verdict: Verdict
    message: str = ""
    node: str | None = None
    plan: Plan | None = None
    tried: Tried | None = None
    preemption: PredictedPreemption | None = None
    """The evictions by kube-scheduler itself for a pod that does not fit."""


class _Site(NamedTuple):
    """A node on which moves can make room: its movable pods, the missing amounts and the minimum number of moves."""

    node: str
    pods: Sequence[BoundPod]
    missing: Mapping[str, int]
    least: int


def make_room(
    snapshot: Snapshot,
    bound: BoundPods,
    budgets: Budgets | None,
    pod: Mapping[str, Any],
    placer: Placer,
    progress: Progress = silent,
) -> Room:
    """Return the fewest moves of running pods after which `pod` fits. `budgets` are None if not known.

    All moved pods leave the same node, and each fits on another node. Pods of Jobs, which lose their work, are only
    moved if no solution without them exists. Of several solutions of the same size, those without emptyDir volumes and
    with low priorities come first. The search ends after MOST_TRIALS sets of pods. `progress` gets the size of the sets
    and the number of sets tried.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    pending = PodToPlace.of(pod)
    placement = pending.answer(placer, snapshot)
    if placement.verdict == "Feasible":
        return Room("Fits", placement.message, placement.node)
    if placement.verdict == "Unknown" or pending.signature.info.gates:
        return Room("Unknown", placement.message)
    search = _Search(snapshot, bound, budgets or {}, pending, placer, progress)
    plan = search.plan(with_jobs=False) or search.plan(with_jobs=True)
    preemption = pending.preemption(placer, snapshot)
    return Room("Moves" if plan else "None", placement.message, None, plan, search.tried(), preemption)


class _Search:
    """One search, with the count of its trials."""

    def __init__(
        self,
        snapshot: Snapshot,
        bound: BoundPods,
        budgets: Budgets,
        pending: PodToPlace,
        placer: Placer,
        progress: Progress,
    ) -> None:
        self._snapshot, self._pending, self._placer = snapshot, pending, placer
        self._budgets, self._progress = budgets, progress
        self._trials, self._steps, self._sets, self._moves = 0, 0, 0, 0
        self._is_complete = True
        self._unmovable: Counter[str] = Counter()
        self._kinds: dict[Any, int] = {}
        self._movable = {info.node.name: self._movable_on(info.node.name, bound) for info in snapshot.nodes}
        self._sites: Sequence[_Site] = ()
        self._candidates: dict[tuple[str, str], Candidate | None] = {}

    def tried(self) -> Tried:
        return Tried(len(self._sites), self._sets, self._moves, self._is_complete, dict(self._unmovable))

    def plan(self, *, with_jobs: bool) -> Plan | None:
        """Return the first plan with the fewest moves.

        `with_jobs` selects plans that move at least one pod of a Job, or none.
        """
        self._trials, self._steps = 0, 0
        self._sites = sorted(self._freeable(with_jobs), key=lambda site: (site.least, len(site.pods), site.node))
        most = max((len(site.pods) for site in self._sites), default=0)
        for size in range(1, min(most, MOST_MOVES) + 1):
            for site in self._sites:
                if site.least <= size and (plan := self._plan_on(site, size, with_jobs)):
                    return plan
        return None

    def _plan_on(self, site: _Site, size: int, with_jobs: bool) -> Plan | None:
        self._moves = max(self._moves, size)
        candidates = [found for pod in site.pods if (found := self._candidate(pod))]
        for chosen in sets_of(candidates, site.missing, size, self._step):
            moved = [each.move for each in chosen]
            pods = [pod for pod, _ in moved]
            if with_jobs != any(map(_is_of_job, pods)) or eviction_refusal(pods, self._budgets):
                continue
            self._trials += 1
            self._sets += 1
            self._progress(size, self._sets)
            if plan := prove(self._snapshot, site.node, moved, self._pending, self._placer):
                return plan
        return None

    def _step(self) -> bool:
        """Return true if the search may go on."""
        self._steps += 1
        goes_on = self._steps <= MOST_STEPS and self._trials < MOST_TRIALS
        self._is_complete &= goes_on
        return goes_on

    def _freeable(self, with_jobs: bool) -> Iterator[_Site]:
        """Yield the nodes that have room for the pod after enough of their movable pods are gone."""
        passing = self._passing_if_emptied()
        for row, info in enumerate(self._snapshot.nodes):
            if not passing[row] or info.node.unschedulable:
                continue
            pods = [each for each in self._movable[info.node.name] if with_jobs or not _is_of_job(each)]
            missing = {
                resource: amount
                for resource, amount in shortage(self._pending.signature.info, info).items()
                if not self._snapshot.devices.back_any(((resource, amount),))
            }
            keys = {pod.key for pod in pods}
            amounts = [pod.requests for pod in info.pods if (pod.namespace, pod.name) in keys]
            least = fewest(amounts, missing)
            if least is not None:
                yield _Site(info.node.name, pods, missing, least)

    def _passing_if_emptied(self) -> Mask:
        """Return the nodes that may pass without their movable pods, or all nodes if pods on other nodes matter."""
        snapshot = self._snapshot
        if self._pending.reads_other_nodes(self._placer, snapshot):
            return np.ones(len(snapshot.nodes), dtype=np.bool_)
        movable = {node: {pod.key for pod in pods} for node, pods in self._movable.items() if pods}
        return self._pending.feasible(self._placer, without_pods(snapshot, movable))

    def _movable_on(self, node: str, bound: BoundPods) -> list[BoundPod]:
        """Return the movable pods of `node` in the order of preference, and count the other pods by reason."""
        movable = []
        for pod in bound.get(node, ()):
            if reason := self._immovable(pod):
                self._unmovable[reason] += 1
            else:
                movable.append(pod)
        return sorted(movable, key=lambda pod: (_is_of_job(pod), pod.has_empty_dir, pod.priority, pod.full_name))

    def _immovable(self, pod: BoundPod) -> str:
        if stays(pod):
            return "managed by a kubelet (mirror pods)" if pod.is_mirror else "of a DaemonSet"
        if pod.is_terminating:
            return "already being deleted"
        if pod.controller is None:
            return "without a controller, so no pod would replace it"
        if eviction_refusal((pod,), self._budgets):
            return "protected by a PodDisruptionBudget"
        return ""

    def _candidate(self, pod: BoundPod) -> Candidate | None:
        """Return `pod` as a candidate, or None if it has devices of ResourceClaims, which a snapshot cannot free."""
        if pod.key not in self._candidates:
            self._candidates[pod.key] = self._new_candidate(pod)
        return self._candidates[pod.key]

    def _new_candidate(self, pod: BoundPod) -> Candidate | None:
        replacement = replacement_of(pod)
        if needs_devices(replacement.signature, self._snapshot):
            self._unmovable["with devices of ResourceClaims, which are not modelled"] += 1
            return None
        # Pods are interchangeable if the scheduler, their controller and their budgets cannot distinguish them.
        signature = replacement.signature.info.normalized_for(self._snapshot)
        budgets = tuple(sorted(each.full_name for each in budgets_of(pod, self._budgets)))
        traits = (signature, pod.controller, pod.namespace, pod.priority, pod.is_ready, budgets)
        kind = self._kinds.setdefault(traits, len(self._kinds))
        return Candidate((pod, replacement), replacement.running.requests, kind)


def _is_of_job(pod: BoundPod) -> bool:
    return bool(pod.controller and pod.controller.is_job)
