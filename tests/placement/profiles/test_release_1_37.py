"""What kube-scheduler says and scores since 1.37, and in the release before."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
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
    available,
    make_capacity,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.release import Release
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_MIB = 1024 * 1024
_ZONE = "topology.kubernetes.io/zone"
_NODES = [make_node_object(name, labels={_ZONE: name}) for name in "ab"]


def _placed(release: int, pod: PodBuilder, *objects: Object) -> Placement:
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    return Scheduler().place(pod.obj(), replace(snapshot, release=Release(release)))


@pytest.mark.parametrize(
    ("release", "reasons"),
    [
        (36, "1 node(s) didn't match the requested node name, 2 node(s) were unschedulable"),
        (37, "1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeName]"),
    ],
)
def test_a_pod_with_a_node_name_is_evaluated_there_alone(release: int, reasons: str) -> None:
    nodes = [make_node_object("a", unschedulable=True), make_node_object("b", unschedulable=True)]

    placement = _placed(release, make_pod().node_name("a"), *nodes, make_node_object("c"))

    assert placement.message == f"0/3 nodes are available: {reasons}."


@pytest.mark.parametrize(("release", "expected"), [(36, {"a": 48, "b": 0}), (37, {"a": 24, "b": 0})])
def test_an_image_volume_raises_the_sizes_that_count_as_many(release: int, expected: dict[str, int]) -> None:
    with_image = make_node_object("a")
    with_image["status"]["images"] = [{"names": ["big:latest"], "sizeBytes": 1000 * _MIB}]
    volumes = [{"name": "v", "image": {"reference": "big"}}]
    pod = make_pod().spec(containers=[{"name": "c", "image": "none"}], volumes=volumes)

    placement = _placed(release, pod, with_image, make_node_object("b"))

    assert {node: scores["ImageLocality"] for node, scores in placement.scores.items()} == expected


def _storage_scores(release: int, *objects: Object) -> list[float]:
    pod = make_pod().spec(volumes=uses("c"))
    classes = (make_storage_class("late"), make_csi_node("a"))
    placement = _placed(release, pod, *_NODES, make_pvc("c", "late"), *classes, *objects)
    assert placement.feasible == len(_NODES)
    return [placement.scores[name].get("VolumeBinding", -1) for name in "ab"]


_FREE = [make_capacity(name, "late", size, on={_ZONE: name}) for name, size in (("a", "4Gi"), ("b", "2Gi"))]
_VOLUMES = [
    available(make_pv(name, "late", on={_ZONE: [name]}, storage=size)) for name, size in (("a", "4Gi"), ("b", "1Gi"))
]


@pytest.mark.parametrize(("release", "expected"), [(36, [-1, -1]), (37, [75, 50])])
def test_a_node_with_more_free_storage_scores_higher(release: int, expected: list[int]) -> None:
    assert _storage_scores(release, make_csi_driver(tracks_capacity=True), *_FREE) == expected


@pytest.mark.parametrize(("release", "expected"), [(36, [-1, -1]), (37, [75, 0])])
def test_a_node_whose_volume_is_hardly_used_scores_higher(release: int, expected: list[int]) -> None:
    assert _storage_scores(release, make_csi_driver(), *_VOLUMES) == expected


def test_storage_that_nothing_is_known_of_scores_nothing() -> None:
    assert _storage_scores(37, make_csi_driver(), make_pv("other")) == [0, 0]


def test_several_capacities_of_a_node_leave_the_score_open() -> None:
    """kube-scheduler takes the first large enough one, in the random order of a Go map."""
    pod = make_pod().spec(volumes=uses("c"))
    objects = (make_pvc("c", "late"), make_storage_class("late"), make_csi_driver(tracks_capacity=True), make_pv("v"))
    csi_nodes = [make_csi_node(name) for name in "ab"]

    def unmodelled(*capacities: Object) -> tuple[str, ...]:
        placement = _placed(37, pod, *_NODES, *objects, *csi_nodes, *capacities)
        assert placement.verdict == "Feasible"
        return placement.unmodelled

    assert unmodelled(*_FREE) == ()
    assert unmodelled(*_FREE, make_capacity("more", "late", "9Gi", on={_ZONE: "a"})) == ("VolumeBinding",)
    assert unmodelled(*_FREE, make_capacity("wide", "late", largest="9Gi", on={})) == ("VolumeBinding",)


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

    assert _placed(release, pod, _NODES[0], *objects, make_csi_node("a", other=1)).message == message
    assert _placed(release, pod, _NODES[0], *objects, make_csi_node("a", disk=1)).feasible == 1
    without_csi_nodes = _placed(release, pod, _NODES[0], *objects)
    assert without_csi_nodes.verdict == ("Unknown" if release >= 37 else "Feasible")


_ELSEWHERE = allocated(make_resource_claim("elsewhere", exactly()), "z", "card-0")


def _verdict(release: int, claim: Object, *objects: Object) -> str:
    pod = make_pod().spec(resourceClaims=claiming(claim["metadata"]["name"]))
    return _placed(release, pod, make_node_object("a"), make_device_class(), claim, _ELSEWHERE, *objects).verdict


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
