"""Which pod of the table a pod of the cluster is, and which pods are given up."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import make_pod
from webhook.cluster.pods.pending_pods import PendingPod
from webhook.kube.pod.gang_key import GangKey
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.placement.waiting.pod_table import MOST_OF_A_NAMESPACE, PodTable

POD = WaitingPod.of(make_pod("p").obj())


def identity(name: str = "", generate_name: str = "j-", controller: str = "u", token: str = "") -> PodIdentity:
    return PodIdentity("x", name, generate_name, controller, token)


def admit(table: PodTable, admitted: PodIdentity, until_seconds: float = 60) -> int:
    return table.admit(admitted, 0, b"", POD, until_seconds)


def take(table: PodTable, seen: PodIdentity) -> int | None:
    """Remove and return the pod that `seen` is."""
    number = table.find(seen)
    if number is not None:
        table.remove(number)
    return number


def give_up(table: PodTable, now_seconds: float) -> list[int]:
    numbers = []
    while table.unseen and (number := table.given_up(now_seconds)) is not None:
        table.remove(number)
        numbers.append(number)
    return numbers


@pytest.mark.parametrize(
    ("admitted", "seen"),
    [
        pytest.param(identity("p"), identity("p"), id="by its name"),
        pytest.param(identity(token="a"), identity("j-1", token="a"), id="by its token"),
        pytest.param(identity(), identity("j-1"), id="by its controller"),
        pytest.param(identity(generate_name="", controller=""), identity("p", "", ""), id="a pod without anything"),
    ],
)
def test_a_pod_is_found(admitted: PodIdentity, seen: PodIdentity) -> None:
    table = PodTable()
    number = admit(table, admitted)
    assert take(table, seen) == number
    assert take(table, seen) is None
    assert len(table) == 0


@pytest.mark.parametrize(
    ("admitted", "seen"),
    [
        pytest.param(identity("p"), identity("q"), id="of another name"),
        pytest.param(identity(token="a"), identity("j-1", token="b"), id="of another token"),
        pytest.param(identity(), identity("k-1", "k-"), id="of another generateName"),
        pytest.param(identity(), identity("j-1", controller="v"), id="of another controller"),
        pytest.param(identity("p"), identity("p")._replace(namespace="y"), id="of another namespace"),
    ],
)
def test_another_pod_is_not_found(admitted: PodIdentity, seen: PodIdentity) -> None:
    table = PodTable()
    admit(table, admitted)
    assert table.find(seen) is None


def test_pods_of_one_controller_are_found_in_their_order() -> None:
    table = PodTable()
    numbers = [admit(table, identity()) for _ in range(3)]
    assert [take(table, identity(f"j-{number}")) for number in range(4)] == [*numbers, None]


def test_only_a_name_or_a_token_proves_that_a_pod_is_the_same() -> None:
    table = PodTable()
    admit(table, identity())
    number = admit(table, identity(token="a"))
    assert table.find_admitted(identity()) is None
    assert table.find_admitted(identity(token="a")) == number


def test_pods_are_given_up_after_their_time() -> None:
    table = PodTable()
    first, second = admit(table, identity("p"), 10), admit(table, identity("q"), 20)
    assert give_up(table, 9) == []
    assert give_up(table, 10) == [first]
    assert give_up(table, 100) == [second]


def test_the_oldest_pods_are_given_up_first_when_memory_is_short() -> None:
    table = PodTable(budget_bytes=20_000 + POD.signature.size_bytes)
    numbers = [admit(table, identity(f"p{number}")) for number in range(5)]
    assert give_up(table, 0) == numbers[:3]


def pending(name: str, namespace: str = "x", created: str = "10", priority: int = 0, content: str = "a") -> PendingPod:
    found = PodIdentity(namespace, name, "", "", "")
    return PendingPod(found, f"uid-{name}", created, priority, content.encode(), is_waiting=True, nominated=None)


GANGS: tuple[GangKey, ...] = (GangKey("x", "gang", "one"), GangKey("x", "gang", "two"))
TABLE_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), st.sampled_from("xyz"), st.sampled_from(("", "p1", "p2"))),
        st.tuples(st.just("see"), st.sampled_from("xyz"), st.sampled_from(("p1", "p2", "p3"))),
        st.tuples(st.just("remove"), st.integers(1, 8), st.none()),
        st.tuples(st.just("join"), st.integers(1, 8), st.sampled_from(GANGS)),
        st.tuples(st.just("hold"), st.sampled_from(GANGS), st.none()),
    ),
    max_size=14,
)


class PlainTable:
    """The table written plainly: a list of (number, namespace, name, whether it is seen, gang)."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, str, bool, GangKey | None]] = []
        self.held: set[GangKey] = set()

    def without(self, number: int) -> None:
        gone = [each for each in self.rows if each[0] == number]
        self.rows = [each for each in self.rows if each[0] != number]
        for _, _, _, _, gang in gone:
            if gang is not None and not self.members(gang):
                self.held.discard(gang)

    def members(self, gang: GangKey) -> list[int]:
        return [number for number, _, _, _, each in self.rows if each == gang]

    def find(self, namespace: str, name: str) -> int | None:
        own = [each for each in self.rows if each[1] == namespace]
        seen = [number for number, _, each, is_seen, _ in own if each == name and is_seen]
        unseen = [each for each in own if not each[3]]
        named = [number for number, _, each, _, _ in unseen if each == name]
        unnamed = [number for number, _, each, _, _ in unseen if not each]
        return next(iter([*seen, *named, *unnamed]), None)

    def to_make_room(self, namespace: str, most: int) -> int | None:
        if len(self.rows) < most:
            return None
        counts = Counter(each[1] for each in self.rows)
        largest = next(each for each in counts if counts[each] == max(counts.values()))
        if counts[largest] <= counts[namespace] + 1:
            return 0
        return [number for number, each, _, _, _ in self.rows if each == largest][-1]


