"""Reviews of flows and addresses that exceed their time slices go to the worker; an API server is spared."""

import pytest

from tests.support.attacks import attack_review
from tests.support.servers.server import Clock
from webhook.serving.scheduling.fair_queue import flows
from webhook.serving.scheduling.overruns import Overruns

FORGER, API_SERVER = "10.0.0.9", "10.0.0.1"


def review_of(number: int) -> bytes:
    """A review of a user and a namespace of its own."""
    return attack_review(number, {}, user=f"user-{number}", namespace=f"team-{number}")


def tried(overruns: Overruns, body: bytes, address: str, *, is_costly: bool) -> bool:
    """Whether the event loop tries a review of `address`, which then takes its time slice if it is costly."""
    is_tried = not overruns.exceeding(body, address, regains=True)
    if is_tried and is_costly:
        overruns.add_slice(body, address)
    return is_tried


def test_a_client_that_names_ever_other_users_exceeds_the_share_of_its_address() -> None:
    overruns = Overruns(Clock())
    reviews = [tried(overruns, review_of(number), FORGER, is_costly=True) for number in range(100)]
    assert 10 <= sum(reviews) <= 12
    assert tried(overruns, review_of(1000), API_SERVER, is_costly=False)


def test_the_address_is_charged_for_as_long_as_its_reviews_are_costly() -> None:
    clock = Clock()
    overruns = Overruns(clock)
    for number in range(20):
        overruns.add_slice(review_of(number), FORGER)
    for number in range(100, 200):
        clock.seconds += 1
        charged = overruns.exceeding(review_of(number), FORGER, regains=True)
        assert charged == (*flows(review_of(number)), b"address 10.0.0.9")
        overruns.add_work(charged, 0.04)
    clock.seconds += 30
    assert tried(overruns, review_of(1000), FORGER, is_costly=False)


def test_the_next_reviews_of_an_address_with_overruns_have_a_shorter_slice() -> None:
    clock = Clock()
    overruns = Overruns(clock)
    whole = overruns.slice_seconds(FORGER)
    for number in range(3):
        overruns.add_slice(review_of(number), FORGER)
    assert overruns.slice_seconds(FORGER) < whole / 2
    assert overruns.slice_seconds(API_SERVER) == whole
    clock.seconds += 30
    assert overruns.slice_seconds(FORGER) == whole


@pytest.mark.parametrize("users", [1, 5])
def test_costly_pods_of_a_few_users_leave_an_api_server_its_share(users: int) -> None:
    """Of eleven reviews one is of them; they are kept from the event loop by their own flows."""
    clock = Clock()
    overruns = Overruns(clock)
    for number in range(500):
        clock.seconds += 0.01
        for other in range(10):
            assert tried(overruns, review_of(1000 + other), API_SERVER, is_costly=False)
        body = review_of(number % users)
        charged = overruns.exceeding(body, API_SERVER, regains=True)
        assert charged in ((), flows(body))
        if charged:
            overruns.add_work(charged, 0.15)
        else:
            overruns.add_slice(body, API_SERVER)
    assert overruns.exceeding(review_of(0), API_SERVER, regains=True)


def test_work_within_a_time_slice_is_no_overrun() -> None:
    overruns = Overruns(Clock())
    overruns.add_work((b"user jane",), 0.009)
    assert not overruns.used


def test_large_reviews_pay_nothing_off() -> None:
    overruns = Overruns(Clock())
    for number in range(11):
        overruns.add_slice(review_of(number), FORGER)
    for number in range(100):
        assert overruns.exceeding(review_of(1000 + number), FORGER, regains=False)
