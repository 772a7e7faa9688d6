"""Volumes of kinds that CSI drivers have taken over count for the drivers; nodes may leave their affinity open."""

from typing import Any

import pytest

from tests.builders import PodBuilder, make_node_object, make_pod
from tests.placement.storage_objects import (
    make_attachment,
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
    uses,
)
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import Document
from webhook.placement.framework import Framework, Placement

Object = dict[str, Any]

_GCE = "gcePersistentDisk"
_PLUGIN = "kubernetes.io/cinder,kubernetes.io/gce-pd"
_ZONE = "topology.kubernetes.io/zone"
_ON = {"zone": ["z"]}
_INLINE = make_pod().spec(volumes=[{"name": "v", _GCE: {"pdName": "d"}}])
_ATTACHED = make_attachment("elsewhere", "other")
_CLAIMED = make_pod().spec(volumes=uses("data"))


def _csi_node(limit: int | None = None, migrated: str = "") -> Object:
    made = make_csi_node("a")
    made["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    if limit is not None:
        made["spec"]["drivers"] = [
            {"name": "pd.csi.storage.gke.io", "nodeID": "a", "topologyKeys": None, "allocatable": {"count": limit}}
        ]
    return made


def _place(pod: PodBuilder, *objects: Object) -> Placement:
    documents = [
        Document("cluster", each) for each in (make_node_object("a", labels={"zone": "z", _ZONE: "z"}), *objects)
    ]
    return Framework().place(pod.obj(), snapshot_from_documents(documents))


@pytest.mark.parametrize("csi_node", [_csi_node(), _csi_node(5)], ids=["no limits", "with limits"])
@pytest.mark.parametrize("pod", [_INLINE, _CLAIMED], ids=["inline", "claimed"])
def test_nothing_is_open_where_a_driver_takes_a_volume_over(pod: PodBuilder, csi_node: Object) -> None:
    placement = _place(pod, csi_node, make_claim("data", volume="v"), _volume("v", _GCE, {"pdName": "d"}), _ATTACHED)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", ())


@pytest.mark.parametrize(
    ("volume", "csi_nodes", "plugins"),
    [
        pytest.param({"on": _ON}, [_csi_node(None, _PLUGIN)], ("VolumeBinding",), id="with an affinity"),
        pytest.param({"labels": {_ZONE: "z"}}, [_csi_node(None, _PLUGIN)], ("VolumeBinding",), id="with a zone"),
        pytest.param({}, [_csi_node(None, _PLUGIN)], (), id="reached from anywhere"),
        pytest.param({"on": _ON}, [_csi_node(None, "kubernetes.io/cinder")], (), id="another plugin migrated"),
        pytest.param({"on": _ON}, [], ("NodeVolumeLimits", "VolumeBinding"), id="no CSINode known"),
    ],
)
def test_node_affinity_of_a_volume_that_a_node_leaves_to_a_driver_is_open(
    volume: Object, csi_nodes: list[Object], plugins: tuple[str, ...]
) -> None:
    old = make_volume("v", **volume)
    old["spec"] |= {_GCE: {"pdName": "d"}}
    del old["spec"]["csi"]
    placement = _place(_CLAIMED, *csi_nodes, make_claim("data", volume="v"), old, _ATTACHED)
    assert (placement.verdict, placement.unmodelled) == ("Unknown" if plugins else "Feasible", plugins)


def test_claim_of_a_class_with_an_old_provisioner_counts_for_the_driver() -> None:
    late = make_storage_class("late", provisioner="kubernetes.io/gce-pd")
    placement = _place(_CLAIMED, _csi_node(0), late, make_claim("data", "late"))
    assert placement.message == "0/1 nodes are available: 1 node(s) exceed max volume count."


_AWS, _AZURE = "awsElasticBlockStore", "azureDisk"
_DRIVERS = {_AWS: "ebs.csi.aws.com", _GCE: "pd.csi.storage.gke.io", _AZURE: "disk.csi.azure.com"}
_DISKS: dict[str, tuple[Object, Object]] = {
    _AWS: ({"volumeID": "aws://us-east-1a/vol-1"}, {"volumeID": "vol-2"}),
    _GCE: ({"pdName": "d"}, {"pdName": "e"}),
    _AZURE: ({"diskName": "d", "diskURI": "/d", "kind": "Managed"}, {"diskName": "e", "diskURI": "/e"}),
}


def _volume(name: str, kind: str, disk: Object, labels: dict[str, str] | None = None) -> Object:
    volume = make_volume(name, labels=labels)
    volume["spec"][kind] = disk
    del volume["spec"]["csi"]
    return volume


def _full(driver: str, *objects: Object, of: PodBuilder) -> bool:
    node = make_csi_node("a")
    node["spec"]["drivers"] = [{"name": driver, "nodeID": "a", "topologyKeys": None, "allocatable": {"count": 1}}]
    placement = _place(of, node, _ATTACHED, *objects)
    assert (placement.verdict, placement.unmodelled) in (("Feasible", ()), ("Waiting", ()))
    return "1 node(s) exceed max volume count" in placement.message


@pytest.mark.parametrize("kind", list(_DISKS))
@pytest.mark.parametrize("is_claimed", [False, True], ids=["inline", "claimed"])
def test_volumes_of_running_pods_count_for_the_driver(kind: str, is_claimed: bool) -> None:
    one, other = _DISKS[kind]
    objects = [_volume("one", kind, one), _volume("other", kind, other), make_claim("one", volume="one")]
    objects.append(make_claim("other", volume="other"))
    volumes = uses("one") if is_claimed else [{"name": "v", kind: one}]
    running = make_pod("first").namespace("default").node_name("a").spec(volumes=volumes).obj()
    driver = _DRIVERS[kind]
    assert _full(driver, *objects, running, of=make_pod().spec(volumes=uses("other")))
    assert _full(driver, *objects, running, of=make_pod().spec(volumes=[{"name": "v", kind: other}]))
    assert not _full(driver, *objects, of=make_pod().spec(volumes=uses("other")))
    assert not _full("other.example.com", *objects, running, of=make_pod().spec(volumes=uses("other")))


@pytest.mark.parametrize(
    ("kind", "disk", "handle", "labels"),
    [
        pytest.param(_AWS, {"volumeID": "aws:///vol-1"}, "vol-1", {}, id="AWS"),
        pytest.param(_GCE, {"pdName": "d"}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", {}, id="GCE"),
        pytest.param(
            _GCE,
            {"pdName": "d"},
            "projects/UNSPECIFIED/zones/us-central1-a/disks/d",
            {"failure-domain.beta.kubernetes.io/zone": "us-central1-a"},
            id="GCE, in a zone",
        ),
        pytest.param(
            _GCE,
            {"pdName": "d"},
            "projects/UNSPECIFIED/regions/us-central1/disks/d",
            {"topology.kubernetes.io/zone": "us-central1-a__us-central1-b"},
            id="GCE, in a region",
        ),
        pytest.param(_AZURE, {"diskName": "d", "diskURI": "/d"}, "/d", {}, id="Azure"),
    ],
)
def test_disk_that_two_volumes_stand_for_is_one(kind: str, disk: Object, handle: str, labels: dict[str, str]) -> None:
    driver = _DRIVERS[kind]
    objects = [
        _volume("old", kind, disk, labels),
        make_volume("new", csi={"driver": driver, "volumeHandle": handle}),
        make_claim("old", volume="old"),
        make_claim("new", volume="new"),
        make_pod("first").namespace("default").node_name("a").spec(volumes=uses("old")).obj(),
    ]
    assert not _full(driver, *objects, of=make_pod().spec(volumes=uses("new")))


@pytest.mark.parametrize(
    ("kind", "disk"),
    [
        pytest.param(_AZURE, {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}, id="Azure, not managed"),
        pytest.param(_AWS, {"volumeID": "aws://us-east-1a/disk-1"}, id="AWS, no volume's name"),
    ],
)
def test_inline_disk_that_a_driver_cannot_take_over_is_named(kind: str, disk: Object) -> None:
    placement = _place(make_pod().spec(volumes=[{"name": "v", kind: disk}]), make_csi_node("a"))
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("NodeVolumeLimits",))
