"""What requests consume of devices that are handed out in parts."""

from collections.abc import Mapping

import pytest

from tests.support.objects.devices import make_shared_device
from webhook.cluster.dra.device import read_device
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.kube.reader import Reader
from webhook.placement.dra.counters import consumed_capacity

_DEVICE = read_device(Reader(make_shared_device("d", {"memory": "80", "cores": "8"})), "gpu.example.com")
_ROOM = {"memory": 80_000, "cores": 4_000}


@pytest.mark.parametrize(
    ("requested", "room", "parts"),
    [
        pytest.param({"cores": 1_000, "memory": 2_000}, _ROOM, (1_000, 2_000), id="in the order of names"),
        pytest.param({"cores": 1_000}, _ROOM, (1_000, 80_000), id="all of a capacity that is not asked for"),
        pytest.param({"cores": 4_000}, _ROOM, (4_000, 80_000), id="all that is left"),
        pytest.param({"cores": 4_001}, _ROOM, None, id="more than is left"),
        pytest.param({}, _ROOM, None, id="all of it, where some is gone"),
        pytest.param({}, {"memory": 80_000, "cores": 8_000}, (8_000, 80_000), id="all of it"),
        pytest.param({"cores": 1_000, "disks": 1_000}, _ROOM, None, id="a capacity that the device has not"),
        pytest.param({"cores": 1_000, "memory": 1_000, "disks": 1_000}, _ROOM, None, id="one more than the device has"),
    ],
)
def test_request_consumes_parts_of_the_capacities_that_a_device_has(
    requested: Mapping[str, int], room: Mapping[str, int], parts: tuple[int, ...] | None
) -> None:
    request = DeviceRequest("r", "gpu", capacity=tuple(requested.items()))
    assert consumed_capacity(_DEVICE, request, room) == parts
