"""The result of the placement check."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.placement.framework.interface import ScoreColumn
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.together import Together
from webhook.placement.pod.pod_info import PodInfo

PlacementVerdict = Literal["Feasible", "Waiting", "Infeasible", "Unknown"]

# Sums of fractions differ by less than this where they are equal.
TIE = 1e-6
NO_NODES = "no nodes available to schedule pods"
# The API server's words in the PodScheduled condition of a gated pod, which kube-scheduler ignores.
# Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition
GATED = "Scheduling is blocked due to non-empty scheduling gates"
# Kueue does so before any scheduler looks for a node.
QUEUED = "Not predicted: when Kueue admits the pod, by quota."


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """The weighted scores of the feasible nodes. The n-th score of a plugin belongs to the node in `rows[n]`."""

    rows: Rows
    totals: ScoreColumn
    by_plugin: tuple[tuple[str, ScoreColumn], ...]

    def best_rows(self) -> Rows:
        """Return the rows with the highest total, in the order of node names. kube-scheduler picks one at random.

        Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, selectHost
        """
        best: Rows = self.rows[self.totals >= self.totals.max() - TIE]
        return best


class Scores(Mapping[str, Mapping[str, float]]):
    """The weighted scores of the feasible nodes, by node and plugin, with their `total`.

    The table is computed on first use, because admission only needs the best node and caches many placements.
    """

    __slots__ = ("_evaluate", "_nodes", "_table")

    def __init__(self, nodes: Snapshot, evaluate: Callable[[], ScoreTable]) -> None:
        self._nodes = nodes
        self._evaluate = evaluate
        self._table: ScoreTable | None = None

    def _scores(self) -> ScoreTable:
        if self._table is None:
            self._table = self._evaluate()
        return self._table

    def __getitem__(self, name: str) -> Mapping[str, float]:
        table, row = self._scores(), self._nodes.rows[name]
        position = int(table.rows.searchsorted(row))
        if position == len(table.rows) or table.rows[position] != row:
            raise KeyError(name)
        return {"total": _number(table.totals[position])} | {
            plugin: _number(column[position]) for plugin, column in table.by_plugin
        }

    def __iter__(self) -> Iterator[str]:
        return (self._nodes.nodes[row].node.name for row in self._scores().rows)

    def __len__(self) -> int:
        return len(self._scores().rows)

    def __repr__(self) -> str:
        return f"Scores({dict(self)!r})"


def _number(score: Any) -> float:
    """Return a score as an integer if it is whole, like those of kube-scheduler, or else with two decimals."""
    return int(score) if score == int(score) else round(float(score), 2)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A suggestion with the text `text`, in a form that can be tried on other pods.

    `node` is a node that fits after the change; if the suggestion changes a node, it is this node. `keys` are the keys
    of taints to tolerate and of labels to stop requiring, or None if anything else changes. `change` applies the
    changes to a pod and a snapshot; a snapshot that does not change is returned as the same object.
    """

    text: str
    node: str
    keys: frozenset[str] | None
    change: Callable[[PodInfo, Snapshot], tuple[PodInfo, Snapshot]] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GangFit:
    """The number of pods, `fit`, of a gang of `size` that fit together now. `placed` of them already have a node.

    If `is_complete` is false, the count ended early, and `fit` is a lower bound. `most` is an upper bound of the pods
    that an empty cluster can hold, or None if it can hold all. `least` is the number of pods that must fit before the
    scheduler binds any; `own` is the placement of the pod itself in this case, or that of the first pod of an object in
    the domain of its gang. `ends_after` is the time after which Kueue evicts a gang that has started only in part, or
    "". The other fields are for a gang that does not fit: `next_message` is about the first pod without a node, `block`
    about the largest free block of cards, and `waiting_before` is the number of pods that wait before the gang, or 0 if
    it would not fit without them. `together` are the domains of a gang that runs in one, such as a rack, or None if
    they are not counted; `doubt` is then the reason. `never` is the reason why no domain could hold the pods of an
    object whose domains are not counted, or "".
    """

    name: str
    size: int
    fit: int
    placed: int
    is_complete: bool = True
    most: int | None = None
    block: str = ""
    next_message: str = ""
    waiting_before: int = 0
    least: int = field(default=1, compare=False)
    ends_after: str = field(default="", compare=False)
    own: "Placement | None" = field(default=None, compare=False, repr=False)
    together: Together | None = None
    doubt: str = field(default="", compare=False)
    never: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """Return the count as text: `5 of 8 pods of gang train fit now`."""
        if self.never:
            return self.never
        parts = self._domain_texts() or [self._count_text()]
        if self.most is not None and not self._lacks_domain:
            parts.append(f"no more than {self.most} would fit on an empty cluster")
        if self.waiting_before:
            pods = "pod that waits" if self.waiting_before == 1 else "pods that wait"
            parts.append(f"all would fit without the {self.waiting_before} {pods} before them")
        return "; ".join([*parts, self.block] if self.block else parts)

    @property
    def unknown_text(self) -> str:
        """Return the reason why it is not known whether all pods fit."""
        if self.together is not None and self.together.first:
            return self.together.shortage_text(self._gang)
        return f"{self.text}; whether the others fit is not known"

    @property
    def _lacks_domain(self) -> bool:
        return bool(self.together and self.together.within.is_required and self.is_complete and self.fit < self.size)

    def _count_text(self) -> str:
        least = "" if self.is_complete else "at least "
        return f"{least}{self.fit} of {self.size} pods of {self._gang} {'fits' if self.fit == 1 else 'fit'} now"

    def _domain_texts(self) -> list[str]:
        """Return the texts about the domains, with the count if it says more, or none without domains."""
        if self.together is None:
            return []
        if self._lacks_domain:
            if self.most is not None and self.together.domains:
                return [self.together.never_text()]
            return [self.together.shortage_text(self._gang)]
        room = self.together.room_text()
        return [self._count_text(), room] if room else []

    @property
    def _gang(self) -> str:
        return f"gang {self.name}" if self.name else "the gang"

    @property
    def warning(self) -> str:
        """Return the warning. The count comes before the message, because clients truncate warnings."""
        return f"{self.text}; the {'next' if self.fit else 'first'}: {self.next_message}"

    @property
    def starts_in_part(self) -> bool:
        """Return whether some pods of the gang hold nodes, now or after this admission, while the others wait."""
        return self.own is not None and self.is_complete and 0 < self.fit < self.size

    def to_json(self) -> dict[str, Any]:
        """Return the value of `gang` in `check -o json` and in the audit record."""
        return {"name": self.name, "size": self.size, "fit": self.fit, "isComplete": self.is_complete}


