"""Compares predictions for pods with the nodes that the pods are bound to.

A pod at admission has no uid, and mostly no name either: the API server makes one of `generateName` afterwards. So a
bound pod is matched by what both sides know: its namespace, its name or else its generateName and controller, and that
it was created about when it was admitted. Pods of one controller, admitted within seconds of each other, are taken in
their order; they are made from one template, so mixing two of them up changes little.

What cannot be compared is left out: pods admitted by another replica or too long ago to be remembered, pods that were
predicted to wait, and nodes that were not in the view then. Changes of the cluster in between are not considered: a pod
may be bound elsewhere for that reason alone.
"""

from collections import Counter, OrderedDict
from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from webhook.kube.documents import field
from webhook.placement.scheduler import Placement

PredictionResult = Literal["same_node", "in_best_set", "feasible_elsewhere", "foretold_infeasible_but_bound"]
# A creationTimestamp has whole seconds, and two machines' clocks differ a little.
_CLOSE_SECONDS = 5.0


class _Identity(NamedTuple):
    namespace: str
    name: str
    controller: str


class _Prediction(NamedTuple):
    identity: _Identity
    at_seconds: float
    placement: Placement
    known_nodes: Container[str]


class Predictions:
    """The predictions for the last `size` pods, Feasible or Infeasible. An instance is for one thread.

    A placement holds on to the snapshot that it is about, so at most `placements` different ones are kept: equal pods
    that come at once have one.
    """

    def __init__(self, size: int = 256, placements: int = 16) -> None:
        self._size = size
        self._most_placements = placements
        self._pods_by_placement: Counter[int] = Counter()
        self._next = 0
        self._predicted: OrderedDict[int, _Prediction] = OrderedDict()
        self._numbers: dict[_Identity, list[int]] = {}

    def __len__(self) -> int:
        return len(self._predicted)

    def remember(
        self,
        namespace: str,
        pod: Mapping[str, Any],
        placement: Placement,
        known_nodes: Container[str],
        at_seconds: float,
        *,
        again: bool,
    ) -> None:
        """Keep the prediction for `pod`, as it was admitted in `namespace` at that time (of the wall clock).

        `known_nodes` are the names of all nodes that were there. `again`: the pod has been admitted just before, and
        the API server asks once more because something changed it.
        """
        identity = _identity(namespace, pod)
        if again and (numbers := self._numbers.get(identity)):
            self._forget(numbers[-1])
        if placement.verdict not in ("Feasible", "Infeasible"):
            return
        self._pods_by_placement[id(placement)] += 1
        while len(self._predicted) >= self._size or len(self._pods_by_placement) > self._most_placements:
            self._forget(next(iter(self._predicted)))
        self._predicted[self._next] = _Prediction(identity, at_seconds, placement, known_nodes)
        self._numbers.setdefault(identity, []).append(self._next)
        self._next += 1

    def compare(self, pod: Mapping[str, Any]) -> PredictionResult | None:
        """Return how the prediction for `pod`, which is bound now, compares with its node; None where it cannot."""
        created_seconds = _created_seconds(pod)
        identity = _identity(str(field(pod, "metadata", "namespace")), pod)
        generated = _Identity(
            identity.namespace, str(field(pod, "metadata", "generateName") or ""), identity.controller
        )
        for each in (identity, generated):
            for number in self._numbers.get(each, ()):
                prediction = self._predicted[number]
                if created_seconds is not None and abs(created_seconds - prediction.at_seconds) <= _CLOSE_SECONDS:
                    self._forget(number)
                    return _result(prediction, str(field(pod, "spec", "nodeName")))
        return None

    def _forget(self, number: int) -> None:
        identity, _, placement, _ = self._predicted.pop(number)
        self._pods_by_placement[id(placement)] -= 1
        if not self._pods_by_placement[id(placement)]:
            del self._pods_by_placement[id(placement)]
        numbers = self._numbers[identity]
        numbers.remove(number)
        if not numbers:
            del self._numbers[identity]


def _result(prediction: _Prediction, node: str) -> PredictionResult | None:
    placement = prediction.placement
    if placement.verdict == "Infeasible":
        return "foretold_infeasible_but_bound"
    if placement.node == node:
        return "same_node"
    if node not in prediction.known_nodes:
        return None
    scores = placement.scores
    if node not in scores:
        return "foretold_infeasible_but_bound"
    best = scores[placement.node]["total"] if placement.node else None
    return "in_best_set" if scores[node]["total"] == best else "feasible_elsewhere"


def _identity(namespace: str, pod: Mapping[str, Any]) -> _Identity:
    owners = field(pod, "metadata", "ownerReferences")
    controllers = [owner for owner in owners if field(owner, "controller")] if isinstance(owners, list) else []
    name = field(pod, "metadata", "name") or field(pod, "metadata", "generateName")
    return _Identity(namespace, str(name or ""), str(field(controllers[0], "uid")) if controllers else "")


def _created_seconds(pod: Mapping[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(field(pod, "metadata", "creationTimestamp"))).timestamp()
    except ValueError:
        return None