class BothTables:
    """The table and the plain one, with the same steps."""

    def __init__(self) -> None:
        self.table, self.plain, self.last = PodTable(most=4), PlainTable(), 0

    def admit(self, namespace: str, name: str) -> None:
        self.last += 1
        assert self.table.admit(PodIdentity(namespace, name, "", "", ""), 0, b"", POD, self.last) == self.last
        self.plain.rows.append((self.last, namespace, name, False, None))

    def see(self, namespace: str, name: str) -> None:
        plain, number = self.plain, self.plain.find(namespace, name)
        assert self.table.find(PodIdentity(namespace, name, "", "", "")) == number
        found, is_changed = self.table.see(number, pending(name, namespace))
        if number is None:
            self.last += 1
            plain.rows.append((self.last, namespace, name, True, None))
            assert (found, is_changed) == (self.last, True)
        else:
            plain.rows = [(*each[:2], name, True, each[4]) if each[0] == number else each for each in plain.rows]
            assert found == number

    def remove(self, number: int, _: None) -> None:
        assert (self.table.remove(number) is None) == all(each[0] != number for each in self.plain.rows)
        self.plain.without(number)

    def join(self, number: int, gang: GangKey) -> None:
        if any(each[0] == number and each[4] is None for each in self.plain.rows):
            self.table.join(number, gang, 2)
            self.plain.rows = [(*each[:4], gang) if each[0] == number else each for each in self.plain.rows]

    def hold(self, gang: GangKey, _: None) -> None:
        if self.plain.members(gang):
            self.table.held.add(gang)
            self.plain.held.add(gang)

    def compare(self) -> None:
        table, rows = self.table, self.plain.rows
        assert [*table] == [each[0] for each in rows]
        assert table.held == self.plain.held
        assert all(sorted(table.members(gang)) == self.plain.members(gang) for gang in GANGS)
        assert [*table.unseen] == [each[0] for each in rows if not each[3]]
        assert table.seen == {(each[1], each[2]): each[0] for each in rows if each[3]}
        for namespace in "xyz":
            victim = self.plain.to_make_room(namespace, 4) or 0
            assert (table.to_make_room(namespace) or 0) in {victim, *ties(self.plain)}


