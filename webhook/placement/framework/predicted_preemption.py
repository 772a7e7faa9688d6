"""The pods that kube-scheduler would evict for a pod."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.cluster.node_info import RunningPod


@dataclass(frozen=True, slots=True)
class PredictedPreemption:
    """The predicted result of kube-scheduler's preemption for a pod that no node can take.

    `nodes` are the nodes of which kube-scheduler chooses one, or none if it evicts no pod. It evicts `least` to `most`
    of `victims` there, which are sorted with the most important first, and violates the PodDisruptionBudgets `violates`
    (`namespace/name`). `is_exact` is true if node and victims are certain. `why` is the reason why something is not
    certain or not known. `message` is the part of the FailedScheduling event after its first full stop, or empty if it
    is not certain. `candidates` is the number of nodes on which an eviction makes room. If kube-scheduler only
    evaluates a random part of them, `nodes` has no names, and there are at least so many candidates.
    """

    nodes: tuple[str, ...] = ()
    victims: tuple[RunningPod, ...] = ()
    least: int = 0
    most: int = 0
    violates: tuple[str, ...] = ()
    is_exact: bool = True
    why: str = ""
    message: str = ""
    candidates: int = 0
    chosen: tuple[RunningPod, ...] = ()
    """The victims of one possible choice, on the first of `nodes`."""

    @property
    def evicts(self) -> bool:
        """Return whether pods are evicted."""
        return self.candidates > 0

    def to_json(self) -> dict[str, Any]:
        """Return the value of `preemption` in `check -o json`."""
        where = {"node": self.nodes[0]} if len(self.nodes) == 1 else {"oneOf": list(self.nodes)} if self.nodes else {}
        why = self.why
        if self.evicts and not self.nodes:
            victims = "victim" if self.most == 1 else "victims"
            why = f"{self.count} {victims} on one of at least {self.candidates} nodes; {why}"
        return {
            **where,
            "victims": list(self.names()),
            "violates": list(self.violates),
            "isExact": self.is_exact,
            **({"why": why} if why else {}),
        }

    @property
    def count(self) -> str:
        """Return the number of evicted pods as text: `2`, or `1 to 3`."""
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"

    def names(self) -> Iterator[str]:
        """Yield the namespaces and names of the victims."""
        return (f"{each.namespace}/{each.name}" for each in self.victims)
