"""What a ResourceClaim says of its requests, and whether the devices that it has got are ready."""

from typing import Any

import pytest

from tests.support.objects.devices import allocated, exactly, make_resource_claim
from webhook.cluster.dra.device import DeviceId
from webhook.cluster.dra.resource_claim import Allocation, AttributeConstraint, DeviceRequest, ResourceClaim, Share
from webhook.kube.pod.taints import Toleration

Object = dict[str, Any]

_READY, _FAILED = "Attached", "Broken"
_BINDING = {"bindingConditions": [_READY], "bindingFailureConditions": [_FAILED]}


def request(**fields: Any) -> DeviceRequest:
    claim = ResourceClaim.of(make_resource_claim("c", {"name": "r", "exactly": {"deviceClassName": "gpu", **fields}}))
    return claim.requests[0].requests[0]


def test_request_asks_for_one_device_by_count_and_takes_no_taint() -> None:
    assert request() == DeviceRequest("r", "gpu", amount=1, takes_all=False, tolerations=())


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"key": "a", "value": "1"}, Toleration("a", "Equal", "1", "")),
        ({"key": "a", "operator": "Exists"}, Toleration("a", "Exists", "", "")),
        ({"effect": "NoSchedule"}, Toleration("", "Equal", "", "NoSchedule")),
    ],
)
def test_toleration_without_an_operator_compares_the_value(given: Object, read: Toleration) -> None:
    assert request(tolerations=[given]).tolerations == (read,)


@pytest.mark.parametrize(
    ("fields", "is_modelled"),
    [
        ({}, True),
        ({"count": 2}, True),
        ({"count": 0}, False),
        ({"count": -1}, False),
        ({"allocationMode": "All"}, True),
        ({"allocationMode": "All", "count": 0}, True),
        ({"allocationMode": "Some"}, False),
    ],
)
def test_request_for_a_positive_count_or_for_all_is_modelled(fields: Object, is_modelled: bool) -> None:
    assert request(**fields).is_modelled is is_modelled


@pytest.mark.parametrize(
    ("requests", "concerned"),
    [
        ((), {"a", "a/x", "b"}),
        (("a",), {"a", "a/x"}),
        (("a/x",), {"a/x"}),
        (("a", "b"), {"a", "a/x", "b"}),
    ],
)
def test_constraint_concerns_the_requests_that_it_names_and_their_alternatives(
    requests: tuple[str, ...], concerned: set[str]
) -> None:
    constraint = AttributeConstraint("example.com/model", requests, is_distinct=False)
    assert {each for each in ("a", "a/x", "b") if constraint.concerns(each)} == concerned


def allocation(status: Object, **fields: Any) -> Allocation:
    """The allocation of a claim for two cards of node n, in order."""
    claim = allocated(make_resource_claim("c", exactly("cards", 2)), "n", "card-0", "card-1", **fields)
    claim["status"] |= status
    found = ResourceClaim.of(claim).allocation
    assert found is not None
    return found


def device_status(device: str, *true: str, false: str = "") -> Object:
    conditions = [{"type": each, "status": "True"} for each in true]
    conditions += [{"type": false, "status": "False"}] if false else []
    return {"driver": "gpu.example.com", "pool": "n", "device": device, "conditions": conditions}


_0, _1 = "card-0", "card-1"


@pytest.mark.parametrize(
    ("devices", "has_failed", "is_known"),
    [
        pytest.param([device_status(_0, _READY), device_status(_1, _READY)], False, True, id="both ready"),
        pytest.param([device_status(_0, _READY)], False, False, id="of one nothing is said"),
        pytest.param([], False, False, id="nothing is said"),
        pytest.param([device_status(_0, _READY), device_status(_1)], False, False, id="one is not ready yet"),
        pytest.param(
            [device_status(_0, _READY), device_status(_1, false=_READY)], False, False, id="one is not ready, as said"
        ),
        pytest.param([device_status(_0, _READY), device_status(_1, _READY, _FAILED)], True, True, id="one failed"),
        pytest.param([device_status(_0, _FAILED), device_status(_1)], True, True, id="the first failed"),
        pytest.param([device_status(_0), device_status(_1, _FAILED)], False, False, id="the first still waits"),
        pytest.param(
            [device_status(_0, _READY, false=_FAILED), device_status(_1, _READY)],
            False,
            True,
            id="none failed, as said",
        ),
        pytest.param(
            [device_status(_0, _READY), device_status(_0), device_status(_1, _READY)], False, True, id="the first entry"
        ),
    ],
)
def test_devices_are_ready_once_their_binding_conditions_hold(
    devices: list[Object], has_failed: bool, is_known: bool
) -> None:
    """Where one is still to be made ready, the time decides how long kube-scheduler waits."""
    found = allocation({"devices": devices}, **_BINDING)
    assert (found.has_failed, found.is_known) == (has_failed, is_known)


def test_devices_without_binding_conditions_are_ready_whatever_is_said_of_them() -> None:
    found = allocation({"devices": [device_status(_0, _FAILED)]}, bindingFailureConditions=[_FAILED])
    assert (found.has_failed, found.is_known) == (False, True)


def test_allocation_without_a_time_waits_for_its_devices_without_end() -> None:
    claim = allocated(make_resource_claim("c", exactly("cards", 1)), "n", _0, **_BINDING)
    del claim["status"]["allocation"]["allocationTimestamp"]
    found = ResourceClaim.of(claim).allocation
    assert found is not None
    assert found.is_known


@pytest.mark.parametrize(
    ("fields", "consumed"),
    [
        ({}, None),
        ({"consumedCapacity": {}}, ()),
        ({"consumedCapacity": {"memory": "2", "bandwidth": "500m"}}, (("bandwidth", 500), ("memory", 2000))),
    ],
)
def test_share_of_a_device_consumes_what_its_result_says(fields: Object, consumed: tuple[Any, ...] | None) -> None:
    found = allocation({}, shareID="1", **fields)
    assert found.devices == ()
    assert found.shares == tuple(Share(DeviceId("gpu.example.com", "n", each), consumed) for each in (_0, _1))


def test_access_of_an_administrator_takes_no_device() -> None:
    found = allocation({}, adminAccess=True)
    assert (found.devices, found.shares, found.requests) == ((), (), ("cards", "cards"))
