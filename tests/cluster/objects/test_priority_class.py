"""What is read of a PriorityClass."""

import pytest

from webhook.cluster.objects.priority_class import PriorityClass
from webhook.documents.field import InvalidInput


def test_class_that_is_malformed_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        PriorityClass.of({"metadata": {"name": "gold"}, "value": "high"})
    assert [error.path for error in caught.value.errors] == ["value"]
