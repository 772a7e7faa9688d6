"""The reason and the note of an Event follow from the verdict."""

from dataclasses import replace

import pytest

from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed, Verdict
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.events.report import NOTE_BYTES, Report, report_of
from webhook.kube.api.review_answer import Denial
from webhook.kube.deadline import never
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import Placement
from webhook.placement.reasons.cluster_warnings import NO_SIGN
from webhook.placement.reasons.evictions import OF_NAMESPACE
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.pending_placement import place_pending, predict_placement

TRAINING = evaluate(PodContent(make_request(make_pod().annotate(TYPE, "training").obj()), {}), policy_with())
EVICTION = PredictedPreemption(nodes=("node-7",), least=2, most=2, candidates=1)


def allowed(placement: Placement) -> Allowed:
    assert isinstance(TRAINING, Mutated)
    return Allowed(TRAINING, (), placement)


def placed(verdict: str, message: str = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.") -> Placement:
    return Placement(verdict, None, 2, 0, message, suggestions=("ask for 8 GPUs", "wait"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "report"),
    [
        pytest.param(
            Denied(Denial(422, "Invalid", "metadata.annotations[a]: Unsupported value"), None),
            ("PlacementDenied", "a pod is refused: metadata.annotations[a]: Unsupported value"),
            id="denied",
        ),
        pytest.param(
            allowed(placed("Infeasible")),
            (
                "PlacementInfeasible",
                (
                    "no node of this cluster can take the pod as it is: 0/2 nodes are available: 2 Insufficient "
                    "nvidia.com/gpu. Suggestion: ask for 8 GPUs."
                ),
            ),
            id="Infeasible",
        ),
        pytest.param(
            allowed(placed("Waiting")),
            (
                "PlacementWaiting",
                (
                    "no node can take the pod now: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu. Suggestion: "
                    "ask for 8 GPUs."
                ),
            ),
            id="Waiting",
        ),
        pytest.param(
            allowed(replace(placed("Infeasible", "0/2 nodes are available."), deny_exemption="a pod may leave")),
            (
                "PlacementWaiting",
                (
                    "no node can take the pod now: 0/2 nodes are available. Not sure: a pod may leave. Suggestion: ask "
                    "for 8 GPUs."
                ),
            ),
            id="Infeasible, but not certainly",
        ),
        pytest.param(
            allowed(replace(placed("Waiting", "no room"), preemption=EVICTION)),
            (
                "PlacementWaiting",
                "no node can take the pod now: no room. kube-scheduler would evict 2 pods of lower priority on node-7.",
            ),
            id="Waiting for evictions",
        ),
        pytest.param(
            allowed(replace(placed("Waiting", "no room"), preemption=PredictedPreemption(is_exact=False, why="late"))),
            (
                "PlacementWaiting",
                "no node can take the pod now: no room. Suggestion: ask for 8 GPUs. evictions are not known: late.",
            ),
            id="Waiting, and evictions are not known",
        ),
        pytest.param(
            replace(allowed(placed("Waiting")), warnings=("a", f"scheduler volcano{NO_SIGN}no Lease and so on")),
            ("PlacementSchedulerMissing", "scheduler volcano: no sign that it runs: no Lease and so on"),
            id="without its scheduler",
        ),
        pytest.param(
            replace(
                allowed(placed("Feasible")),
                warnings=(
                    "scheduler volcano ignores preferred node affinity",
                    f"label jobtype=x{NO_SIGN} of the pod wins",
                ),
            ),
            None,
            id="Feasible, with warnings about something else",
        ),
        pytest.param(allowed(placed("Feasible")), None, id="Feasible"),
        pytest.param(allowed(Placement.unknown("no view")), None, id="Unknown"),
        pytest.param(Bypassed("mirror pod"), None, id="bypassed"),
    ],
)
def test_verdict_gives_its_report(verdict: Verdict, report: tuple[str, str] | None) -> None:
    assert report_of(verdict) == report


def test_an_event_of_a_denied_pod_is_not_on_the_pod() -> None:
    assert not Report("PlacementDenied", "").is_on_pod
    assert Report("PlacementWaiting", "").is_on_pod


@pytest.mark.parametrize("character", ["x", "ü", "卡", "🎮"])
def test_note_fits_the_api_servers_limit(character: str) -> None:
    report = report_of(allowed(placed("Waiting", character * 5000)))
    assert report is not None
    assert NOTE_BYTES - 8 < len(report.note.encode()) <= NOTE_BYTES
    assert report.note.endswith("…")


def test_note_has_no_control_characters() -> None:
    report = report_of(Denied(Denial(422, "Invalid", "x\x1b[31m\ny"), None))
    assert report == ("PlacementDenied", r"a pod is refused: x\x1b[31m y")


def test_reports_that_differ_in_numbers_have_one_topic() -> None:
    first = Report("PlacementWaiting", "0/12 nodes are available: 12 Insufficient cpu.")
    assert first.topic == Report("PlacementWaiting", "0/9 nodes are available: 9 Insufficient cpu.").topic
    assert first.topic != Report("PlacementWaiting", "0/12 nodes are available: 12 Insufficient memory.").topic


def test_pods_that_wait_before_a_pod_give_one_topic_whatever_their_number() -> None:
    """Replicas can report one pod with different numbers, and each topic is an Event."""
    one, two = (waiting_behind(count) for count in (1, 2))
    assert "but 1 pod that waits before it needs the room." in one.note
    assert "but 2 pods that wait before it need the room." in two.note
    assert one.topic == two.topic


def test_suggestion_is_a_sentence_of_its_own() -> None:
    """kube-scheduler's message about scheduling gates has no full stop."""
    report = report_of(allowed(placed("Waiting", "Scheduling is blocked")))
    assert report is not None
    assert report.note == "no node can take the pod now: Scheduling is blocked. Suggestion: ask for 8 GPUs."


def waiting_behind(count: int) -> Report:
    """Return the report of a pod that would fit without `count` pods that wait before it."""
    node = make_node_object("node-1", capacity={"nvidia.com/gpu": 2})
    pending = [make_pod(f"pod-{number}").gpu(1).obj() for number in range(count)]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (node, *pending))
    assumed = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed
    asked = PodSignature.of(make_pod("asked").gpu(2).obj())
    report = report_of(allowed(predict_placement(Scheduler(), asked, assumed, None, never)))
    assert report is not None
    return report


def test_the_names_of_evicted_pods_do_not_part_reports() -> None:
    """The next pod of the template finds other victims, and one Event counts both."""
    evicted = "no node can take the pod now. kube-scheduler would evict 1 pod of lower priority on one node"
    topics = {Report("PlacementWaiting", f"{evicted}{OF_NAMESPACE}{name} is among them.").topic for name in ("a", "b")}

    assert len(topics) == 1
    assert topics != {Report("PlacementWaiting", "no node can take the pod now.").topic}
