"""Identifiers of decisions."""

import uuid
from itertools import islice

from webhook.serving.decisions.admissions import decision_ids


def test_a_decision_is_a_random_uuid() -> None:
    decisions = [*islice(decision_ids(), 1000)]

    assert len(set(decisions)) == 1000
    for text in decisions:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
