from dataclasses import dataclass

import pytest

from tests.support.server import Clock
from webhook.cluster.snapshot import Snapshot
from webhook.serving.view import FixedView, StartOfView, stale_reason


@dataclass
class _View:
    """A view of no nodes, of that age."""

    age: float
    is_live: bool = True

    def snapshot(self) -> Snapshot:
        return Snapshot.of(())

    def age_seconds(self) -> float:
        return self.age


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        pytest.param(_View(0.0), "", id="new"),
        pytest.param(_View(60.0), "", id="as old as is allowed"),
        pytest.param(
            _View(61.0), "the view of the cluster is too old: 61 s, at most 60 s are allowed", id="older than that"
        ),
        pytest.param(_View(float("inf")), "the view of the cluster is not there yet", id="not there yet"),
        pytest.param(_View(1e9, is_live=False), "", id="of a file, however old"),
    ],
)
def test_a_live_view_is_stale_once_it_is_too_old(view: _View, reason: str) -> None:
    assert stale_reason(view, 60.0) == reason


def test_a_fixed_view_keeps_its_snapshot_and_is_never_stale() -> None:
    snapshot = Snapshot.of(())
    view = FixedView(snapshot)

    assert view.snapshot() is snapshot
    assert stale_reason(view, 0.0) == ""


def test_a_replica_is_not_ready_before_the_first_lists_are_complete() -> None:
    view = _View(float("inf"))
    start = StartOfView(view, Clock())
    assert start.unready_reason() == "the view of the cluster is not there yet"

    view.age = 0.0
    assert start.unready_reason() == ""


def test_a_replica_without_rights_is_ready_after_half_a_minute() -> None:
    clock = Clock()
    start = StartOfView(_View(float("inf")), clock)
    clock.seconds += 29.9
    assert start.unready_reason()

    clock.seconds += 0.1
    assert start.unready_reason() == ""


def test_a_ready_replica_stays_ready_when_its_view_gets_lost() -> None:
    view = _View(0.0)
    start = StartOfView(view, Clock())
    assert start.unready_reason() == ""

    view.age = float("inf")
    assert start.unready_reason() == ""


@pytest.mark.parametrize("view", [None, _View(float("inf"), is_live=False)], ids=["no view", "a file"])
def test_readiness_waits_for_a_live_view_only(view: _View | None) -> None:
    assert StartOfView(view, Clock()).unready_reason() == ""
