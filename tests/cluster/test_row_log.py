"""The log of the rows that were changed in place."""

from tests.support.objects.builders import make_pod
from webhook.cluster.node_info import RunningPod
from webhook.cluster.row_log import MOST_CHANGES, PodChange, RowLog

POD = RunningPod.of(make_pod("p").node_name("n").obj())


def log_of(changes: int) -> RowLog:
    log = RowLog()
    for row in range(changes):
        log.add(PodChange(row, 1, 0, POD))
    return log


def test_the_changes_since_a_position_are_those_after_it() -> None:
    log = log_of(3)

    assert [change.row for change in log.since(1) or ()] == [1, 2]
    assert log.since(3) == []


def test_the_oldest_half_is_dropped() -> None:
    log = log_of(MOST_CHANGES + 1)

    assert log.position == MOST_CHANGES + 1
    assert log.since(0) is None
    assert len(log.since(MOST_CHANGES // 2) or ()) == MOST_CHANGES // 2 + 1


def test_a_log_that_was_cleared_keeps_its_position() -> None:
    log = log_of(3)
    log.clear()

    assert (log.position, log.since(3), log.since(2)) == (3, [], None)
