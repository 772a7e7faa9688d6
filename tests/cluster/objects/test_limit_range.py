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


@pytest.mark.parametrize(
    ("given", "default", "request_"),
    [
        pytest.param({}, None, None, id="nothing"),
        pytest.param({"max": "4"}, "4", "4", id="the most is the limit, and the limit the request"),
        pytest.param({"max": "4", "default": "3"}, "3", "3", id="a limit comes before the most"),
        pytest.param({"max": "4", "default": "3", "defaultRequest": "2"}, "3", "2", id="a request before the limit"),
        pytest.param({"min": "1"}, None, "1", id="the least is the request"),
        pytest.param({"min": "1", "max": "4"}, "4", "4", id="the limit comes before the least"),
        pytest.param({"min": "1", "default": "3"}, "3", "3", id="also if it is given"),
        pytest.param({"min": "1", "defaultRequest": "2"}, None, "2", id="a request before the least"),
        pytest.param({"defaultRequest": "2"}, None, "2", id="a request is no limit"),
        pytest.param(
            {"min": "1", "defaultRequest": "2", "default": "3", "max": "4"}, "3", "2", id="each has its own value"
        ),
    ],
)
def test_defaults_of_containers_come_from_the_closest_field(
    given: dict[str, str], default: str | None, request_: str | None
) -> None:
    fields = {name: {"cpu": amount} for name, amount in given.items()}
    item, of_pods = (LimitRange.of(limit_range({"type": each, **fields})).items[0] for each in ("Container", "Pod"))

    assert (item.default.get("cpu"), item.default_request.get("cpu")) == (default, request_)
    assert (item.min.get("cpu"), item.max.get("cpu")) == (given.get("min"), given.get("max"))
    # Those of pods stay as they are written.
    assert (of_pods.default.get("cpu"), of_pods.default_request.get("cpu")) == (
        given.get("default"),
        given.get("defaultRequest"),
    )


def test_the_bounds_of_pods_are_no_defaults() -> None:
    (item,) = LimitRange.of(limit_range({"type": "Pod", "max": {"cpu": "2"}})).items

    assert (item.default, item.default_request, item.max) == ({}, {}, {"cpu": "2"})


def test_an_amount_that_is_no_quantity_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="max"):
        LimitRange.of(limit_range({"type": "Pod", "max": {"cpu": "two"}}))
