"""The deadlines of a request by the `?timeout=` of its URL."""

import pytest

from webhook.serving.http.request_head import time_limits


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
    timeouts = time_limits("/mutate?timeout=10s", 30.0).timeouts(1000.0)
    assert (timeouts.deadline_seconds, timeouts.overdue_seconds) == (1009.5, 1010.0)


def test_without_a_timeout_the_scorer_has_no_deadline() -> None:
    timeouts = time_limits("/mutate", 30.0).timeouts(1000.0)
    assert (timeouts.deadline_seconds, timeouts.overdue_seconds) == (None, 1030.0)


def test_the_answer_is_given_up_after_the_longest_timeout_of_the_api() -> None:
    limits = time_limits("/mutate?timeout=60s", 30.0)
    assert limits.timeouts(0.0).overdue_seconds == 30.0
