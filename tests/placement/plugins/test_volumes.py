"""Claims, volumes and storage classes of a cluster file change a pod's nodes, message and verdict."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import (
    available,
    make_attachment,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_NODES = [make_node_object(name, labels={_ZONE: f"z{name}"}) for name in ("a", "b", "c")]
_LIMITS = [make_csi_node(name) for name in ("a", "b", "c")]
# With one object of each kind, all kinds are known.
_KNOWN = [
    make_pvc("other", volume="other"),
    make_pv("other"),
    make_storage_class("other"),
    make_csi_driver(),
    make_attachment("elsewhere", "other"),
    *_LIMITS,
]
_OF_DATA = {"namespace": "default", "name": "data"}


def _place(pod: PodBuilder, *objects: Object) -> Placement:
    documents = [Document("cluster", each) for each in (*_NODES, *objects)]
    return Scheduler().place(pod.obj(), snapshot_from_documents(documents))


def _uses(*claims: str) -> PodBuilder:
    return make_pod().spec(volumes=uses(*claims))


def _running(name: str, volumes: list[Object], node: str = "a") -> Object:
    return make_pod(name).namespace("default").node_name(node).spec(volumes=volumes).obj()


def _being_deleted(volume: Object) -> Object:
    return volume | {"metadata": volume["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def _selected(name: str, node: str) -> Object:
    """A claim whose volume is being made on `node`."""
    claim = make_pvc(name, "late")
    claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
    return claim


def _all(reason: str) -> str:
    return f"0/3 nodes are available: {reason}."


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="missing claim"),
        pytest.param(
            [make_pvc("data", volume="gone") | {"status": {"phase": "Lost"}}],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            id="lost claim",
        ),
        pytest.param([make_pvc("data", volume="gone")], 'persistentvolume "gone" not found', id="missing volume"),
        pytest.param([make_pvc("data")], "pod has unbound immediate PersistentVolumeClaims", id="no class"),
        pytest.param(
            [make_pvc("data", "fast"), make_storage_class("fast", waits=False)],
            "pod has unbound immediate PersistentVolumeClaims",
            id="bound at once, but not yet",
        ),
        pytest.param(
            [make_pvc("data", "fast")], "pod has unbound immediate PersistentVolumeClaims", id="a class that is missing"
        ),
        pytest.param(
            [make_pvc("data", "late", "v", bound=False), make_pv("v"), make_storage_class("late")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="half bound",
        ),
    ],
)
def test_pod_whose_claim_is_not_ready_waits(objects: list[Object], message: str) -> None:
    placement = _place(_uses("data"), *_KNOWN, *objects)
    assert (placement.verdict, placement.message, placement.unmodelled) == ("Waiting", _all(message), ())


def test_pod_whose_claim_is_not_ready_and_that_fits_nowhere_is_infeasible() -> None:
    assert _place(_uses("data").gpu(1), *_KNOWN).verdict == "Infeasible"


@pytest.mark.parametrize(
    ("objects", "nodes"),
    [
        pytest.param([make_pvc("data", volume="v"), make_pv("v")], {"a", "b", "c"}, id="reached from anywhere"),
        pytest.param([make_pvc("data", volume="v"), make_pv("v", on={_ZONE: ["zb"]})], {"b"}, id="affinity"),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={_ZONE: "za__zc"})], {"a", "c"}, id="zone label"
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={_ZONE: " za__zc "})],
            {"a", "c"},
            id="blanks around the zones",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={_ZONE: "za__"})],
            {"a", "b", "c"},
            id="a zone label with an empty part is ignored",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={_ZONE: ""})],
            {"a", "b", "c"},
            id="an empty zone label is ignored",
        ),
        pytest.param(
            [
                make_pvc("data", volume="v"),
                make_pv("v", labels={"failure-domain.beta.kubernetes.io/zone": "zb"}),
            ],
            {"b"},
            id="old zone label",
        ),
        pytest.param([make_pvc("data", "late"), make_storage_class("late")], {"a", "b", "c"}, id="made anywhere"),
        pytest.param(
            [make_pvc("data", "late"), make_storage_class("late", topologies=[{_ZONE: ["za"]}, {_ZONE: ["zc"]}])],
            {"a", "c"},
            id="made in some zones",
        ),
        pytest.param(
            [
                make_pvc("data", "local", storage="2Gi"),
                make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
                available(make_pv("small", "local", on={_ZONE: ["za"]})),
                available(make_pv("large", "local", on={_ZONE: ["zb"]}, storage="3Gi")),
                make_pv("taken", "local", on={_ZONE: ["zc"]}, storage="3Gi"),
                available(
                    make_pv("kept", "local", storage="3Gi", claimRef={"namespace": "default", "name": "somebody-else"})
                ),
            ],
            {"b"},
            id="found where one is large enough and free",
        ),
        pytest.param(
            [
                make_pvc("data", "local"),
                make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
                make_pv("first", "local", on={_ZONE: ["za"]}, claimRef=_OF_DATA),
                make_pv("second", "local", on={_ZONE: ["zb"]}, claimRef=_OF_DATA),
                available(make_pv("free", "local", on={_ZONE: ["zc"]})),
            ],
            {"a"},
            id="the first volume that is kept for the claim decides",
        ),
        pytest.param(
            [
                make_pvc("data", "local"),
                make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
                _being_deleted(available(make_pv("leaving", "local", on={_ZONE: ["za"]}))),
                available(make_pv("staying", "local", on={_ZONE: ["zb"]})),
            ],
            {"b"},
            id="not found where it is being deleted",
        ),
        pytest.param(
            [
                make_pvc("data", "local"),
                make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
                available(
                    make_pv(
                        "kept",
                        "local",
                        on={_ZONE: ["za"]},
                        claimRef={"namespace": "default", "name": "data", "uid": "of-an-earlier-claim"},
                    )
                ),
                available(make_pv("free", "local", on={_ZONE: ["zb"]})),
            ],
            {"b"},
            id="not found where it is kept for an earlier claim of that name",
        ),
        pytest.param(
            [
                _selected("data", "c"),
                make_storage_class("late"),
            ],
            {"c"},
            id="being made on one node",
        ),
    ],
)
def test_pod_goes_where_its_volume_is_reached_found_or_made(objects: list[Object], nodes: set[str]) -> None:
    placement = _place(_uses("data"), *_KNOWN, *objects)
    assert placement.verdict == "Feasible"
    assert set(placement.scores) == nodes or (placement.feasible, {placement.node}) == (1, nodes)
    assert placement.unmodelled == ()


def test_two_claims_do_not_find_the_same_volume() -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    volumes = [
        available(make_pv("a1", "local", on={_ZONE: ["za"]})),
        available(make_pv("b1", "local", on={_ZONE: ["zb"]})),
        available(make_pv("b2", "local", on={_ZONE: ["zb"]})),
    ]
    claims = [make_pvc("x", "local"), make_pvc("y", "local")]
    placement = _place(_uses("x", "y"), *_KNOWN, local, *volumes, *claims)
    assert (placement.node, placement.feasible) == ("b", 1)


@pytest.mark.parametrize(
    ("claim", "volume"),
    [
        pytest.param({"volumeMode": "Block"}, {"volumeMode": "Filesystem"}, id="another volume mode"),
        pytest.param({}, {"volumeMode": "Block"}, id="a block device for a claim of a file system"),
        pytest.param({}, {"volumeAttributesClassName": "fast"}, id="another attributes class"),
        pytest.param({"accessModes": ["ReadWriteMany"]}, {"accessModes": ["ReadWriteOnce"]}, id="no such access"),
        pytest.param({"selector": {"matchLabels": {"disk": "ssd"}}}, {}, id="without the label that is selected"),
    ],
)
def test_a_volume_that_is_not_what_the_claim_asks_for_is_not_found(claim: Object, volume: Object) -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    objects = [local, make_pvc("data", "local", **claim), available(make_pv("v", "local", **volume))]
    placement = _place(_uses("data"), *_KNOWN, *objects)
    assert placement.message == _all("3 node(s) didn't find available persistent volumes to bind")


def test_a_volume_that_is_kept_for_the_claim_is_found_though_it_is_not_available() -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    kept = make_pv("v", "local", on={_ZONE: ["zb"]}, claimRef={"namespace": "default", "name": "data"})
    assert _place(_uses("data"), *_KNOWN, local, make_pvc("data", "local"), kept).node == "b"


def test_pod_of_a_claim_that_is_being_deleted_waits() -> None:
    placement = _place(_uses("data"), *_KNOWN, _being_deleted(make_pvc("data", volume="v")), make_pv("v"))
    assert placement.message == _all('persistentvolumeclaim "data" is being deleted')


def test_a_small_claim_leaves_the_large_volume_to_a_large_claim() -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    volumes = [
        available(make_pv("a-large", "local", on={_ZONE: ["zb"]}, storage="3Gi")),
        available(make_pv("b-small", "local", on={_ZONE: ["zb"]}, storage="1Gi")),
    ]
    claims = [make_pvc("small", "local"), make_pvc("large", "local", storage="3Gi")]
    placement = _place(_uses("small", "large"), *_KNOWN, local, *volumes, *claims)
    assert (placement.node, placement.feasible) == ("b", 1)


def test_claims_that_are_being_made_on_different_nodes_leave_none() -> None:
    claims = [_selected("x", "b"), _selected("y", "c")]
    placement = _place(_uses("x", "y"), *_KNOWN, make_storage_class("late"), *claims)
    assert placement.feasible == 0
    assert placement.message == _all("3 node(s) didn't find available persistent volumes to bind")


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", on={_ZONE: ["zx"]})],
            "3 node(s) didn't match PersistentVolume's node affinity",
            id="affinity",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={_ZONE: "zx"})],
            "3 node(s) had no available volume zone",
            id="zone",
        ),
    ],
)
def test_volume_out_of_every_nodes_reach_is_infeasible(objects: list[Object], reason: str) -> None:
    placement = _place(_uses("data"), *_KNOWN, *objects)
    assert (placement.verdict, placement.message) == ("Infeasible", _all(reason))


@pytest.mark.parametrize(
    ("storage_class", "verdict"),
    [
        pytest.param(
            make_storage_class("local", provisioner="kubernetes.io/no-provisioner"), "Waiting", id="one may be added"
        ),
        pytest.param(make_storage_class("local", topologies=[{_ZONE: ["zx"]}]), "Infeasible", id="made elsewhere"),
    ],
)
def test_claim_for_which_no_volume_is_there(storage_class: Object, verdict: str) -> None:
    placement = _place(_uses("data"), *_KNOWN, make_pvc("data", "local"), storage_class)
    reason = "3 node(s) didn't find available persistent volumes to bind"
    assert (placement.verdict, placement.message) == (verdict, _all(reason))


_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def test_claim_for_one_pod_in_use_anywhere_waits() -> None:
    claim = make_pvc("data", volume="v", accessModes=["ReadWriteOncePod"])
    running = _running("first", uses("data"))
    placement = _place(_uses("data"), *_KNOWN, claim, make_pv("v"), running)
    assert (placement.verdict, placement.message) == ("Waiting", _all(f"3 {_IN_USE}"))


def test_claim_of_that_name_in_another_namespace_is_another_claim() -> None:
    claim = make_pvc("data", volume="v", accessModes=["ReadWriteOncePod"])
    running = make_pod("first").namespace("elsewhere").node_name("a").spec(volumes=uses("data")).obj()
    assert _place(_uses("data"), *_KNOWN, claim, make_pv("v"), running).feasible == 3


def test_node_has_so_many_volumes_of_a_driver_attached() -> None:
    limits = [make_csi_node("a", disk=2), make_csi_node("b", disk=1, tape=0), make_csi_node("c", tape=1)]
    known = [each for each in _KNOWN if each not in _LIMITS]
    objects = [
        *(make_pvc(name, volume=name) for name in ("p", "q", "r")),
        *(make_pv(name) for name in ("p", "q", "r")),
        _running("first", uses("p")),
        _running("second", uses("p", "q")),
        _running("third", uses("p"), node="b"),
    ]
    placement = _place(_uses("r"), *known, *limits, *objects)
    assert (placement.node, placement.feasible) == ("c", 1)
    # A volume that is attached already is not attached once more.
    assert set(_place(_uses("q"), *known, *limits, *objects).scores) == {"a", "c"}
    full = _place(_uses("r").node_selector(_ZONE, "za"), *known, *limits, *objects)
    assert full.verdict == "Waiting"
    assert "1 node(s) exceed max volume count" in full.message


def test_node_over_its_limit_takes_a_pod_whose_volumes_are_attached_there() -> None:
    known = [each for each in _KNOWN if each not in _LIMITS]
    objects = [
        make_csi_node("a", disk=1),
        *(make_pvc(name, volume=name) for name in ("p", "q", "r")),
        *(make_pv(name) for name in ("p", "q", "r")),
        _running("first", uses("p", "q")),
    ]

    def on_a(*claims: str) -> Placement:
        return _place(_uses(*claims).node_selector(_ZONE, "za"), *known, *objects)

    assert on_a("p").node == "a"
    assert "1 node(s) exceed max volume count" in on_a("p", "r").message


def test_volume_that_is_attached_without_a_running_pod_counts() -> None:
    limits = [make_csi_node("a", disk=1), make_csi_node("b", disk=1), make_csi_node("c", disk=2)]
    known = [each for each in _KNOWN if each not in _LIMITS]
    objects = [
        *(make_pvc(name, volume=name) for name in ("p", "q")),
        *(make_pv(name) for name in ("p", "q")),
        make_pv("disk", csi=None, hostPath={"path": "/d"}),
        _running("first", uses("p"), node="c"),
        make_attachment("a", "p"),
        make_attachment("b", "disk"),
        make_attachment("b", "missing"),
        make_attachment("c", "p"),
    ]
    # On b no volume of the driver is attached; on c, the one that is attached is the running pod's.
    assert set(_place(_uses("q"), *known, *limits, *objects).scores) == {"b", "c"}
    full = _place(_uses("q").node_selector(_ZONE, "za"), *known, *limits, *objects)
    assert (full.verdict, full.unmodelled) == ("Waiting", ())
    assert "1 node(s) exceed max volume count" in full.message


def test_attachments_that_are_not_known_are_named_where_a_node_has_a_limit() -> None:
    known = [each for each in _KNOWN if each["kind"] not in ("VolumeAttachment", "CSINode")]
    objects = [make_pvc("data", volume="v"), make_pv("v")]
    assert _place(_uses("data"), make_csi_node("a"), *known, *objects).unmodelled == ()
    limited = _place(_uses("data"), make_csi_node("a", disk=9), *known, *objects)
    assert (limited.verdict, limited.unmodelled) == ("Feasible", ("NodeVolumeLimits",))
    other = _place(_uses("data"), make_csi_node("a", tape=9), *known, *objects)
    assert other.unmodelled == ()


@pytest.mark.parametrize(
    ("objects", "plugins"),
    [
        pytest.param([], ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"), id="nothing known"),
        pytest.param(
            [make_pvc("data", volume="v")], ("NodeVolumeLimits", "VolumeBinding", "VolumeZone"), id="no volumes known"
        ),
        pytest.param(
            [make_pvc("data", "late"), *_LIMITS],
            ("NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
            id="no classes known",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), *_LIMITS],
            ("NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
            id="no volumes known, though a claim names one",
        ),
    ],
)
def test_what_the_file_does_not_tell_is_named(objects: list[Object], plugins: tuple[str, ...]) -> None:
    placement = _place(_uses("data"), *objects)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", plugins)


def test_claim_that_is_made_after_its_pod_is_not_predicted() -> None:
    pod = make_pod("p").spec(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert _place(pod, *_KNOWN).verdict == "Unknown"
    made = make_pvc("p-v", volume="v")
    made["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": "1", "controller": True}]
    volume = make_pv("v", on={_ZONE: ["zb"]})
    assert _place(pod, *_KNOWN, made, volume).node == "b"
    foreign = _place(pod.uid("2"), *_KNOWN, made, volume)
    wanted = _all("PVC default/p-v was not created for pod default/p (pod is not owner)")
    assert (foreign.verdict, foreign.message) == ("Waiting", wanted)


def test_without_csi_nodes_no_node_has_a_limit() -> None:
    placement = _place(_uses("data"), make_pvc("data", volume="v"), make_pv("v"))
    assert (placement.verdict, placement.feasible, placement.unmodelled) == ("Feasible", 3, ("NodeVolumeLimits",))


def test_empty_list_of_a_kind_says_that_there_is_none() -> None:
    late = [make_pvc("data", "late"), make_storage_class("late"), make_csi_node("a", disk=1), make_pv("other")]
    drivers = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriverList", "items": []}
    attachments = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachmentList", "items": []}
    assert _place(_uses("data"), *late).unmodelled == ("NodeVolumeLimits", "VolumeBinding")
    placement = _place(_uses("data"), *late, drivers, attachments)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", ())


@pytest.mark.parametrize("known", [make_storage_class("late"), _LIMITS[0]], ids=["class", "limits"])
def test_no_claims_beside_other_storage_are_no_claims(known: Object) -> None:
    placement = _place(_uses("data"), known)
    assert (placement.verdict, placement.message) == ("Waiting", _all('persistentvolumeclaim "data" not found'))


def test_volume_is_reached_by_labels_alone_whatever_it_asks_of_names() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["x"]}]
    volume = make_pv("v", nodeAffinity={"required": {"nodeSelectorTerms": [{"matchFields": fields}]}})
    assert _place(_uses("data"), *_KNOWN, make_pvc("data", volume="v"), volume).feasible == 3
