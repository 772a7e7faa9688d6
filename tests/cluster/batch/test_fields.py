"""Fields of batch objects that have another type or size than expected."""

from typing import Any

import pytest

from webhook.cluster.batch.fields import amount, amounts, count, number
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


@pytest.mark.parametrize(
    ("resource", "quantity", "expected"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", 2, 2000),
        ("memory", "1Ki", 1024),
        ("memory", "1500m", 2),
        ("nvidia.com/gpu", "500m", 1),
        ("nvidia.com/gpu", "0", 0),
        ("nvidia.com/gpu", "1001m", 2),
        ("nvidia.com/gpu", "many", None),
        ("nvidia.com/gpu", None, None),
        ("nvidia.com/gpu", ["4"], None),
    ],
)
def test_part_of_a_unit_counts_as_one_and_what_is_no_quantity_as_unset(
    resource: str, quantity: Any, expected: int | None
) -> None:
    """Only cpu has parts, thousandths of a core."""
    content = {"spec": {"quota": quantity, "limits": {resource: quantity, "other": "3"}}}
    assert amount(content, resource, "spec", "quota") == expected
    kept = {} if expected is None else {resource: expected}
    assert amounts(content, "spec", "limits") == {**kept, "other": 3}


@pytest.mark.parametrize(
    ("value", "found", "counted"),
    [
        (3, 3.0, 3),
        (0, 0.0, 0),
        (-1, -1.0, 0),
        (2.7, 2.7, 2),
        (True, None, 0),
        ("3", None, 0),
        (None, None, 0),
        (2**31 - 1, 2.0**31 - 1, 2**31 - 1),
        (2**31, 2.0**31, 0),
    ],
)
def test_count_is_a_positive_number_of_an_int32(value: Any, found: float | None, counted: int) -> None:
    assert (number({"of": value}, "of"), count({"of": value}, "of")) == (found, counted)