@given(TABLE_STEPS)
def test_table_equals_a_plain_list(steps: list[tuple[str, Any, Any]]) -> None:
    both = BothTables()
    for step, first, second in steps:
        getattr(both, step)(first, second)
        both.compare()


def test_gang_is_held_until_its_last_pod_is_gone() -> None:
    both, gang = BothTables(), GANGS[0]
    for number in (1, 2):
        both.admit("x", "")
        both.join(number, gang)
    both.hold(gang, None)
    for number in (2, 1):
        both.remove(number, None)
        both.compare()


@pytest.mark.parametrize(("pods", "has_place"), [(MOST_OF_A_NAMESPACE - 1, True), (MOST_OF_A_NAMESPACE, False)])
def test_pods_that_are_not_seen_leave_no_place_for_more_of_their_namespace(pods: int, *, has_place: bool) -> None:
    table = PodTable()
    for _ in range(pods):
        admit(table, identity())

    assert table.has_place("x") is has_place
    assert table.has_place("y")
    table.remove(1)
    assert table.has_place("x")


def ties(plain: PlainTable) -> list[int]:
    """Return the last pods of the namespaces with the most pods, if there are several."""
    counts = Counter(each[1] for each in plain.rows)
    largest = [each for each in counts if counts[each] == max(counts.values())]
    return [[each[0] for each in plain.rows if each[1] == name][-1] for name in largest] if len(largest) > 1 else []


@pytest.mark.parametrize(
    ("others", "own", "victim"),
    [
        pytest.param(2, 0, None, id="there is room"),
        pytest.param(4, 0, 4, id="the newest of the namespace with the most"),
        pytest.param(3, 1, 3, id="also for a namespace with pods"),
        pytest.param(2, 2, 0, id="none if it has as many"),
        pytest.param(3, 2, 0, id="none if it would have as many"),
        pytest.param(0, 4, 0, id="none if it has the most"),
    ],
)
def test_full_table_gives_room_to_the_namespace_with_fewer_pods(others: int, own: int, victim: int | None) -> None:
    table = PodTable(most=4)
    for namespace in ["x"] * others + ["y"] * own:
        table.admit(PodIdentity(namespace, "", "j-", "u", ""), 0, b"", POD, 60)

    assert table.to_make_room("y") == victim
    assert table.is_incomplete == (victim is not None)


@pytest.mark.parametrize(("content", "is_changed"), [("a", False), ("b", True)])
def test_pod_that_changes_may_no_longer_be_too_expensive(content: str, *, is_changed: bool) -> None:
    table = PodTable()
    number, _ = table.see(None, pending("p"))
    table[number].is_too_expensive = True

    assert table.see(number, pending("p", created="11", priority=7, content=content)) == (number, is_changed)

    assert table[number].is_too_expensive is not is_changed
    assert table[number].order == (-7, "11", number)


@pytest.mark.parametrize(("now_seconds", "is_given_up"), [(59.9, False), (60, True)])
def test_pod_is_given_up_at_its_time(now_seconds: float, *, is_given_up: bool) -> None:
    table = PodTable()
    number = admit(table, identity("p"), until_seconds=60)

    assert table.given_up(now_seconds) == (number if is_given_up else None)


def test_pods_of_one_template_share_its_memory() -> None:
    other = WaitingPod.of(make_pod("q").obj())
    table = PodTable(budget_bytes=2 * 8192 + POD.signature.size_bytes)
    for _ in range(2):
        table.admit(identity("p"), 0, b"", POD, 60)

    assert table.given_up(0) is None
    table.admit(identity("q"), 0, b"", other, 60)
    assert table.given_up(0) == 1
    table.remove(3)
    assert table.given_up(0) is None
