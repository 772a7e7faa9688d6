from dataclasses import replace

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.clusters import cluster_documents
from tests.support.servers.server import review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.pipeline import admit
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.pods.pending_pods import PendingPod
from webhook.kube.api.admission import parse_review
from webhook.runtime.metrics import Metrics
from webhook.serving.observed.predictions import PredictionRecorder, Predictions

POLICY = policy_with()
CLUSTER = ClusterView(snapshot_from_documents(cluster_documents(4, 1)), scheduler_for(POLICY))
TRAINING = make_pod("trainer").annotate(TYPE, "training")


def _recorded(*pods: PodBuilder, cluster: ClusterView | None = CLUSTER, **request: object) -> int:
    """Return how many predictions are kept once these pods are admitted."""
    predictions = Predictions()
    recorder = PredictionRecorder(predictions, Metrics(), lambda: 0.0)
    for pod in pods:
        asked = parse_review(review_bytes(pod.obj(), **request))
        verdict = admit(asked, POLICY, cluster)
        assert verdict.outcome == "Patched"
        recorder.record(asked, verdict.placement, cluster, POLICY)
    return len(predictions)


def test_the_prediction_for_a_pod_that_will_be_created_is_recorded() -> None:
    assert _recorded(TRAINING) == 1
    assert _recorded(TRAINING, TRAINING) == 2
    assert _recorded(TRAINING, dryRun=True) == 0
    assert _recorded(TRAINING, cluster=None) == 0


def test_the_second_admission_of_a_pod_replaces_its_prediction() -> None:
    again = TRAINING.annotate(POLICY.policy_annotation, POLICY.identity)
    assert _recorded(TRAINING, again) == 1


def test_pod_that_stays_pending_is_counted() -> None:
    metrics, seconds = Metrics(), [1_800_000_000.0]
    recorder = PredictionRecorder(Predictions(), metrics, lambda: seconds[0])
    asked = parse_review(review_bytes(TRAINING.obj()))
    verdict = admit(asked, POLICY, CLUSTER)
    assert verdict.outcome == "Patched"
    recorder.record(asked, replace(verdict.placement, verdict="Feasible"), CLUSTER, POLICY)
    stored = TRAINING.namespace(asked.namespace).obj()
    stored["metadata"]["creationTimestamp"] = "2027-01-15T08:00:00Z"
    pod = PendingPod.of(stored)

    for seconds[0] in (1_800_000_030.0, 1_800_000_061.0, 1_800_000_090.0):
        recorder.follow(replace(CLUSTER.snapshot, pending={pod.key: pod}))

    name = 'placement_webhook_predictions_total{result="predicted_feasible_but_pending"} 1.0'
    assert name in metrics.render().decode()
