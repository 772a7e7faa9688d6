"""Volumes of kinds that CSI drivers have taken over count for the drivers; nodes may leave their affinity open."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import (
    make_attachment,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_GCE = "gcePersistentDisk"
_PLUGIN = "kubernetes.io/cinder,kubernetes.io/gce-pd"
_ZONE = "topology.kubernetes.io/zone"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_ALL_ZONES = {"zone": "z", _ZONE: "z", _OLD_ZONE: "z", "topology.gke.io/zone": "z"}
_BOTH = ("NodeVolumeLimits", "VolumeBinding")
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


def _place(pod: PodBuilder, *objects: Object, node: Object | None = None) -> Placement:
    node = node or make_node_object("a", labels={"zone": "z", _ZONE: "z", _OLD_ZONE: "z"})
    documents = [Document("cluster", each) for each in (node, *objects)]
    return Scheduler().place(pod.obj(), snapshot_from_documents(documents))


@pytest.mark.parametrize("csi_node", [_csi_node(), _csi_node(5)], ids=["no limits", "with limits"])
def test_nothing_is_open_where_a_driver_takes_a_volume_over(csi_node: Object) -> None:
    placement = _place(_CLAIMED, csi_node, make_pvc("data", volume="v"), _volume("v", _GCE, {"pdName": "d"}), _ATTACHED)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", ())


def _old(kind: str, disk: Object, **fields: Any) -> Object:
    volume = make_pv("v", **fields)
    volume["spec"] |= {kind: disk}
    del volume["spec"]["csi"]
    return volume


@pytest.mark.parametrize(
    ("volume", "csi_node", "feasible"),
    [
        pytest.param({"on": {_ZONE: ["z"]}}, _csi_node(None, _PLUGIN), False, id="zone asked by the driver's key"),
        pytest.param(
            {"on": {_ZONE: ["z"]}}, _csi_node(None, "kubernetes.io/cinder"), True, id="another plugin migrated"
        ),
        pytest.param({"on": {_OLD_ZONE: ["z"]}}, _csi_node(None, _PLUGIN), False, id="old zone by the driver's key"),
        pytest.param({"on": {"zone": ["z"]}}, _csi_node(None, _PLUGIN), True, id="no zone"),
        pytest.param({"labels": {_ZONE: "z"}}, _csi_node(None, _PLUGIN), False, id="zone out of the label"),
        pytest.param({"labels": {_ZONE: "z"}}, _csi_node(), True, id="label alone"),
        pytest.param({"on": {"zone": ["z"]}, "labels": {_ZONE: "z"}}, _csi_node(None, _PLUGIN), False, id="both"),
    ],
)
def test_node_that_leaves_a_volume_to_a_driver_is_asked_for_the_drivers_topology(
    volume: Object, csi_node: Object, feasible: bool
) -> None:
    objects = (csi_node, make_pvc("data", volume="v"), _old(_GCE, {"pdName": "d"}, **volume), _ATTACHED)
    placement = _place(_CLAIMED, *objects)
    assert (placement.verdict, placement.unmodelled) == ("Feasible" if feasible else "Infeasible", ())
    if not feasible:
        reason = "1 node(s) didn't match PersistentVolume's node affinity"
        assert placement.message == f"0/1 nodes are available: {reason}."
    assert _place(_CLAIMED, *objects, node=make_node_object("a", labels=_ALL_ZONES)).verdict == "Feasible"


@pytest.mark.parametrize(
    ("volume", "csi_nodes", "plugins"),
    [
        pytest.param(_old(_GCE, {"pdName": "d"}, on={_ZONE: ["z"]}), [], _BOTH, id="no CSINode known"),
        pytest.param(_old(_GCE, {"pdName": "d"}), [], ("NodeVolumeLimits",), id="no CSINode known, nor needed"),
        pytest.param(
            _old("azureDisk", {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}),
            [_csi_node(None, "kubernetes.io/azure-disk")],
            ("VolumeBinding",),
            id="a disk that the driver cannot take over",
        ),
    ],
)
def test_what_is_not_known_of_a_bound_volume_is_named(
    volume: Object, csi_nodes: list[Object], plugins: tuple[str, ...]
) -> None:
    placement = _place(_CLAIMED, *csi_nodes, make_pvc("data", volume="v"), volume, _ATTACHED)
    verdict = "Unknown" if "VolumeBinding" in plugins else "Feasible"
    assert (placement.verdict, placement.unmodelled) == (verdict, plugins)


def test_volume_that_a_driver_may_reach_is_not_infeasible_where_no_csi_node_is_known() -> None:
    node = make_node_object("a", labels={"topology.gke.io/zone": "z"})
    objects = (make_pvc("data", volume="v"), _old(_GCE, {"pdName": "d"}, on={_ZONE: ["z"]}), _ATTACHED)
    assert _place(_CLAIMED, *objects, node=node).verdict == "Unknown"


def test_claim_of_a_class_with_an_old_provisioner_counts_for_the_driver() -> None:
    late = make_storage_class("late", provisioner="kubernetes.io/gce-pd")
    placement = _place(_CLAIMED, _csi_node(0), late, make_pvc("data", "late"))
    assert placement.message == "0/1 nodes are available: 1 node(s) exceed max volume count."


_AWS, _AZURE = "awsElasticBlockStore", "azureDisk"
_DRIVERS = {_AWS: "ebs.csi.aws.com", _GCE: "pd.csi.storage.gke.io", _AZURE: "disk.csi.azure.com"}
_DISKS: dict[str, tuple[Object, Object]] = {
    _AWS: ({"volumeID": "aws://us-east-1a/vol-1"}, {"volumeID": "vol-2"}),
    _GCE: ({"pdName": "d"}, {"pdName": "e"}),
    _AZURE: ({"diskName": "d", "diskURI": "/d", "kind": "Managed"}, {"diskName": "e", "diskURI": "/e"}),
}


def _volume(name: str, kind: str, disk: Object, labels: dict[str, str] | None = None) -> Object:
    volume = make_pv(name, labels=labels)
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
def test_volumes_of_running_pods_count_for_the_driver(kind: str) -> None:
    one, other = _DISKS[kind]
    objects = [_volume("one", kind, one), _volume("other", kind, other), make_pvc("one", volume="one")]
    objects.append(make_pvc("other", volume="other"))
    running = make_pod("first").namespace("default").node_name("a").spec(volumes=uses("one")).obj()
    driver = _DRIVERS[kind]
    assert _full(driver, *objects, running, of=make_pod().spec(volumes=uses("other")))
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
        make_pv("new", csi={"driver": driver, "volumeHandle": handle}),
        make_pvc("old", volume="old"),
        make_pvc("new", volume="new"),
        make_pod("first").namespace("default").node_name("a").spec(volumes=uses("old")).obj(),
    ]
    assert not _full(driver, *objects, of=make_pod().spec(volumes=uses("new")))


@pytest.mark.parametrize("kind", ["awsElasticBlockStore", "azureDisk", "gcePersistentDisk", "iscsi", "rbd"])
def test_disk_without_a_claim_is_not_modelled(kind: str) -> None:
    placement = _place(make_pod().spec(volumes=[{"name": "v", kind: {}}]), make_csi_node("a"))
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("NodeVolumeLimits", "VolumeRestrictions"))


@pytest.mark.parametrize(
    ("kind", "claims", "verdict"),
    [
        pytest.param(_GCE, ["data"], "Unknown", id="that counts for a driver"),
        pytest.param("iscsi", ["data"], "Feasible", id="that counts for none"),
        pytest.param(_GCE, [], "Feasible", id="for a pod without claims"),
    ],
)
def test_disk_without_a_claim_of_a_running_pod_is_not_modelled(kind: str, claims: list[str], verdict: str) -> None:
    running = make_pod("first").namespace("default").node_name("a").spec(volumes=[{"name": "v", kind: {}}]).obj()
    objects = (_csi_node(5), make_pvc("data", volume="v"), _volume("v", _GCE, {"pdName": "d"}), _ATTACHED)
    assert _place(make_pod().spec(volumes=uses(*claims)), *objects, running).verdict == verdict
