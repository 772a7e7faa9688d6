"""Compares predictions for pods with the nodes that the pods are bound to.

At admission a pod has no UID and often no name, because the API server generates it from `generateName` later. So a
bound pod is matched by its namespace, by its name or else its generateName and controller, and by a creation time close
to its admission. Pods of one controller that are admitted within seconds of each other are matched in order; they come
from one template, so confusing two of them changes little.

Not compared are pods that another replica admitted, pods whose prediction was dropped, pods predicted to be Waiting,
and nodes that were not in the view. Changes of the cluster between admission and binding are ignored, though they can
be the reason for another node.
"""

from collections import OrderedDict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from webhook.kube.documents import field
from webhook.placement.scheduler import Placement

PredictionResult = Literal["same_node", "in_best_set", "feasible_elsewhere", "foretold_infeasible_but_bound"]
# A creationTimestamp has whole seconds, and the clocks of two machines differ slightly.
_CLOSE_SECONDS = 5.0


class _Identity(NamedTuple):
    namespace: str
    name: str
    controller: str


@dataclass(slots=True, eq=False)
class _SharedPlacement:
    placement: Placement
    predictions: int = 0


class _Prediction(NamedTuple):
    identity: _Identity
    at_seconds: float
    shared: _SharedPlacement
    known_nodes: Container[str]


class Predictions:
    """The predictions for the last `size` pods, Feasible or Infeasible. An instance is for one thread.

    A placement keeps its snapshot in memory, so at most `placements` different ones are kept. Equal pods that are
    admitted on one snapshot share one.
    """

    def __init__(self, size: int = 256, placements: int = 16) -> None:
        self._size = size
        self._max_placements = placements
        self._placements: list[_SharedPlacement] = []
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
        reinvoked: bool,
    ) -> None:
        """Keep the prediction for `pod`, admitted in `namespace` at `at_seconds` of the wall clock.

        `known_nodes` are the names of the nodes in the view. With `reinvoked`, the pod has just been admitted, and the
        API server calls again because another webhook changed it; the new prediction replaces the last one.
        """
        identity = _identity(namespace, pod)
        if reinvoked and (numbers := self._numbers.get(identity)):
            self._forget(numbers[-1])
        if placement.verdict not in ("Feasible", "Infeasible"):
            return
        shared = self._share(placement)
        while len(self._predicted) >= self._size or len(self._placements) > self._max_placements:
            self._forget(next(iter(self._predicted)))
        self._predicted[self._next] = _Prediction(identity, at_seconds, shared, known_nodes)
        self._numbers.setdefault(identity, []).append(self._next)
        self._next += 1

    def compare(self, pod: Mapping[str, Any]) -> PredictionResult | None:
        """Compare the prediction for the bound `pod` with its node; return None if there is nothing to compare."""
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

    def _share(self, placement: Placement) -> _SharedPlacement:
        shared = next((each for each in self._placements if each.placement is placement), None)
        if shared is None:
            shared = _SharedPlacement(placement)
            self._placements.append(shared)
        shared.predictions += 1
        return shared

    def _forget(self, number: int) -> None:
        identity, _, shared, _ = self._predicted.pop(number)
        shared.predictions -= 1
        if not shared.predictions:
            self._placements.remove(shared)
        numbers = self._numbers[identity]
        numbers.remove(number)
        if not numbers:
            del self._numbers[identity]


def _result(prediction: _Prediction, node: str) -> PredictionResult | None:
    placement = prediction.shared.placement
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
