"""Volumes of kinds that CSI drivers have taken over: what they are made into is left open only where it matters."""

from typing import Any

import pytest

from tests.builders import PodBuilder, make_node_object, make_pod
from tests.placement.storage_objects import make_claim, make_csi_node, make_storage_class, make_volume, uses
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import Document
from webhook.placement.framework import Framework, Placement

Object = dict[str, Any]

_GCE: Object = {"gcePersistentDisk": {"pdName": "d"}}
_INLINE = make_pod().spec(volumes=[{"name": "v", **_GCE}])
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
    documents = [Document("cluster", each) for each in (make_node_object("a"), *objects)]
    return Framework().place(pod.obj(), snapshot_from_documents(documents))


@pytest.mark.parametrize(
    ("pod", "csi_node", "plugins"),
    [
        pytest.param(_INLINE, _csi_node(), (), id="inline, no limits"),
        pytest.param(_INLINE, _csi_node(5), ("NodeVolumeLimits",), id="inline, with limits"),
        pytest.param(_CLAIMED, _csi_node(), (), id="claimed, no limits"),
        pytest.param(_CLAIMED, _csi_node(5), ("NodeVolumeLimits",), id="claimed, with limits"),
        pytest.param(_CLAIMED, _csi_node(None, "kubernetes.io/cinder"), (), id="another plugin migrated"),
        pytest.param(
            _CLAIMED,
            _csi_node(None, "kubernetes.io/cinder,kubernetes.io/gce-pd"),
            ("VolumeBinding",),
            id="migrated, so that its node affinity is another",
        ),
    ],
)
def test_what_a_driver_makes_of_a_volume_is_open_where_nodes_mind(
    pod: PodBuilder, csi_node: Object, plugins: tuple[str, ...]
) -> None:
    volume = make_volume("v", **_GCE)
    del volume["spec"]["csi"]
    placement = _place(pod, csi_node, make_claim("data", volume="v"), volume)
    assert (placement.verdict, placement.unmodelled) == ("Unknown" if plugins else "Feasible", plugins)


def test_claim_of_a_class_with_an_old_provisioner_counts_for_the_driver() -> None:
    late = make_storage_class("late", provisioner="kubernetes.io/gce-pd")
    placement = _place(_CLAIMED, _csi_node(0), late, make_claim("data", "late"))
    assert placement.message == "0/1 nodes are available: 1 node(s) exceed max volume count."
