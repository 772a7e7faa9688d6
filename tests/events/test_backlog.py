"""The backlog is bounded, takes namespaces in turns, and makes one item of equal ones."""

from dataclasses import dataclass

from webhook.events.backlog import MOST_ITEMS, MOST_ITEMS_OF_NAMESPACE, Backlog


@dataclass(eq=False)
class Thing:
    namespace: str
    key: str
    due_seconds: float = 0.0
    count: int = 1

    def absorb(self, later: "Thing") -> None:
        self.count += later.count


def taken(backlog: Backlog[Thing], now: float = 0.0) -> list[str]:
    found = []
    while (thing := backlog.take_due(now)) is not None:
        found.append(f"{thing.namespace}/{thing.key}")
    return found


def test_equal_items_become_one() -> None:
    backlog: Backlog[Thing] = Backlog()
    assert all(backlog.put(Thing("a", "x", due)) for due in (1.0, 2.0, 3.0))
    thing = backlog.take_due(1.0)
    assert thing is not None
    assert (thing.count, len(backlog)) == (3, 0)


def test_item_is_not_taken_before_its_time() -> None:
    backlog: Backlog[Thing] = Backlog()
    backlog.put(Thing("a", "x", 2.0))
    assert backlog.next_due_seconds() == 2.0
    assert taken(backlog, 1.9) == []
    assert taken(backlog, 2.0) == ["a/x"]
    assert backlog.next_due_seconds() is None


def test_namespaces_take_turns() -> None:
    backlog: Backlog[Thing] = Backlog()
    for key in "xyz":
        backlog.put(Thing("noisy", key))
    backlog.put(Thing("quiet", "x"))
    assert taken(backlog) == ["noisy/x", "quiet/x", "noisy/y", "noisy/z"]


def test_namespace_cannot_fill_the_backlog() -> None:
    backlog: Backlog[Thing] = Backlog()
    accepted = sum(backlog.put(Thing("noisy", str(number))) for number in range(1000))
    assert accepted == MOST_ITEMS_OF_NAMESPACE
    assert backlog.put(Thing("noisy", "0"))
    assert backlog.put(Thing("quiet", "x"))


def test_backlog_is_bounded() -> None:
    backlog: Backlog[Thing] = Backlog()
    accepted = sum(backlog.put(Thing(f"n{number}", "x")) for number in range(3000))
    assert accepted == len(backlog) == MOST_ITEMS


def test_expedited_items_are_due() -> None:
    backlog: Backlog[Thing] = Backlog()
    backlog.put(Thing("a", "x", 100.0))
    backlog.expedite(1.0)
    assert taken(backlog, 1.0) == ["a/x"]
