"""Identifiers of decisions."""

import uuid

from webhook.serving.decisions.admissions import DecisionIds


def test_a_decision_is_a_random_uuid() -> None:
    decide = DecisionIds()
    decisions = [decide() for _ in range(1000)]

    assert len(set(decisions)) == 1000
    for text in decisions:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
