"""The backlog is bounded, and makes one item of equal ones."""

import math

from webhook.events.backlog import MOST_ITEMS, MOST_ITEMS_OF_NAMESPACE, Backlog, PendingReport
from webhook.events.report import Report
from webhook.events.subject import ObjectReference


def pending(namespace: str, name: str, due_seconds: float = 0.0) -> PendingReport:
    pod = ObjectReference("v1", "Pod", namespace, name, "")
    return PendingReport(Report("PlacementWaiting", "waits"), pod, 0.0, 0.0, due_seconds)


def taken(backlog: Backlog, now: float = 0.0) -> list[str]:
    found = []
    while (item := backlog.take_due(now)) is not None:
        found.append(f"{item.subject.namespace}/{item.subject.name}")
    return found


def test_equal_items_become_one() -> None:
    backlog = Backlog()
    assert all(backlog.put(pending("a", "x", due)) for due in (1.0, 2.0, 3.0))
    item = backlog.take_due(1.0)
    assert item is not None
    assert (item.count, len(backlog)) == (3, 0)


def test_an_item_has_the_note_of_its_last_report() -> None:
    backlog, later = Backlog(), pending("a", "x")
    later.report = Report("PlacementWaiting", "2 nodes are full")
    first = pending("a", "x")
    first.report = Report("PlacementWaiting", "1 nodes are full")
    assert all(backlog.put(each) for each in (first, later))
    item = backlog.take_due(0.0)
    assert item is not None
    assert (item.count, item.report.note) == (2, "2 nodes are full")


def test_an_item_lasts_from_its_first_to_its_last_report_in_any_order() -> None:
    backlog = Backlog()
    for first_at, last_at in ((5.0, 6.0), (3.0, 4.0), (7.0, 9.0)):
        item = pending("a", "x")
        item.first_at, item.last_at = first_at, last_at
        backlog.put(item)
    found = backlog.take_due(0.0)
    assert found is not None
    assert (found.first_at, found.last_at) == (3.0, 9.0)


def test_reports_of_other_pods_reasons_or_topics_are_items_of_their_own() -> None:
    backlog = Backlog()
    for name, reason, note in (("x", "A", "n"), ("y", "A", "n"), ("x", "B", "n"), ("x", "A", "m"), ("x", "A", "n")):
        item = pending("a", name)
        item.report = Report(reason, note)
        backlog.put(item)
    assert len(backlog) == 4


def test_an_item_that_waits_again_takes_over_later_reports_with_their_objects() -> None:
    backlog, later = Backlog(), pending("a", "x")
    later.count, later.targets = 0, [(later.subject, 2)]
    assert all(backlog.put(each) for each in (pending("a", "x"), later))
    item = backlog.take_due(0.0)
    assert item is not None
    assert (item.count, item.targets) == (1, later.targets)


def test_of_several_reports_of_a_pod_the_latest_is_withdrawn() -> None:
    backlog, latest = Backlog(), pending("a", "x")
    latest.report = Report("PlacementInfeasible", "no node")
    for each in (pending("a", "x"), latest):
        backlog.put(each)
    backlog.withdraw(latest.subject)
    item = backlog.take_due(0.0)
    assert item is not None
    assert item.report.reason == "PlacementWaiting"


def test_item_is_not_taken_before_its_time() -> None:
    backlog = Backlog()
    backlog.put(pending("a", "x", 2.0))
    assert backlog.next_due_seconds() == 2.0
    assert taken(backlog, 1.9) == []
    assert taken(backlog, 2.0) == ["a/x"]
    assert backlog.next_due_seconds() == math.inf


def test_namespace_cannot_fill_the_backlog() -> None:
    backlog = Backlog()
    accepted = sum(backlog.put(pending("noisy", str(number))) for number in range(1000))
    assert accepted == MOST_ITEMS_OF_NAMESPACE
    assert backlog.put(pending("noisy", "0"))
    assert backlog.put(pending("quiet", "x"))
    assert len(taken(backlog)) == MOST_ITEMS_OF_NAMESPACE + 1
    assert backlog.put(pending("noisy", "again"))


def test_backlog_is_bounded() -> None:
    backlog = Backlog()
    accepted = sum(backlog.put(pending(f"n{number}", "x")) for number in range(3000))
    assert accepted == len(backlog) == MOST_ITEMS


def test_the_last_report_of_a_pod_is_withdrawn_unless_it_is_looked_up() -> None:
    backlog, looked_up = Backlog(), pending("a", "y")
    looked_up.lookups = 1
    for each in (pending("a", "x"), pending("a", "x"), looked_up):
        backlog.put(each)
    for each in (pending("a", "x"), looked_up, pending("b", "x")):
        backlog.withdraw(each.subject)
    assert len(backlog) == 2
    backlog.withdraw(pending("a", "x").subject)
    assert taken(backlog) == ["a/y"]
