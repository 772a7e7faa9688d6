"""The next item is that of the namespace or user with the least recent work."""

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import make_pod
from tests.support.servers.server import Clock, review_bytes
from webhook.serving.scheduling.fair_queue import FairQueue, UsageTracker, flows


def queue() -> tuple[FairQueue[str], UsageTracker]:
    usage = UsageTracker(Clock())
    return FairQueue(usage), usage


def test_items_of_equal_usage_are_taken_in_order() -> None:
    waiting, _ = queue()
    for item in ("a", "b", "c"):
        waiting.put(item, (item.encode(),), "")
    assert [waiting.take() for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(IndexError):
        waiting.take()


def test_a_flow_without_usage_goes_first() -> None:
    waiting, usage = queue()
    usage.charge((b"mallory",), 1.0)
    for _time in range(20):
        waiting.put("mallory", (b"mallory",), "")
    waiting.put("jane", (b"jane",), "")
    assert waiting.take() == "jane"


def test_the_work_of_an_address_that_others_did_not_wait_for_is_forgotten() -> None:
    waiting, _ = queue()
    for item in ("a1", "b1"):
        waiting.put(item, (b"",), item[0])
    waiting.charge("a", 5.0)
    assert waiting.take() == "b1"
    waiting.remove("a1")
    waiting.charge("b", 0.1)
    for item in ("a2", "b2"):
        waiting.put(item, (b"",), item[0])

    assert waiting.take() == "a2"


def test_waiting_flows_get_equal_shares_of_time() -> None:
    """An item of Mallory costs ten times as much, so ten items of Jane follow each of hers."""
    waiting, usage = queue()
    cost_seconds = {"m": 1.0, "j": 0.1}
    for number in range(5):
        waiting.put(f"m{number}", (b"m",), "")
    for number in range(20):
        waiting.put(f"j{number}", (b"j",), "")
    order = []
    while len(waiting):
        order.append(waiting.take())
        usage.charge((order[-1][:1].encode(),), cost_seconds[order[-1][0]])
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
def test_many_names_do_not_increase_the_share(of_mallory: list[tuple[bytes, ...]], of_jane: tuple[bytes, ...]) -> None:
    waiting, usage = queue()
    for names in of_mallory:
        waiting.put("mallory", names, "")
    usage.charge(of_mallory[0], 0.2)
    waiting.put("jane", of_jane, "")
    assert waiting.take() == "jane"


def test_addresses_have_equal_shares_of_time_whatever_names_they_use() -> None:
    """An item of the client that makes names up costs ten times as much, so ten items of the other follow each."""
    waiting, _ = queue()
    for number in range(30):
        waiting.put("forged", (f"new {number}".encode(),), "10.0.0.9")
        waiting.put("real", (b"jane",), "10.0.0.1")
    taken = []
    for _ in range(23):
        taken.append(waiting.take())
        waiting.charge(*(("10.0.0.9", 0.1) if taken[-1] == "forged" else ("10.0.0.1", 0.01)))
    assert 2 <= taken.count("forged") <= 3
    assert taken[:2] == ["forged", "real"]


def test_an_address_that_begins_to_wait_does_not_catch_up() -> None:
    waiting, _ = queue()

    def served(times: int) -> list[str]:
        taken = []
        for _ in range(times):
            taken.append(waiting.take())
            waiting.charge(taken[-1], 1.0)
        return taken

    for _ in range(30):
        waiting.put("busy", (b"jane",), "busy")
    served(10)
    for _ in range(30):
        waiting.put("late", (b"joe",), "late")
    assert served(10).count("late") in (5, 6)


@pytest.mark.parametrize(
    ("ahead_seconds", "first"),
    [
        pytest.param(0.005, "single", id="it has had little more than the others"),
        pytest.param(0.05, "busy", id="it has had its share"),
    ],
)
def test_an_address_with_one_item_goes_before_those_that_queue(ahead_seconds: float, first: str) -> None:
    waiting, _ = queue()
    for _ in range(20):
        waiting.put("busy", (b"jane",), "10.0.0.9")
    waiting.put("single", (b"joe",), "10.0.0.1")
    waiting.charge("10.0.0.1", ahead_seconds)
    assert waiting.take() == first


def test_an_address_with_one_item_gets_no_more_time_than_one_that_queues() -> None:
    waiting, _ = queue()
    for _ in range(20):
        waiting.put("busy", (b"jane",), "busy")
    waiting.put("single", (b"joe",), "single")
    served = []
    for _ in range(100):
        served.append(waiting.take())
        waiting.put(served[-1], (b"any",), served[-1])
        waiting.charge(served[-1], 0.003)
    assert 48 <= served.count("busy") <= 50


def test_work_while_nothing_waits_counts_for_no_address() -> None:
    waiting, _ = queue()
    waiting.charge("10.0.0.1", 100.0)
    waiting.put("early", (b"jane",), "10.0.0.1")
    waiting.put("late", (b"jane",), "10.0.0.9")
    assert waiting.take() == "early"


def test_the_last_item_of_an_address_is_that_of_the_flow_with_the_most_work() -> None:
    waiting, usage = queue()
    usage.charge((b"mallory",), 1.0)
    for item, flow, address in [
        ("m1", b"mallory", "a"),
        ("m2", b"mallory", "a"),
        ("j", b"jane", "a"),
        ("x", b"x", "b"),
    ]:
        waiting.put(item, (flow,), address)
    assert waiting.waiting_of("a") == 3
    assert [waiting.take_last("a") for _ in range(3)] == ["m2", "m1", "j"]
    assert waiting.take() == "x"


def test_usage_decays_by_half_in_five_seconds() -> None:
    clock = Clock()
    usage = UsageTracker(clock)
    usage.charge((b"a",), 0.8)
    clock.seconds += 10
    assert usage.used_seconds((b"a",)) == pytest.approx(0.2)
    assert len(usage.used) == 1
    clock.seconds += 1000
    assert usage.used_seconds((b"a",)) == 0.0
    assert len(usage.used) == 0


def test_a_removed_item_is_not_taken() -> None:
    waiting, _ = queue()
    first, second = "first", "second"
    waiting.put(first, (b"a",), "")
    waiting.put(second, (b"a",), "")
    waiting.remove(first)
    waiting.remove("never there")
    assert (waiting.take(), len(waiting)) == (second, 0)


def test_flows_with_the_least_usage_are_forgotten_first() -> None:
    usage = UsageTracker(Clock())
    usage.charge((b"heavy",), 100.0)
    for number in range(10_000):
        usage.charge((b"%d" % number,), 0.001)
    assert usage.used_seconds((b"heavy",)) == pytest.approx(100.0)
    assert len(usage.used) <= 4097


@given(st.randoms(use_true_random=False), st.integers(2, 6))
def test_every_waiting_flow_gets_its_fair_share(chance: random.Random, flow_count: int) -> None:
    """While all flows wait, their work differs by one item at most."""
    waiting, usage = queue()
    names = [b"%d" % number for number in range(flow_count)]
    for name in names:
        for _time in range(60):
            waiting.put(name.decode(), (name,), "")
    worked = dict.fromkeys(names, 0.0)
    for _turn in range(50):
        name = waiting.take().encode()
        cost_seconds = chance.uniform(0.01, 1.0)
        usage.charge((name,), cost_seconds)
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
def test_the_flows_are_read_from_the_review(user: str, expected: tuple[bytes, ...]) -> None:
    body = review_bytes(make_pod("a").obj(), userInfo={"username": user})
    assert flows(body) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"[]", orjson.dumps({"namespace": 1}), b"\xff" * 5000, b'"namespace":"'])
def test_a_body_that_is_no_review_has_the_flow_without_name(body: bytes) -> None:
    assert flows(body) == (b"namespace",)
