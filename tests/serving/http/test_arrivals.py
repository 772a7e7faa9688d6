"""Accepted connections begin their handshakes in fair turns by address; a flood costs only those that cause it."""

import pytest

from webhook.serving.http.arrivals import Arrivals


def arrivals(*addresses: str) -> tuple[Arrivals[int], list[int]]:
    """Arrivals numbered in this order, and those that were closed."""
    found: Arrivals[int] = Arrivals()
    closed = [found.put(number, address) for number, address in enumerate(addresses)]
    return found, [number for number in closed if number is not None]


def test_addresses_take_turns() -> None:
    found, _ = arrivals("a", "a", "a", "b", "c")
    assert [found.take() for _ in range(5)] == [(0, "a"), (3, "b"), (4, "c"), (1, "a"), (2, "a")]
    assert len(found) == 0


def test_of_several_addresses_the_one_with_the_most_loses_its_last_connection() -> None:
    found, closed = arrivals(*["flood"] * 64, "few", "few", "flood")
    assert closed == [63, 62, 66]
    assert len(found) == 64


@pytest.mark.parametrize(
    ("of_the_flood", "of_others", "is_full"),
    [
        pytest.param(511, 0, False, id="another address may be behind it"),
        pytest.param(512, 0, True, id="the rest of one address waits in the kernel"),
        pytest.param(512, 1, False, id="the rest of several is closed"),
    ],
)
def test_the_connections_of_one_address_are_not_closed(of_the_flood: int, of_others: int, is_full: bool) -> None:
    found, closed = arrivals(*["flood"] * of_the_flood, *["few"] * of_others)
    assert found.is_full == is_full
    assert len(closed) == of_others


@pytest.mark.parametrize(("of_the_most", "closed"), [(63, []), (64, [63])])
def test_up_to_64_connections_of_several_addresses_wait(of_the_most: int, closed: list[int]) -> None:
    assert arrivals(*["most"] * of_the_most, "other")[1] == closed
