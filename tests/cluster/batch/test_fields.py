"""Fields of batch objects that have another type or size than expected."""

from typing import Any

import pytest

from webhook.cluster.batch.fields import number
from webhook.cluster.optional_kinds import BATCH_KINDS


@pytest.mark.parametrize("kind", BATCH_KINDS)
@pytest.mark.parametrize("content", [{}, {"spec": 3, "status": []}, {"spec": {"resourceGroups": 3}, "metadata": None}])
def test_unexpected_fields_count_as_not_set(kind: str, content: dict[str, Any]) -> None:
    row = BATCH_KINDS[kind]
    assert row.read(content) == row.read({})


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_facts_are_bounded(kind: str) -> None:
    long = "x" * 10_000
    amounts = {f"{long}{index}": "1" for index in range(1000)}
    spec = {"queue": long, "capability": amounts, "clusterQueue": long, "nodeLabels": amounts, "parentQueue": long}
    facts = BATCH_KINDS[kind].read({"metadata": {"name": long}, "spec": spec, "status": {"allocated": amounts}})
    assert len(str(facts)) < 64 * 1024


def test_number_that_is_too_large_for_a_float_is_none() -> None:
    assert number({"count": 10**400}, "count") is None
