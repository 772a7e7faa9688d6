"""The deadlines of a request by the `?timeout=` of its URL."""

import pytest
from aiohttp import web

from webhook.serving.connection import Connection
from webhook.serving.http.request_head import RegisteredTimeout, check_identity, time_limits


@pytest.mark.parametrize(
    ("timeout", "scorer_seconds"),
    [
        pytest.param("1s", 0.8, id="a fifth of a short timeout is kept for the answer"),
        pytest.param("2500ms", 2.0, id="a fifth is half a second"),
        pytest.param("10s", 9.5, id="of a long timeout no more than half a second is kept"),
        pytest.param("30s", 29.5, id="the longest that an API server allows"),
    ],
)
def test_the_scorer_ends_a_margin_before_the_client_gives_up(timeout: str, scorer_seconds: float) -> None:
    limits = time_limits(f"/mutate?timeout={timeout}", 30.0)
    assert limits.scorer_seconds == pytest.approx(scorer_seconds)


def test_deadlines_count_from_the_arrival() -> None:
    arrival = time_limits("/mutate?timeout=10s", 30.0).arrival(Connection(), "", 1000.0)
    assert (arrival.deadline_seconds, arrival.overdue_seconds) == (1009.5, 1010.0)


def test_without_a_timeout_the_scorer_has_no_deadline() -> None:
    arrival = time_limits("/mutate", 30.0).arrival(Connection(), "", 1000.0)
    assert (arrival.deadline_seconds, arrival.overdue_seconds) == (None, 1030.0)


def test_the_answer_is_given_up_after_the_longest_timeout_of_the_api() -> None:
    limits = time_limits("/mutate?timeout=60s", 30.0)
    assert limits.arrival(Connection(), "", 0.0).overdue_seconds == 30.0


def test_the_registered_timeout_of_the_webhook_does_not_limit_the_extender() -> None:
    """kube-scheduler waits for five seconds, and its URL has no timeout."""
    found = {path: time_limits(path, 2.0).whole_seconds for path in ("/mutate", "/extender/filter")}

    assert found == {"/mutate": 2.0, "/extender/filter": 5.0}
    assert time_limits("/extender/prioritize?timeout=9s", 2.0).whole_seconds == 5.0


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_a_body_that_is_not_compressed_is_accepted(encoding: str) -> None:
    check_identity(encoding)


@pytest.mark.parametrize("encoding", ["gzip", "identity, gzip"])
def test_a_compressed_body_is_rejected_with_its_encoding(encoding: str) -> None:
    with pytest.raises(web.HTTPUnsupportedMediaType) as refused:
        check_identity(encoding)
    assert refused.value.text == f"Content-Encoding is {encoding}; must be identity, or not given\n"


@pytest.mark.parametrize(
    ("timeouts", "seconds"),
    [
        ([{"timeoutSeconds": 5}, {"timeoutSeconds": 12}], 12.0),
        ([{}], 10.0),
        ([{"timeoutSeconds": 0}, {"timeoutSeconds": 31}, {"timeoutSeconds": "9"}], 30.0),
        ([], 30.0),
    ],
)
def test_the_longest_registered_timeout_counts(timeouts: list[dict[str, object]], seconds: float) -> None:
    registered = RegisteredTimeout()
    registered.follow({"webhooks": [{"timeoutSeconds": 3}]})

    registered.follow({"webhooks": timeouts})

    assert registered.seconds == seconds
