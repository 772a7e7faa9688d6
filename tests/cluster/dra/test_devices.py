"""The tables of the device objects of a cluster."""

import pytest

from tests.support.objects.devices import DRIVER, allocated, exactly, make_device_class, make_resource_claim
from webhook.cluster.dra.device_class import DeviceClass
from webhook.cluster.dra.devices import Devices
from webhook.cluster.dra.resource_claim import ResourceClaim

RESOURCE = "example.com/gpu"


def devices(*classes: DeviceClass) -> Devices:
    return Devices.of({each.name: each for each in classes}, {}, {}, [], [])


def device_class(name: str, created: str = "") -> DeviceClass:
    return DeviceClass.of(make_device_class(name, extended_resource=RESOURCE))._replace(created=created)


def test_the_newest_class_of_a_resource_backs_it_then_the_first_by_name() -> None:
    old, new, other = device_class("a", "2025"), device_class("b", "2026"), device_class("c", "2026")
    found = devices(old, other, new)

    assert found.class_of(RESOURCE) == new
    assert found.contested == {"a", "c"}


@pytest.mark.parametrize(
    ("resource", "backed"), [(RESOURCE, True), ("deviceclass.resource.kubernetes.io/a", True), ("cpu", False)]
)
def test_a_resource_is_backed_by_its_own_name_or_that_of_the_class(resource: str, backed: bool) -> None:
    assert devices(device_class("a")).back(resource) == backed
    assert devices(device_class("a")).back_any([(resource, 1)]) == backed


def test_a_class_may_back_its_name_while_classes_are_not_known() -> None:
    unknown = Devices.of(None, None, None, None, None)

    assert unknown.back_any([("deviceclass.resource.kubernetes.io/a", 1)])
    assert not unknown.back(RESOURCE)
    assert not unknown.is_class_known("deviceclass.resource.kubernetes.io/a")


@pytest.mark.parametrize(
    ("shares", "consumed"),
    [
        pytest.param([{"memory": "1"}, {"memory": "2", "cores": "4"}], {"memory": 3_000, "cores": 4_000}, id="all"),
        pytest.param([{"memory": "1"}, None], {"memory": 1_000}, id="one without an amount, last"),
        pytest.param([None, {"memory": "1"}], {"memory": 1_000}, id="one without an amount, first"),
        pytest.param([None], None, id="none with an amount"),
    ],
)
def test_shares_of_a_device_consume_their_sum(
    shares: list[dict[str, str] | None], consumed: dict[str, int] | None
) -> None:
    claims = {}
    for number, each in enumerate(shares):
        fields = {"shareID": str(number)} | ({} if each is None else {"consumedCapacity": each})
        claim = allocated(make_resource_claim(f"c{number}", exactly()), "a", "card-0", **fields)
        claims["default", f"c{number}"] = ResourceClaim.of(claim)
    found = Devices.of({}, claims, {}, [], [])

    assert found.shared == {(DRIVER, "a"): {"card-0": consumed}}
    assert found.allocated == {}
