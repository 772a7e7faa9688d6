"""What a request consumes of a capacity of a device."""

import pytest

from webhook.cluster.dra.capacity import Capacity, RequestPolicy, ValidRange, consumed, read_capacities
from webhook.kube.reader import Reader

_RANGE = RequestPolicy(20_000, (), ValidRange(10_000, 50_000, 20_000))
_VALUES = RequestPolicy(2_000, (2_000, 4_000), None)


@pytest.mark.parametrize(
    ("policy", "requested", "expected"),
    [
        pytest.param(None, None, 80_000, id="all of it"),
        pytest.param(None, 7_500, 7_500, id="as much as is asked for"),
        pytest.param(_VALUES, None, 2_000, id="the default"),
        pytest.param(_VALUES, 2_000, 2_000, id="a valid value"),
        pytest.param(_VALUES, 3_000, 4_000, id="the next valid value"),
        pytest.param(_VALUES, 5_000, None, id="more than any valid value"),
        pytest.param(_RANGE, None, 20_000, id="a default beside the steps"),
        pytest.param(_RANGE, 1_000, 10_000, id="the least"),
        pytest.param(_RANGE, 10_500, 30_000, id="the next step"),
        pytest.param(_RANGE, 50_500, None, id="more than the most"),
        pytest.param(_RANGE, 10_000, 10_000, id="the least, as asked for"),
        pytest.param(
            RequestPolicy(None, (), ValidRange(500, None, 1_000)),
            500,
            1_000,
            id="steps are of whole units",
        ),
        pytest.param(
            RequestPolicy(None, (), ValidRange(500, None, 1_000)), 499, 500, id="the least is taken as it stands"
        ),
        pytest.param(RequestPolicy(None, (), ValidRange(5_000, None, None)), 6_250, 6_250, id="no steps"),
        pytest.param(
            RequestPolicy(None, (), ValidRange(None, 9_000, None)), None, None, id="all is more than the most"
        ),
        pytest.param(RequestPolicy(None, (), None), None, 80_000, id="no policy to speak of"),
    ],
)
def test_consumed(policy: RequestPolicy | None, requested: int | None, expected: int | None) -> None:
    assert consumed(requested, Capacity(80_000, policy)) == expected


def test_capacities_are_read_with_their_policies() -> None:
    policy = {"default": "1", "validRange": {"min": "1", "step": "500m"}}
    given = {"memory": {"value": "80Gi"}, "cores": {"value": 4, "requestPolicy": policy}}
    reader = Reader({"capacity": given})
    assert read_capacities(reader) == {
        "memory": Capacity(80 * 2**30 * 1000, None),
        "cores": Capacity(4_000, RequestPolicy(1_000, (), ValidRange(1_000, None, 500))),
    }
    reader.finish()


def test_valid_values_of_a_policy_are_read_and_no_list_holds_none() -> None:
    given = {
        "cores": {"value": 4, "requestPolicy": {"default": "1", "validValues": ["1", "2"]}},
        "memory": {"value": 4, "requestPolicy": {"default": "1", "validValues": "12"}},
    }
    reader = Reader({"capacity": given})
    assert read_capacities(reader) == {
        "cores": Capacity(4_000, RequestPolicy(1_000, (1_000, 2_000), None)),
        "memory": Capacity(4_000, RequestPolicy(1_000, (), None)),
    }
    reader.finish()
