"""DeviceClasses: their selectors, and the extended resource that stands for their devices."""

from tests.support.objects.devices import make_device_class
from webhook.cluster.dra.device_class import DeviceClass


def test_a_class_has_its_selectors_and_its_extended_resource() -> None:
    found = DeviceClass.of(make_device_class("gpu", "a", "b", extended_resource="example.com/gpu"))

    assert found == ("gpu", "example.com/gpu", ("a", "b"), "")


def test_a_selector_of_an_unknown_kind_is_none() -> None:
    content = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "a"}}, {"other": {}}]}}

    assert DeviceClass.of(content).selectors == ("a", None)
