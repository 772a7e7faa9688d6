"""Times and decisions as records have them."""

import uuid
from datetime import UTC, datetime

from webhook.app import new_decision, rfc3339_now


def test_the_time_is_now_in_utc_with_microseconds() -> None:
    before = datetime.now(UTC)
    text = rfc3339_now()
    after = datetime.now(UTC)

    assert before <= datetime.fromisoformat(text) <= after
    assert len(text) == len("2026-01-31T12:00:00.000000Z")
    assert text.endswith("Z")


def test_a_decision_is_a_random_uuid() -> None:
    decisions = [new_decision() for _ in range(100)]

    assert len(set(decisions)) == 100
    for text in decisions:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
