"""Records the predictions for admitted pods, and counts how they compare with the nodes that pods are bound to."""

from collections.abc import Callable, Mapping
from typing import Any

from webhook.kube.admission import AdmissionRequest
from webhook.kube.documents import field
from webhook.metrics import Metrics
from webhook.pipeline import ClusterView
from webhook.placement.framework.result import Placement
from webhook.policy.policy import Policy
from webhook.serving.predictions import Predictions


class PredictionRecorder:
    """The bookkeeping of predictions between admissions, bindings and the metric.

    `wall_seconds` is the wall clock: a bound pod is matched by its creation time.
    """

    def __init__(self, predictions: Predictions, metrics: Metrics, wall_seconds: Callable[[], float]) -> None:
        self._predictions = predictions
        self._counter = metrics.predictions
        self._wall_seconds = wall_seconds

    def record(
        self, request: AdmissionRequest, placement: Placement, cluster: ClusterView | None, policy: Policy
    ) -> None:
        """Record what is predicted for an allowed pod; a dry run creates none."""
        if request.dry_run or cluster is None:
            return
        pod = request.object or {}
        annotations = field(pod, "metadata", "annotations") or {}
        self._predictions.remember(
            request.namespace,
            pod,
            placement,
            cluster.snapshot.rows,
            self._wall_seconds(),
            again=policy.policy_annotation in annotations,
        )

    def compare(self, pod: Mapping[str, Any]) -> None:
        """Count how the prediction for `pod`, which is bound, compares with its node."""
        if result := self._predictions.compare(pod):
            self._counter.labels(result).inc()
