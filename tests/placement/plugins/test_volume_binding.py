"""A pod waits for storage where its driver reports too little capacity for a volume that is to be made."""

from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
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
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.plugins.volume_binding import (
    ERR_REASON_NODE_CONFLICT,
    ERR_REASON_PV_NOT_EXIST,
    VolumeBinding,
)
from webhook.placement.scheduler import Placement, PodSignature, Scheduler

Object = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_NODES = [make_node_object(name, labels={_ZONE: f"z{name}"}) for name in ("a", "b", "c")]
_CLASS = make_storage_class("late")
_DRIVER = make_csi_driver(tracks_capacity=True)
_CLAIM = make_pvc("data", "late", storage="2Gi")
_OTHER_CLASS = make_capacity("other", "other", "1Ti", on={})
_KNOWN = (make_pv("other"), make_csi_node("a"))


def _place(*objects: Object, claims: tuple[str, ...] = ("data",)) -> Placement:
    documents = [Document("cluster", each) for each in (*_NODES, *_KNOWN, *objects)]
    return Scheduler().place(make_pod().spec(volumes=uses(*claims)).obj(), snapshot_from_documents(documents))


def _on(zone: str) -> dict[str, str]:
    return {_ZONE: zone}


@pytest.mark.parametrize(
    ("capacities", "feasible"),
    [
        pytest.param([make_capacity("net", "late", "2Gi", on={})], "abc", id="enough everywhere"),
        pytest.param([make_capacity("net", "late", "2047Mi", on={})], "", id="too little"),
        pytest.param(
            [make_capacity("net", "late", "2147483647500m", on={})], "abc", id="sizes are rounded up to bytes"
        ),
        pytest.param([make_capacity("net", "other", "1Ti", on={})], "", id="of another class"),
        pytest.param([make_capacity("net", "late", "1Ti")], "", id="from no node"),
        pytest.param([make_capacity("net", "late", on={})], "", id="not reported"),
        pytest.param([make_capacity("net", "late", "1Ti", "1Gi", on={})], "", id="in pieces that are too small"),
        pytest.param([make_capacity("net", "late", "1Gi", "2Gi", on={})], "abc", id="the largest volume counts"),
        pytest.param([make_capacity("l", "late", "3Gi", on=_on("zb"))], "b", id="on one node"),
        pytest.param(
            [
                make_capacity("la", "late", "3Gi", on=_on("za")),
                make_capacity("lb", "late", "1Gi", on=_on("zb")),
                make_capacity("lc", "late", "3Gi", on=_on("zc")),
            ],
            "ac",
            id="on some nodes",
        ),
        pytest.param([make_capacity("l", "late", "3Gi", on=_on("zb") | {"disk": "ssd"})], "", id="every label counts"),
    ],
)
def test_volume_is_made_where_there_is_capacity(capacities: list[Object], feasible: str) -> None:
    placement = _place(_CLASS, _DRIVER, _CLAIM, _OTHER_CLASS, *capacities)
    assert (placement.feasible, placement.unmodelled) == (len(feasible), ())
    if feasible:
        assert placement.verdict == "Feasible"
        assert (set(placement.scores) or {str(placement.node)}) == set(feasible)
    else:
        reason = "0/3 nodes are available: 3 node(s) did not have enough free storage."
        assert (placement.verdict, placement.message) == ("Waiting", reason)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([_DRIVER, make_storage_class("late", provisioner="other.example.com")], id="another driver"),
        pytest.param([make_csi_driver(), _CLASS], id="a driver that does not report any"),
        pytest.param(
            [_DRIVER, _CLASS, available(make_pv("v", "late", storage="9Gi"))], id="a volume that is there already"
        ),
    ],
)
def test_capacity_does_not_matter(objects: list[Object]) -> None:
    placement = _place(*objects, _CLAIM, _OTHER_CLASS)
    assert (placement.verdict, placement.feasible, placement.unmodelled) == ("Feasible", 3, ())


def test_first_claim_that_cannot_be_made_gives_the_reason() -> None:
    zonal = make_storage_class("zonal", topologies=[{_ZONE: ["za"]}])
    objects = (
        _CLASS,
        zonal,
        _DRIVER,
        make_capacity("z", "zonal", "1Ti", on={}),
        make_capacity("s", "late", "1Gi", on={}),
    )
    small, large = make_pvc("small", "zonal", storage="1Gi"), _CLAIM
    placement = _place(*objects, small, large, claims=("data", "small"))
    assert placement.message == (
        "0/3 nodes are available: 1 node(s) did not have enough free storage, "
        "2 node(s) didn't find available persistent volumes to bind."
    )


@pytest.mark.parametrize(
    ("objects", "unmodelled"),
    [
        pytest.param([_CLASS], ("VolumeBinding",), id="drivers are not known"),
        pytest.param([_CLASS, _DRIVER], ("VolumeBinding",), id="capacities are not known"),
        pytest.param([_CLASS, make_csi_driver()], (), id="nor need they be"),
        pytest.param(
            [make_storage_class("late", provisioner="example.com/nfs")], (), id="a provisioner that is no CSI driver"
        ),
    ],
)
def test_what_is_not_known_is_named(objects: list[Object], unmodelled: tuple[str, ...]) -> None:
    placement = _place(*objects, _CLAIM)
    assert (placement.verdict, placement.unmodelled) == ("Unknown" if unmodelled else "Feasible", unmodelled)


def test_claim_that_asks_for_no_size_needs_no_capacity() -> None:
    sizeless = make_pvc("data", "late", resources={})
    assert _place(_CLASS, _DRIVER, sizeless, _OTHER_CLASS).feasible == 3


@pytest.mark.parametrize(
    ("claims", "conflict", "missing"),
    [
        pytest.param(("near", "gone"), "bc", "a", id="a conflict comes first"),
        pytest.param(("gone", "near"), "", "abc", id="a missing volume comes first"),
        pytest.param(("near",), "bc", "", id="only a conflict"),
        pytest.param(("near", "far"), "abc", "", id="two conflicts"),
        pytest.param(("gone",), "", "abc", id="only a missing volume"),
    ],
)
def test_reason_of_a_node_is_that_of_the_first_claim_that_it_cannot_serve(
    claims: tuple[str, ...], conflict: str, missing: str
) -> None:
    """On nodes without pods, a volume may still come."""
    volumes = [make_pv(name, on={_ZONE: [zone]}) for name, zone in (("near", "za"), ("far", "zb"))]
    objects = *_NODES, *_KNOWN, *volumes, *(make_pvc(name, volume=name) for name in ("near", "far", "gone"))
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    info = PodSignature.of(make_pod().namespace("default").spec(volumes=uses(*claims)).obj()).info

    for nodes, absent in ((snapshot, missing), (snapshot.without_pods(), "")):
        found = {each.reason: each.rejected for each in VolumeBinding().filter(info, nodes)}
        names = {
            reason: "".join(name for name, is_rejected in zip("abc", rejected, strict=True) if is_rejected)
            for reason, rejected in found.items()
        }
        assert names.get(ERR_REASON_PV_NOT_EXIST, "") == absent
        if nodes is snapshot:
            assert names[ERR_REASON_NODE_CONFLICT] == conflict
