"""LimitRanges, with the defaults that the API server adds to them."""

import pytest

from webhook.cluster.objects.limit_range import LimitRange
from webhook.documents.field import InvalidInput


def limit_range(item: object) -> dict[str, object]:
    return {"metadata": {"namespace": "team-a", "name": "limits"}, "spec": {"limits": [item]}}


def test_the_bounds_of_containers_are_their_defaults() -> None:
    found = LimitRange.of(
        limit_range({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m", "memory": "1Gi"}})
    )

    (item,) = found.items
    assert (found.namespace, found.name) == ("team-a", "limits")
    assert item.default == {"cpu": "2"}
    # A default limit is also the default request, before the least amount.
    assert item.default_request == {"cpu": "2", "memory": "1Gi"}


def test_the_bounds_of_pods_are_no_defaults() -> None:
    (item,) = LimitRange.of(limit_range({"type": "Pod", "max": {"cpu": "2"}})).items

    assert (item.default, item.default_request, item.max) == ({}, {}, {"cpu": "2"})


def test_an_amount_that_is_no_quantity_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="max"):
        LimitRange.of(limit_range({"type": "Pod", "max": {"cpu": "two"}}))
