"""The reason and the note of an Event follow from the verdict."""

import pytest

from webhook.events.report import NOTE_BYTES, Report, report_of
from webhook.kube.admission import Denial
from webhook.placement.framework.result import Placement
from webhook.verdict import Bypassed, Denied, Unchanged, Verdict


def allowed(placement: Placement) -> Verdict:
    return Unchanged("training", {}, (), (), placement)


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
                    "no node of this cluster could ever take the pod: 0/2 nodes are available: 2 Insufficient "
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
