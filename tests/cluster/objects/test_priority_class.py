"""What is read of a PriorityClass, and the class of a pod."""

import pytest

from webhook.cluster.objects.priority_class import PriorityClass, priority_class_named
from webhook.documents.field import InvalidInput


def test_class_that_is_malformed_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        PriorityClass.of({"metadata": {"name": "gold"}, "value": "high"})
    assert [error.path for error in caught.value.errors] == ["value"]


@pytest.mark.parametrize(
    ("name", "priority"),
    [
        pytest.param("", 10, id="the lowest default, as the API server takes"),
        pytest.param("plain", 5, id="one that is no default"),
        pytest.param("system-node-critical", 2_000_001_000, id="one that every cluster has"),
        pytest.param("absent", None, id="none of the cluster"),
    ],
)
def test_a_pod_has_the_class_that_it_names_or_else_the_default(name: str, priority: int | None) -> None:
    high, low = (PriorityClass(f"default-{value}", value, is_default=True) for value in (20, 10))
    classes = {each.name: each for each in (high, low, PriorityClass("plain", 5))}

    found = priority_class_named(name, classes)

    assert (found.value if found else None) == priority
    assert priority_class_named("", {}) == PriorityClass("", 0)
