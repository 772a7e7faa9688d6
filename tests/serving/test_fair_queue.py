"""Whoever has had the least work lately is next, whether a namespace or a user."""

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import make_pod
from tests.support.server import Clock, review_bytes
from webhook.serving.fair_queue import FairQueue, Ledger, payers


def queue() -> tuple[FairQueue[str], Ledger]:
    ledger = Ledger(Clock())
    return FairQueue(ledger), ledger


def test_equals_come_in_the_order_of_their_coming() -> None:
    waiting, _ = queue()
    for item in ("a", "b", "c"):
        waiting.put(item, (item.encode(),))
    assert [waiting.take() for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(IndexError):
        waiting.take()


def test_who_has_had_work_lets_others_go_first() -> None:
    waiting, ledger = queue()
    ledger.charge((b"mallory",), 1.0)
    for _time in range(20):
        waiting.put("mallory", (b"mallory",))
    waiting.put("jane", (b"jane",))
    assert waiting.take() == "jane"


def test_each_gets_the_same_share_while_others_wait() -> None:
    """Mallory's cost ten times as much each: so ten of Jane's come for each of hers."""
    waiting, ledger = queue()
    cost_seconds = {"m": 1.0, "j": 0.1}
    for number in range(5):
        waiting.put(f"m{number}", (b"m",))
    for number in range(20):
        waiting.put(f"j{number}", (b"j",))
    order = []
    while len(waiting):
        order.append(waiting.take())
        ledger.charge((order[-1][:1].encode(),), cost_seconds[order[-1][0]])
    assert order[0] == "m0"
    assert 9 <= [item[0] for item in order[1:]].index("m") <= 11
    assert sum(item[0] == "m" for item in order[:22]) <= 3


@pytest.mark.parametrize(
    ("of_mallory", "of_jane"),
    [
        pytest.param(
            [(b"namespace %d" % number, b"user mallory") for number in range(10)],
            (b"namespace x", b"user jane"),
            id="one user, many namespaces",
        ),
        pytest.param(
            [(b"namespace m", b"user %d" % number) for number in range(10)],
            (b"namespace x", b"user jane"),
            id="one namespace, many users",
        ),
    ],
)
def test_no_more_is_had_by_many_names(of_mallory: list[tuple[bytes, ...]], of_jane: tuple[bytes, ...]) -> None:
    waiting, ledger = queue()
    for owner in of_mallory:
        waiting.put("mallory", owner)
    ledger.charge(of_mallory[0], 0.2)
    waiting.put("jane", of_jane)
    assert waiting.take() == "jane"


def test_work_is_forgotten_by_half_in_five_seconds() -> None:
    clock = Clock()
    ledger = Ledger(clock)
    ledger.charge((b"a",), 0.8)
    clock.seconds += 10
    assert ledger.worked_seconds((b"a",)) == pytest.approx(0.2)
    assert len(ledger) == 1
    clock.seconds += 1000
    assert ledger.worked_seconds((b"a",)) == 0.0
    assert len(ledger) == 0


def test_one_who_leaves_the_queue_has_no_turn() -> None:
    waiting, _ = queue()
    first, second = "first", "second"
    waiting.put(first, (b"a",))
    waiting.put(second, (b"a",))
    waiting.remove(first)
    waiting.remove("never there")
    assert (waiting.take(), len(waiting)) == (second, 0)


def test_so_many_names_are_remembered_and_those_with_the_most_work_longest() -> None:
    ledger = Ledger(Clock())
    ledger.charge((b"heavy",), 100.0)
    for number in range(10_000):
        ledger.charge((b"%d" % number,), 0.001)
    assert ledger.worked_seconds((b"heavy",)) == pytest.approx(100.0)
    assert len(ledger) <= 4097


@given(st.randoms(use_true_random=False), st.integers(2, 6))
def test_nobody_who_waits_gets_less_than_a_fair_share(chance: random.Random, owners: int) -> None:
    """While all of them wait, no two differ in work by more than the largest piece of it."""
    waiting, ledger = queue()
    names = [b"%d" % number for number in range(owners)]
    for name in names:
        for _time in range(60):
            waiting.put(name.decode(), (name,))
    worked = dict.fromkeys(names, 0.0)
    for _turn in range(50):
        name = waiting.take().encode()
        cost_seconds = chance.uniform(0.01, 1.0)
        ledger.charge((name,), cost_seconds)
        worked[name] += cost_seconds
        assert max(worked.values()) - min(worked.values()) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param("jane", (b"namespace team-a", b"user jane"), id="a person"),
        pytest.param("system:serviceaccount:kube-system:job-controller", (b"namespace team-a",), id="a controller"),
        pytest.param("system:admin", (b"namespace team-a",), id="the cluster's own"),
    ],
)
def test_who_pays_stands_in_the_review(user: str, expected: tuple[bytes, ...]) -> None:
    body = review_bytes(make_pod("a").obj(), userInfo={"username": user})
    assert payers(body) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"[]", orjson.dumps({"namespace": 1}), b"\xff" * 5000, b'"namespace":"'])
def test_what_is_no_review_is_paid_by_the_nameless(body: bytes) -> None:
    assert payers(body) == (b"namespace",)
