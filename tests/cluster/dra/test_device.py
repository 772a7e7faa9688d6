"""What a device of a ResourceSlice says of itself."""

from typing import Any

import pytest

from tests.support.objects.devices import make_device, make_part, make_shared_device
from webhook.cluster.dra.device import Device, DeviceId, DeviceTaintRule, read_device
from webhook.kube.reader import Reader

Object = dict[str, Any]

_POLICY = {"default": "1", "validValues": ["1", "2"]}


def _device(content: Object) -> Device:
    reader = Reader(content)
    device = read_device(reader, "gpu.example.com")
    reader.finish()
    return device


@pytest.mark.parametrize(
    ("content", "is_plain"),
    [
        pytest.param(make_device("d"), True, id="nothing"),
        pytest.param(make_device("d", {"memory": "80Gi"}), True, id="a capacity"),
        pytest.param(make_part("d", {"slices": "1"}), False, id="counters"),
        pytest.param(make_shared_device("d", {}), False, id="allocated several times"),
        pytest.param(make_shared_device("d", {"memory": "80Gi"}), False, id="allocated several times, in parts"),
        pytest.param(make_shared_device("d", {"memory": "80Gi"}, _POLICY), False, id="in parts of some sizes"),
        pytest.param(
            make_shared_device("d", {"memory": "80Gi"}, _POLICY) | {"allowMultipleAllocations": False},
            False,
            id="a policy for a whole device",
        ),
    ],
)
def test_device_that_is_handed_out_as_a_whole_and_counts_nothing_is_plain(content: Object, is_plain: bool) -> None:
    assert _device(content).is_plain is is_plain


def test_attribute_without_a_domain_is_one_of_the_driver() -> None:
    content = make_device("d", model="H20")
    content["attributes"]["example.com/rack"] = {"int": 7}
    found = _device(content).attributes
    assert found == {"gpu.example.com/model": ("string", "H20"), "example.com/rack": ("int", 7)}

    content["attributes"]["gpu.example.com/model"] = {"string": "H200"}
    assert _device(content).attributes["gpu.example.com/model"] == ("string", "H200")


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        pytest.param({"driver": "gpu.example.com"}, True, id="all devices of the driver"),
        pytest.param({"driver": "gpu.example.com", "pool": "a"}, True, id="of a pool"),
        pytest.param({"pool": "b"}, False, id="of another pool"),
        pytest.param({"driver": "gpu.example.com", "pool": "a", "device": "e"}, False, id="another device"),
        pytest.param({}, True, id="all"),
        pytest.param(None, False, id="none"),
    ],
)
def test_a_taint_rule_is_for_the_devices_that_all_parts_of_its_selector_name(
    selector: Object | None, selects: bool
) -> None:
    spec = {"taint": {"key": "ill", "effect": "NoSchedule"}} | (
        {} if selector is None else {"deviceSelector": selector}
    )

    rule = DeviceTaintRule.of({"metadata": {"name": "rule"}, "spec": spec})

    assert rule.selects(DeviceId("gpu.example.com", "a", "d")) is selects
