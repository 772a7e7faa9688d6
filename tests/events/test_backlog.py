"""The backlog is bounded, takes namespaces in turns, and makes one item of equal ones."""

import math

from webhook.events.backlog import MOST_ITEMS, MOST_ITEMS_OF_NAMESPACE, Backlog, Observation, PendingEvent
from webhook.events.report import Report
from webhook.events.subject import ObjectReference, Subject


def event(namespace: str, name: str, due_seconds: float = 0.0) -> PendingEvent:
    target = ObjectReference("v1", "Pod", namespace, name, "uid")
    return PendingEvent(Report("PlacementWaiting", "waits"), 0.0, 0.0, due_seconds, 900.0, target, "source")


def taken(backlog: Backlog[PendingEvent], now: float = 0.0) -> list[str]:
    found = []
    while (item := backlog.take_due(now)) is not None:
        found.append(f"{item.namespace}/{item.target.name}")
    return found


def test_equal_items_become_one() -> None:
    backlog: Backlog[PendingEvent] = Backlog()
    assert all(backlog.put(event("a", "x", due)) for due in (1.0, 2.0, 3.0))
    item = backlog.take_due(1.0)
    assert item is not None
    assert (item.count, len(backlog)) == (3, 0)


def test_a_pod_that_is_named_like_the_prefix_of_another_is_taken_with_it() -> None:
    named, generated = Subject("a", "x", "", None, frozenset()), Subject("a", "", "x", None, frozenset())
    report, backlog = Report("PlacementWaiting", "waits"), Backlog[Observation]()
    assert all(backlog.put(Observation(report, 0.0, 0.0, 0.0, 900.0, each)) for each in (named, generated))
    item = backlog.take_due(0.0)
    assert item is not None
    assert (item.count, len(backlog)) == (2, 0)


def test_item_is_not_taken_before_its_time() -> None:
    backlog: Backlog[PendingEvent] = Backlog()
    backlog.put(event("a", "x", 2.0))
    assert backlog.next_due_seconds() == 2.0
    assert taken(backlog, 1.9) == []
    assert taken(backlog, 2.0) == ["a/x"]
    assert backlog.next_due_seconds() == math.inf


def test_namespaces_take_turns() -> None:
    backlog: Backlog[PendingEvent] = Backlog()
    for key in "xyz":
        backlog.put(event("noisy", key))
    backlog.put(event("quiet", "x"))
    assert taken(backlog) == ["noisy/x", "quiet/x", "noisy/y", "noisy/z"]


def test_namespace_cannot_fill_the_backlog() -> None:
    backlog: Backlog[PendingEvent] = Backlog()
    accepted = sum(backlog.put(event("noisy", str(number))) for number in range(1000))
    assert accepted == MOST_ITEMS_OF_NAMESPACE
    assert backlog.put(event("noisy", "0"))
    assert backlog.put(event("quiet", "x"))


def test_backlog_is_bounded() -> None:
    backlog: Backlog[PendingEvent] = Backlog()
    accepted = sum(backlog.put(event(f"n{number}", "x")) for number in range(3000))
    assert accepted == len(backlog) == MOST_ITEMS


def test_expedited_items_are_due() -> None:
    backlog: Backlog[PendingEvent] = Backlog()
    backlog.put(event("a", "x", 100.0))
    backlog.expedite(1.0)
    assert taken(backlog, 1.0) == ["a/x"]
