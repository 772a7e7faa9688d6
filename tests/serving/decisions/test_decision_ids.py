"""Identifiers of decisions."""

import os
import uuid

import pytest

from webhook.serving.decisions.admissions import new_decision_id


def test_a_decision_is_a_random_uuid() -> None:
    stock: list[str] = []
    decisions = [new_decision_id(stock) for _ in range(1000)]

    assert len(set(decisions)) == 1000
    for text in decisions:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)


def test_decisions_have_ids_again_once_random_bytes_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> bytes:
        raise OSError("no random bytes")

    stock: list[str] = []
    with monkeypatch.context() as broken:
        broken.setattr(os, "urandom", fail)
        with pytest.raises(OSError, match="no random bytes"):
            new_decision_id(stock)

    assert uuid.UUID(new_decision_id(stock)).version == 4
