from bench.clusters import cluster_documents
from tests.support.admission import TYPE, policy_with
from tests.support.builders import PodBuilder, make_pod
from tests.support.server import review_bytes
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.admission import parse_review
from webhook.metrics import Metrics
from webhook.pipeline import ClusterView, admit, scheduler_for
from webhook.serving.prediction_recorder import PredictionRecorder
from webhook.serving.predictions import Predictions
from webhook.verdict import Patched

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
        assert isinstance(verdict, Patched)
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
