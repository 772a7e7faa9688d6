"""Count the further pods that fit: each template by itself, or several in proportion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement_planner.capacity.moves import silent
from placement_planner.capacity.simulation import FurtherPods, OnPlaced, RandomRun, Simulation, random_run, simulate
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import BudgetSpentError
from webhook.placement.framework.result import Placement
from webhook.placement.replicas.independent_nodes import MOST_ON_A_NODE, are_nodes_independent, fill

# The random runs of one count, and those after which equal results end them.
_MOST_RUNS = 200
_RUNS_IF_EQUAL = 100
# The most work of the random runs: placements of a pod on 1,000 nodes, about half a millisecond each.
_MOST_RANDOM_PLACEMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and the highest number of pods that fit in `runs`, which differ in kube-scheduler's random choices.

    If there is only one run, choices do not matter, and the number is exact.
    """

    lowest: int
    highest: int
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Count:
    """The number of further pods of one template that fit, placed one after the other. `nodes` counts them by node.

    `stopped` is the placement of the next pod, which does not fit, or None if all requested pods fit. With several
    templates, it is that of template `stopped_at`. `ended_early` is the reason why `fits` is only a lower bound, or
    empty if no more fit. `range` is None if the number may depend on random choices that were not simulated.
    """

    fits: int
    nodes: Mapping[str, int]
    stopped: Placement | None
    range: Range | None
    ended_early: str = ""
    stopped_at: int = 0

    @classmethod
    def unknown(cls, reason: str) -> "Count":
        """Return a count whose value is unknown for this reason."""
        return cls(0, {}, None, None, reason)

    @property
    def is_complete(self) -> bool:
        """Return whether no more than `fits` pods fit, or all requested pods fit."""
        return not self.ended_early


def count_each(pods: FurtherPods, snapshot: Snapshot, until: int | None = None, on_placed: OnPlaced = silent) -> Count:
    """Return the number of `pods` that fit on `snapshot`, up to `until`. None means no limit.

    `on_placed` gets the number of placed pods, after each.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    if pods.share > 1:
        # A turn is one pod, so that `until` is a number of pods.
        pods = replace(pods, share=1)
    signature, running = pods.read(0)
    scheduler = pods.scheduler
    first = scheduler.answer(signature, snapshot)
    if first.verdict != "Feasible":
        return Count.unknown(first.message) if first.verdict == "Unknown" else Count(0, {}, first, Range(0, 0))
    if are_nodes_independent(scheduler, signature, snapshot):
        filled = fill(scheduler, signature, running, snapshot)
        total = int(filled.copies.sum())
        if until is None or total <= until:
            nodes = {
                snapshot.nodes[row].node.name: int(filled.copies[row]) for row in filled.copies.nonzero()[0].tolist()
            }
            if not filled.is_complete:
                return Count(total, nodes, None, None, f"no more than {MOST_ON_A_NODE} pods are counted on a node")
            stopped = None if total == until else scheduler.answer(signature, filled.snapshot)
            return Count(total, nodes, stopped, Range(total, total))
        found = simulate((pods,), snapshot, until, on_placed)
        return _counts(found, [None if found.ended_early else Range(until, until)])[0]
    return count_together((pods,), snapshot, until, on_placed)[0]


def count_together(
    pods: Sequence[FurtherPods], snapshot: Snapshot, until: int | None = None, on_placed: OnPlaced = silent
) -> tuple[Count, ...]:
    """Return the number of pods of each template that fit on `snapshot` together, in turns of `share` pods of each.

    The count ends with the first pod that does not fit, or after `until` turns.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    found = simulate(pods, snapshot, until, on_placed)
    runs = _random_runs(pods, snapshot, until, found) if not found.ended_early else []
    placed = [*zip(*(run.placed for run in runs), strict=True)]
    ranges = [
        Range(min(fits, *numbers), max(fits, *numbers), 1 if runs[-1].is_forced else 1 + len(runs))
        for fits, numbers in zip(found.placed, placed, strict=False)
    ]
    return _counts(found, ranges or [None] * len(pods))


def _random_runs(
    pods: Sequence[FurtherPods], snapshot: Snapshot, until: int | None, found: Simulation
) -> list[RandomRun]:
    """Return random runs that repeat `found`: one if choices do not matter, none if even one is too much work."""
    work = max(1, sum(found.placed)) * (1 + len(snapshot.nodes) / 1000)
    most = min(_MOST_RUNS, int(_MOST_RANDOM_PLACEMENTS / work))
    runs: list[RandomRun] = []
    for seed in range(most):
        try:
            runs.append(random_run(pods, snapshot, until, seed))
        except BudgetSpentError:
            return []
        are_equal = all(run.placed == found.placed for run in runs)
        if runs[0].is_forced or (are_equal and len(runs) >= _RUNS_IF_EQUAL):
            break
    return runs


def _counts(found: Simulation, ranges: Sequence[Range | None]) -> tuple[Count, ...]:
    return tuple(
        Count(fits, nodes, found.stopped, of_pods, found.ended_early, found.stopped_at or 0)
        for fits, nodes, of_pods in zip(found.placed, found.nodes, ranges, strict=True)
    )