@dataclass(slots=True)  # not frozen: an admission that takes room creates two, and a frozen one costs more
class Placement:
    """The verdict on a pod, and its best node.

    `node` is the best node if the verdict is Feasible. `feasible` of `total` nodes pass every filter. `message` equals
    kube-scheduler's message up to its first full stop. `scores` has an entry for each feasible node; a single node is
    not scored. `unmodelled` are the plugins that are relevant to the pod but were not evaluated. `suggestions` are
    changes that make the pod fit, the best first; `remedies` are those suggestions that can be tried on other pods.
    `deny_exemption` is the reason not to deny an Infeasible pod, or empty if it may be denied. `waiting_before` is the
    number of pods that wait before this one and whose room it cannot use. `gang` is set if the pod belongs to a gang;
    the verdict is then the verdict on the gang. `overdue` are warnings about pods that should have ended.
    """

    verdict: PlacementVerdict
    node: str | None
    total: int
    feasible: int
    message: str
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unmodelled: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    deny_exemption: str = ""
    waiting_before: int = 0
    gang: GangFit | None = None
    reserved_pods: int = field(default=0, compare=False)
    """The number of pods that wait before it and have room reserved."""
    best_rows: Rows | None = field(default=None, compare=False, repr=False)
    """The rows of the nodes with the best score, if the verdict is Feasible; `node` is the first of them."""
    feasible_mask: Mask | None = field(default=None, compare=False, repr=False)
    """The nodes that pass every filter, if the verdict is Feasible."""
    possible_nodes: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """More nodes that can have the best score: kube-scheduler picks one of equal score for the pods before it."""
    preemption: PredictedPreemption | None = None
    """The evictions by kube-scheduler for the pod, if no node can take it and they were evaluated."""
    overdue: tuple[str, ...] = ()
    is_final: bool = field(default=True, compare=False)
    """False if the deadline ended the evaluation, so that another one on the same snapshot may differ."""

    @classmethod
    def unknown(cls, message: str, *, is_final: bool = True) -> "Placement":
        """Return the placement of a pod that was not or not completely evaluated. `message` is the reason."""
        return cls("Unknown", None, 0, 0, message, is_final=is_final)

    def on(self, node: str | None, reserved_pods: int = 0, possible_nodes: frozenset[str] = frozenset()) -> "Placement":
        """Return the placement with another best node, `node`, and with `reserved_pods` pods that wait before it."""
        return Placement(
            self.verdict,
            node,
            self.total,
            self.feasible,
            self.message,
            self.scores,
            self.unmodelled,
            self.suggestions,
            self.remedies,
            self.deny_exemption,
            self.waiting_before,
            self.gang,
            reserved_pods,
            self.best_rows,
            self.feasible_mask,
            possible_nodes,
            self.preemption,
            is_final=self.is_final,
        )

    @property
    def waits_for(self) -> Literal["", "room", "preemption"]:
        """Return what a Waiting pod waits for: `preemption` if kube-scheduler evicts pods for it, or else `room`."""
        if self.verdict != "Waiting":
            return ""
        # Other pods of a gang wait with the pod for which others are evicted.
        is_alone = self.gang is None
        return "preemption" if is_alone and self.preemption is not None and self.preemption.evicts else "room"

    @property
    def full_message(self) -> str:
        """Return the message, including the part that kube-scheduler's preemption adds after the first sentence."""
        if self.preemption is None or not self.preemption.message:
            return self.message
        first, _, rest = self.message.partition(". ")
        if not rest:
            return f"{self.message} {self.preemption.message}"
        return f"{first}. {self.preemption.message.removesuffix('.')}. {rest}"

    @property
    def binding(self) -> "Placement":
        """Return the placement that binds the pod: `gang.own` if the scheduler starts the pods that fit."""
        return self.gang.own if self.gang is not None and self.gang.own is not None else self


def to_check_json(pod_name: str, placement: Placement) -> dict[str, Any]:
    """Return the output of `check -o json` for the pod `pod_name` (`namespace/name`)."""
    line: dict[str, Any] = {
        "pod": pod_name,
        "verdict": placement.verdict,
        "node": placement.node,
        "nodes": {"total": placement.total, "feasible": placement.feasible},
        "message": placement.full_message,
        "scores": {node: dict(scores) for node, scores in placement.scores.items()},
        "suggestions": list(placement.suggestions),
        "unmodelled": list(placement.unmodelled),
        **({"notSure": placement.deny_exemption} if placement.deny_exemption else {}),
    }
    if placement.preemption is not None and placement.waits_for == "preemption":
        line["preemption"] = placement.preemption.to_json()
    if placement.gang is not None:
        line["gang"] = placement.gang.to_json()
        if placement.gang.together is not None:
            line["domains"] = placement.gang.together.to_json()
    return line
