"""Tests of reading kube-scheduler's log."""

from pathlib import Path

import pytest

from tests.controlplane.scheduler_log import SchedulerLog, first_refusal_from_log, scores_from_log

PREFIX = "I1120 17:00:00.000000    4118 schedule_one.go:982] "


def attempt(pod: str) -> str:
    return f'{PREFIX}"Attempting to schedule pod" pod="{pod}"\n'


def scored(pod: str, plugin: str, node: str, score: int) -> str:
    return f'{PREFIX}"Plugin scored node for pod" pod="{pod}" plugin="{plugin}" node="{node}" score={score}\n'


@pytest.mark.parametrize(
    ("lines", "scores"),
    [
        pytest.param([attempt("a/p")], {}, id="a single feasible node is not scored"),
        pytest.param(
            [attempt("a/p"), scored("a/p", "NodeAffinity", "n1", 200), scored("a/p", "ImageLocality", "n1", -1)],
            {"n1": {"NodeAffinity": 200, "ImageLocality": -1}},
            id="each plugin of each node",
        ),
        pytest.param(
            [attempt("a/p"), scored("a/p", "NodeAffinity", "n1", 200), attempt("a/p")],
            {},
            id="only the latest attempt counts",
        ),
        pytest.param(
            [attempt("a/p"), scored("a/p", "NodeAffinity", "n1", 200), attempt("b/p"), scored("b/p", "Fit", "n1", 7)],
            {"n1": {"NodeAffinity": 200}},
            id="other pods do not",
        ),
    ],
)
def test_scores_are_read(lines: list[str], scores: dict[str, dict[str, int]]) -> None:
    assert scores_from_log(lines, "a/p") == scores


def test_a_line_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    log = SchedulerLog(tmp_path / "log")
    assert (log.end(), list(log.lines())) == (0, [])
    whole, half = f'{PREFIX}"Add event for node" node="n1"\n', f'{PREFIX}"Add event for node" node="n'
    log.path.write_text(whole + half)
    log.wait_for_events("Add event for node", "node", ["n1"], since=0)
    with pytest.raises(TimeoutError, match="kube-scheduler: Add event for node: n22: not within"):
        log.wait_for_events("Add event for node", "node", ["n1", "n22"], since=0, deadline_seconds=0)
    log.path.write_text(whole + half + '22"\n')
    log.wait_for_events("Add event for node", "node", ["n1", "n22"], since=0)


def test_first_rejection_of_a_pod_is_read_with_its_quotes() -> None:
    refusals = [("b/p", "other"), ("a/p", 'claim \\"x\\" not found'), ("a/p", "later")]
    lines = [f'{PREFIX}"Unable to schedule pod; no fit; waiting" pod="{pod}" err="{text}"\n' for pod, text in refusals]
    assert first_refusal_from_log(lines, "a/p") == 'claim "x" not found'
    assert first_refusal_from_log(lines, "c/p") is None


def test_an_event_may_name_its_object_after_other_fields(tmp_path: Path) -> None:
    log = SchedulerLog(tmp_path / "log")
    log.path.write_text(f'{PREFIX}"Observed device allocation" device="driver/pool/card-0" claim="a/c"\n')
    log.wait_for_events("Observed device allocation", "claim", ["a/c"], since=0, deadline_seconds=0)
    with pytest.raises(TimeoutError, match="a/other"):
        log.wait_for_events("Observed device allocation", "claim", ["a/other"], since=0, deadline_seconds=0)
