"""What device classes and claims of a cluster file do to a pod's verdict."""

from typing import Any

import pytest

from tests.builders import PodBuilder, make_node_object, make_pod
from tests.placement.storage_objects import make_device_claim, make_device_class
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import Document
from webhook.placement.framework import Framework, Placement

Object = dict[str, Any]

_GPU = make_device_class("gpu.example.com")
_WRONG = {"name": "card", "exactly": {"deviceClassName": "gpu.exmaple.com"}}
_RIGHT = {"name": "card", "exactly": {"deviceClassName": "gpu.example.com"}}


def _place(pod: PodBuilder, *objects: Object) -> Placement:
    nodes = make_node_object("a"), make_node_object("b", capacity={"example.com/gpu": 2})
    return Framework().place(pod.obj(), snapshot_from_documents(Document("c", each) for each in (*nodes, *objects)))


def _claims(**use: str) -> PodBuilder:
    return make_pod().spec(resourceClaims=[{"name": "gpu", **use}])


@pytest.mark.parametrize(
    ("pod", "claim"),
    [
        pytest.param(_claims(resourceClaimName="c"), make_device_claim("c", _RIGHT, _WRONG), id="claim"),
        pytest.param(
            _claims(resourceClaimTemplateName="c"), make_device_claim("c", _WRONG, template=True), id="template"
        ),
    ],
)
def test_claim_of_an_unknown_class_is_infeasible(pod: PodBuilder, claim: Object) -> None:
    placement = _place(pod, _GPU, claim)
    assert placement.verdict == "Infeasible"
    assert placement.message == ("0/2 nodes are available: request card: device class gpu.exmaple.com does not exist.")


def test_alternative_of_an_unknown_class_is_named_with_its_request() -> None:
    either = {"name": "card", "firstAvailable": [{"name": "new", "deviceClassName": "none"}]}
    placement = _place(_claims(resourceClaimName="c"), _GPU, make_device_claim("c", either))
    assert "request card/new: device class none does not exist" in placement.message


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([_GPU, make_device_claim("c", _RIGHT)], id="a class that there is"),
        pytest.param([make_device_claim("c", _WRONG)], id="no classes known"),
        pytest.param([_GPU], id="no such claim known"),
        pytest.param(
            [_GPU, make_device_claim("c", _WRONG) | {"status": {"allocation": {}}}], id="devices are chosen already"
        ),
    ],
)
def test_whether_devices_are_there_is_not_known(objects: list[Object]) -> None:
    placement = _place(_claims(resourceClaimName="c"), *objects)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))


def test_resource_behind_which_a_class_stands_is_not_missing() -> None:
    pod = make_pod().gpu(3, "example.com/gpu")
    assert _place(pod).verdict == "Infeasible"
    backed = _place(pod, make_device_class("gpu", "example.com/gpu"))
    assert (backed.verdict, backed.feasible, backed.unmodelled) == ("Unknown", 1, ("DynamicResources",))


def test_resource_of_a_class_that_there_is_not_is_missing() -> None:
    pod = make_pod().requests(**{"deviceclass.resource.kubernetes.io/card": 1})
    assert _place(pod).verdict == "Unknown"
    assert _place(pod, make_device_class("card")).verdict == "Unknown"
    missing = _place(pod, _GPU)
    assert missing.verdict == "Infeasible"
    assert missing.message == "0/2 nodes are available: 2 Insufficient deviceclass.resource.kubernetes.io/card."
