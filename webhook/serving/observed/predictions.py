"""Compare predictions for pods with the nodes that the pods are bound to, and with pods that stay pending.

At admission a pod has no UID and often no name, because the API server generates it from `generateName` later. The
volume of its service account token has a random name, which identifies the pod. Without this volume, a pod is matched
by its name, or else by its generateName, controller and a creation time close to its admission. Pods of one controller
that are admitted within seconds are matched in order. They have one template, so confusing them changes little.

Not compared are pods that another replica admitted, pods whose prediction was dropped, and nodes that are not in the
view. Changes of the cluster between admission and binding are ignored, although they can cause a different node.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from webhook.admission.cluster_view import ClusterView
from webhook.cluster.pods.pending_pods import PendingPod, PodKey, pending_changes
from webhook.cluster.snapshot import Snapshot
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.framework.result import Placement, PlacementVerdict
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics, PredictionResult

# The pods of a burst. An entry takes about a KiB without its sets of nodes.
_MOST_PREDICTIONS = 5_000
_SETS_BYTES = 8 * 1024 * 1024
# The node names of a view take a MiB at 5,000 nodes; only a change of the nodes makes others.
_MOST_NODE_NAMES = 8
# A creationTimestamp has whole seconds, and the clocks of two machines differ slightly.
_CLOSE_SECONDS = 5.0
# A pod that is bound within this time did not wait.
_AT_ONCE_SECONDS = 5.0
# A pod that fits is bound within this time, unless the prediction was wrong or the scheduler is overloaded.
_PENDING_SECONDS = 60.0
# The interval at which pending pods are looked at for that.
_SWEEP_SECONDS = 5.0

Bits = NDArray[np.uint8]
_NO_BITS: Bits = np.empty(0, dtype=np.uint8)


@dataclass(slots=True, eq=False)
class _Predicted:
    """The part of a placement that is compared, without its large snapshot. Equal pods share it.

    `rows` are the rows of the view by node name. `best` and `feasible` are sets of rows with one bit for each row. If
    `is_beside_others`, other nodes can be infeasible because of the predicted nodes of waiting pods.
    """

    verdict: PlacementVerdict
    node: str | None
    rows: Mapping[str, int]
    best: Bits
    feasible: Bits
    is_beside_others: bool
    size_bytes: int
    """The size of the sets."""
    pods: int = 0

    @classmethod
    def of(cls, placement: Placement, rows: Mapping[str, int]) -> "_Predicted":
        best = _NO_BITS
        if placement.best_rows is not None:
            is_best = np.zeros(len(rows), dtype=np.bool_)
            is_best[placement.best_rows] = True
            if placement.possible_nodes:
                is_best[[rows[name] for name in placement.possible_nodes if name in rows]] = True
            best = np.packbits(is_best)
        feasible = _NO_BITS if placement.feasible_mask is None else np.packbits(placement.feasible_mask)
        is_beside_others, size_bytes = placement.reserved_pods > 0, best.nbytes + feasible.nbytes
        return cls(placement.verdict, placement.node, rows, best, feasible, is_beside_others, size_bytes)


@dataclass(slots=True, eq=False)
class _Prediction:
    key: Hashable
    at_seconds: float
    predicted: _Predicted


class Predictions:
    """The predictions for the last `size` pods. Not thread-safe.

    A prediction with the verdict Waiting is kept for the seconds in which it can turn out to be wrong.
    """

    def __init__(self, size: int = _MOST_PREDICTIONS, sets_bytes: int = _SETS_BYTES) -> None:
        self._size = size
        self._most_sets_bytes = sets_bytes
        self._sets_bytes = 0
        self._next = 0
        self._predictions: OrderedDict[int, _Prediction] = OrderedDict()
        self._numbers: dict[Hashable, dict[int, None]] = {}
        self._pods_of_names: dict[int, int] = {}
        self._last: tuple[Placement, _Predicted] | None = None
        # The predictions that pods which stay pending can disprove or confirm, with their times, the oldest first.
        self._waiting: dict[int, float] = {}
        self._feasible: dict[int, float] = {}
        self._next_sweep_seconds = 0.0
        self._pending: Mapping[PodKey, PendingPod] = {}

    def __len__(self) -> int:
        return len(self._predictions)

    def remember(
        self,
        identity: PodIdentity,
        placement: Placement,
        rows: Mapping[str, int],
        at_seconds: float,
        *,
        reinvoked: bool,
    ) -> None:
        """Keep the prediction for the pod with `identity`, which was admitted at `at_seconds` of the wall clock.

        `rows` are the rows of the view by node name. With `reinvoked`, the API server calls the webhook again for a pod
        that was just admitted, because another webhook changed it. The new prediction then replaces the last one.
        """
        key = identity.keys[0]
        if (reinvoked or identity.token_volume) and (numbers := self._numbers.get(key)):
            self._forget(next(reversed(numbers)))
        if placement.verdict == "Unknown":
            return
        if self._last is None or self._last[0] is not placement or self._last[1].rows is not rows:
            # The placement keeps its snapshot in memory, until the next one.
            self._last = placement, _Predicted.of(placement, rows)
        predicted = self._last[1]
        number, self._next = self._next, self._next + 1
        self._predictions[number] = _Prediction(key, at_seconds, predicted)
        self._numbers.setdefault(key, {})[number] = None
        self._count(predicted, 1)
        if placement.verdict == "Waiting":
            self._waiting[number] = at_seconds
        elif placement.verdict == "Feasible":
            self._feasible[number] = at_seconds
        while (
            len(self._predictions) > self._size
            or self._sets_bytes > self._most_sets_bytes
            or len(self._pods_of_names) > _MOST_NODE_NAMES
        ):
            self._forget(next(iter(self._predictions)))

    def compare(self, pod: Binding, now_seconds: float) -> PredictionResult | None:
        """Compare the prediction for the bound `pod` with its node. Return None without a prediction."""
        number = self._find(pod.identity, _seconds(pod.created))
        if number is None:
            return None
        prediction = self._predictions[number]
        self._forget(number)
        if prediction.predicted.verdict == "Waiting":
            is_at_once = now_seconds - prediction.at_seconds <= _AT_ONCE_SECONDS
            return "predicted_waiting_but_bound" if is_at_once else None
        return _result(prediction.predicted, pod.node)

    def follow(self, pending: Mapping[PodKey, PendingPod], now_seconds: float) -> Iterator[PredictionResult]:
        """Yield one result for each pod that was predicted Feasible and has been pending for a minute.

        A prediction with the verdict Waiting was right if the pod was found unschedulable, or has scheduling gates.
        """
        for old in _older(self._waiting, now_seconds - _AT_ONCE_SECONDS):
            self._forget(old)
        if self._waiting and pending is not self._pending:
            for pod in pending_changes(self._pending, pending)[0]:
                number = None if pod.is_waiting else self._find(pod.identity, _seconds(pod.created))
                if number is not None and self._predictions[number].predicted.verdict == "Waiting":
                    self._forget(number)
        self._pending = pending
        if now_seconds >= self._next_sweep_seconds:
            self._next_sweep_seconds = now_seconds + _SWEEP_SECONDS
            yield from self._still_pending(pending, now_seconds)

    def _still_pending(self, pending: Mapping[PodKey, PendingPod], now_seconds: float) -> Iterator[PredictionResult]:
        due = set(_older(self._feasible, now_seconds - _PENDING_SECONDS))
        for number in due:
            del self._feasible[number]
        for pod in pending.values() if due else ():
            found = self._find(pod.identity, _seconds(pod.created), due)
            if found is not None:
                due.discard(found)
                yield "predicted_feasible_but_pending"

    def _find(self, identity: PodIdentity, created_seconds: float | None, among: set[int] | None = None) -> int | None:
        """Return the number of the prediction for a stored pod, one of `among` if that is given, or None."""
        for key in identity.keys:
            is_certain = bool(identity.token_volume) and key == (identity.namespace, "volume", identity.token_volume)
            for number in self._numbers.get(key, ()):
                if among is not None and number not in among:
                    continue
                if is_certain or _is_close(created_seconds, self._predictions[number].at_seconds):
                    return number
        return None

    def _count(self, predicted: _Predicted, pods: int) -> None:
        if predicted.pods == 0:
            self._sets_bytes += predicted.size_bytes
        predicted.pods += pods
        if predicted.pods == 0:
            self._sets_bytes -= predicted.size_bytes
        # `rows` is in memory while it is counted, so its id is that of no other one.
        names = id(predicted.rows)
        self._pods_of_names[names] = self._pods_of_names.get(names, 0) + pods
        if not self._pods_of_names[names]:
            del self._pods_of_names[names]

    def _forget(self, number: int) -> None:
        prediction = self._predictions.pop(number, None)
        if prediction is None:
            return
        self._waiting.pop(number, None)
        self._feasible.pop(number, None)
        self._count(prediction.predicted, -1)
        numbers = self._numbers[prediction.key]
        del numbers[number]
        if not numbers:
            del self._numbers[prediction.key]


class PredictionRecorder:
    """Records predictions at admission and compares them when pods are bound or stay pending."""

    def __init__(self, predictions: Predictions, metrics: Metrics, wall_seconds: Callable[[], float]) -> None:
        self._predictions = predictions
        self._counter = metrics.predictions
        self._wall_seconds = wall_seconds

    def record(
        self, request: AdmissionRequest, placement: Placement, cluster: ClusterView | None, policy: Policy
    ) -> None:
        """Record the prediction for an allowed pod, unless the request is a dry run."""
        if request.dry_run or cluster is None:
            return
        self._predictions.remember(
            request.identity,
            placement,
            cluster.snapshot.rows,
            self._wall_seconds(),
            reinvoked=request.has_annotation(policy.policy_annotation),
        )

    def compare(self, pod: Binding) -> None:
        """Count the result of comparing the prediction for the bound `pod` with its node."""
        if result := self._predictions.compare(pod, self._wall_seconds()):
            self._counter.labels(result).inc()

    def follow(self, snapshot: Snapshot) -> None:
        """Count the predictions that the pending pods of `snapshot` disprove."""
        for result in self._predictions.follow(snapshot.pending, self._wall_seconds()):
            self._counter.labels(result).inc()


def _result(predicted: _Predicted, node: str) -> PredictionResult | None:
    if predicted.verdict == "Infeasible":
        return "predicted_infeasible_but_bound"
    if predicted.node == node:
        return "same_node"
    row = predicted.rows.get(node)
    if row is None:
        return None
    if _has(predicted.best, row):
        return "in_best_set"
    is_feasible = predicted.is_beside_others or _has(predicted.feasible, row)
    return "feasible_elsewhere" if is_feasible else "predicted_infeasible_but_bound"


def _older(numbers: Mapping[int, float], seconds: float) -> list[int]:
    """Return the first numbers, whose time is before `seconds`. `numbers` are in the order of time."""
    return [*takewhile(lambda number: numbers[number] < seconds, numbers)]


def _has(bits: Bits, row: int) -> bool:
    return bool(bits[row >> 3] >> (7 - (row & 7)) & 1)


def _is_close(created_seconds: float | None, at_seconds: float) -> bool:
    return created_seconds is not None and abs(created_seconds - at_seconds) <= _CLOSE_SECONDS


def _seconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None
