"""What kube-scheduler says and scores since 1.37, and in the release before."""

from typing import Any

import pytest

from tests.placement.profiles.release_clusters import Object, placed
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import (
    DRIVER,
    allocated,
    claiming,
    constrained,
    exactly,
    make_cards,
    make_counters,
    make_device,
    make_device_class,
    make_part,
    make_resource_claim,
    make_shared_device,
    make_slice,
)
from tests.support.objects.storage import (
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    uses,
)

_MIB = 1024 * 1024
_ZONE = "topology.kubernetes.io/zone"
_NODES = [make_node_object(name, labels={_ZONE: name}) for name in "ab"]


@pytest.mark.parametrize(
    ("release", "reasons"),
    [
        (36, "1 node(s) didn't match the requested node name, 2 node(s) were unschedulable"),
        (37, "1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeName]"),
    ],
)
def test_a_pod_with_a_node_name_is_evaluated_there_alone(release: int, reasons: str) -> None:
    nodes = [make_node_object("a", unschedulable=True), make_node_object("b", unschedulable=True)]

    placement = placed(release, make_pod().node_name("a"), *nodes, make_node_object("c"))

    assert placement.message == f"0/3 nodes are available: {reasons}."


@pytest.mark.parametrize(("release", "expected"), [(36, {"a": 48, "b": 0}), (37, {"a": 24, "b": 0})])
def test_an_image_volume_raises_the_sizes_that_count_as_many(release: int, expected: dict[str, int]) -> None:
    with_image = make_node_object("a")
    with_image["status"]["images"] = [{"names": ["big:latest"], "sizeBytes": 1000 * _MIB}]
    volumes = [{"name": "v", "image": {"reference": "big"}}]
    pod = make_pod().spec(containers=[{"name": "c", "image": "none"}], volumes=volumes)

    placement = placed(release, pod, with_image, make_node_object("b"))

    assert {node: scores["ImageLocality"] for node, scores in placement.scores.items()} == expected


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (36, "1/1 nodes are available."),
        (37, "0/1 nodes are available: 1 disk.example.com CSI driver is not installed on the node."),
    ],
)
def test_a_driver_can_require_to_be_installed(release: int, message: str) -> None:
    driver = make_csi_driver()
    driver["spec"]["preventPodSchedulingIfMissing"] = True
    objects = (make_pvc("c", volume="v"), make_pv("v"), driver)
    pod = make_pod().spec(volumes=uses("c"))

    assert placed(release, pod, _NODES[0], *objects, make_csi_node("a", other=1)).message == message
    assert placed(release, pod, _NODES[0], *objects, make_csi_node("a", disk=1)).feasible == 1
    without_csi_nodes = placed(release, pod, _NODES[0], *objects)
    assert without_csi_nodes.verdict == ("Unknown" if release >= 37 else "Feasible")


_ELSEWHERE = allocated(make_resource_claim("elsewhere", exactly()), "z", "card-0")


def _verdict(release: int, claim: Object, *objects: Object) -> str:
    pod = make_pod().spec(resourceClaims=claiming(claim["metadata"]["name"]))
    return placed(release, pod, make_node_object("a"), make_device_class(), claim, _ELSEWHERE, *objects).verdict


def _rule(**selected: str) -> Object:
    taint = {"key": "broken", "effect": "NoSchedule"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selected, "taint": taint},
    }


@pytest.mark.parametrize(
    ("release", "selected", "verdict"),
    [
        pytest.param(36, {}, "Feasible", id="before"),
        pytest.param(37, {}, "Waiting", id="every device"),
        pytest.param(37, {"driver": DRIVER, "pool": "a", "device": "card-0"}, "Waiting", id="the device"),
        pytest.param(37, {"driver": "other.example.com"}, "Feasible", id="another driver"),
        pytest.param(37, {"pool": "b"}, "Feasible", id="another pool"),
        pytest.param(37, {"device": "card-1"}, "Feasible", id="another device"),
    ],
)
def test_a_rule_taints_the_devices_that_it_selects(release: int, selected: dict[str, str], verdict: str) -> None:
    claim = make_resource_claim("own", exactly())

    assert _verdict(release, claim, make_slice("a", *make_cards(1)), _rule(**selected)) == verdict


def test_a_rule_without_a_selector_taints_nothing() -> None:
    rule = _rule()
    del rule["spec"]["deviceSelector"]

    assert _verdict(37, make_resource_claim("own", exactly()), make_slice("a", *make_cards(1)), rule) == "Feasible"


def _part(name: str, amount: int, **fields: Any) -> Object:
    return make_part(name, {"memory": str(amount)}, **fields)


@pytest.mark.parametrize(("release", "verdict"), [(36, "Unknown"), (37, "Feasible")])
def test_drivers_whose_pools_have_one_name_have_their_own_counters(release: int, verdict: str) -> None:
    other = "nic.example.com"
    objects = (
        make_slice("a", _part("x", 1), count=2),
        make_counters("a", {"memory": "1"}, count=2),
        make_slice("a", _part("y", 1), count=2, driver=other),
        make_counters("a", {"memory": "1"}, count=2, driver=other) | {"metadata": {"name": "others"}},
    )

    assert _verdict(release, make_resource_claim("own", exactly()), *objects) == verdict


@pytest.mark.parametrize(("release", "verdict"), [(36, "Waiting"), (37, "Feasible")])
def test_a_device_that_a_constraint_refuses_gives_its_counters_back(release: int, verdict: str) -> None:
    """x and z would do; before, y keeps its counters."""
    parts = make_slice("a", _part("x", 1, model="A"), _part("y", 2, model="B"), _part("z", 1, model="A"), count=2)
    claim = constrained(make_resource_claim("own", exactly("parts", 2)), f"{DRIVER}/model")

    assert _verdict(release, claim, parts, make_counters("a", {"memory": "3"}, count=2)) == verdict


@pytest.mark.parametrize(("release", "verdict"), [(36, "Feasible"), (37, "Infeasible")])
def test_distinct_devices_are_compared_with_all_others(release: int, verdict: str) -> None:
    """The first and the third device have one value; before, a request remembers that of its last device."""
    cards = [make_device(f"card-{place}", numa=value) for place, value in enumerate((1, 2, 1))]
    claim = constrained(make_resource_claim("own", exactly("cards", 3)), f"{DRIVER}/numa", distinct=True)

    assert _verdict(release, claim, make_slice("a", *cards)) == verdict


@pytest.mark.parametrize(("release", "verdict"), [(36, "Feasible"), (37, "Waiting")])
def test_a_request_for_all_devices_needs_the_full_ones_too(release: int, verdict: str) -> None:
    cards = make_slice("a", *[make_shared_device(name, {"memory": "4"}) for name in ("full", "free")])
    other = allocated(
        make_resource_claim("other", exactly()), "a", "full", shareID="s", consumedCapacity={"memory": "4"}
    )
    claim = make_resource_claim("own", exactly("cards", 0, capacity={"requests": {"memory": "1"}}))

    assert _verdict(release, claim, cards, other) == verdict
