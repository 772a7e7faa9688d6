"""Records predictions for admitted pods, and compares them with the nodes that the pods are bound to."""

from collections.abc import Callable, Mapping
from typing import Any

from webhook.admission.pipeline import ClusterView
from webhook.cluster.snapshot import Snapshot
from webhook.kube.api.admission import AdmissionRequest
from webhook.placement.framework.result import Placement
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.observed.predictions import Predictions


class PredictionRecorder:
    """Records predictions at admission and compares them when pods are bound, or stay pending.

    `wall_seconds` is the wall clock, because a pod can be matched by its creation time.
    """

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

    def compare(self, pod: Mapping[str, Any]) -> None:
        """Count the result of comparing the prediction for the bound `pod` with its node."""
        if result := self._predictions.compare(pod, self._wall_seconds()):
            self._counter.labels(result).inc()

    def follow(self, snapshot: Snapshot) -> None:
        """Count the predictions that the pending pods of `snapshot` disprove."""
        for result in self._predictions.follow(snapshot.pending, self._wall_seconds()):
            self._counter.labels(result).inc()
