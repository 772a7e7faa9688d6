"""Times as records have them."""

from datetime import UTC, datetime

from webhook.serving.clock import rfc3339_now


def test_the_time_is_now_in_utc_with_microseconds() -> None:
    before = datetime.now(UTC)
    text = rfc3339_now()
    after = datetime.now(UTC)

    assert before <= datetime.fromisoformat(text) <= after
    assert len(text) == len("2026-01-31T12:00:00.000000Z")
    assert text.endswith("Z")
