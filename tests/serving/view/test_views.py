from dataclasses import dataclass

import pytest

from tests.support.servers.server import Clock
from webhook.cluster.snapshot import Snapshot
from webhook.serving.view.views import FixedView, StartOfView, stale_reason


@dataclass
class _View(FixedView):
    """A view of no nodes, of that age."""

    age: float
    is_live: bool = True
    has_namespaces: bool = False

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


def test_a_replica_waits_for_the_labels_that_policies_select_by() -> None:
    clock, view, selecting = Clock(), _View(float("inf")), [True]
    start = StartOfView(view, clock, lambda: bool(selecting))
    clock.seconds += 1000.0
    assert start.unready_reason().endswith("the service account needs the right to list and watch namespaces")
    assert start.note() == "", "it is the reason already"

    view.has_namespaces = True
    assert start.unready_reason() == ""


def test_a_replica_is_ready_without_labels_that_no_policy_selects_by_and_says_so_later() -> None:
    clock, selecting = Clock(), list[bool]()
    start = StartOfView(_View(float("inf")), clock, lambda: bool(selecting))
    clock.seconds += 30.0
    assert (start.unready_reason(), start.note()) == ("", "")

    selecting.append(True)
    assert start.unready_reason() == ""
    assert "the namespaces of the cluster are not known" in start.note()


def test_a_ready_replica_stays_ready_when_its_view_gets_lost() -> None:
    view = _View(0.0)
    start = StartOfView(view, Clock())
    assert start.unready_reason() == ""

    view.age = float("inf")
    assert start.unready_reason() == ""


@pytest.mark.parametrize("view", [None, _View(float("inf"), is_live=False)], ids=["no view", "a file"])
def test_readiness_waits_for_a_live_view_only(view: _View | None) -> None:
    assert StartOfView(view, Clock()).unready_reason() == ""
