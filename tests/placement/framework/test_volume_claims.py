"""Claims, volumes and storage classes of a cluster file change a pod's nodes, message and verdict."""

import pytest

from tests.placement.framework.volumes import KNOWN, LIMITS, ZONE, Object, all_kinds, place, pod_with, running_pod
from tests.support.objects.builders import make_pod
from tests.support.objects.storage import (
    available,
    make_attachment,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)
from webhook.placement.scheduler import Placement

_OF_DATA = {"namespace": "default", "name": "data"}


def _being_deleted(volume: Object) -> Object:
    return volume | {"metadata": volume["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def _selected(name: str, node: str) -> Object:
    """A claim whose volume is being made on `node`."""
    claim = make_pvc(name, "late")
    claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
    return claim


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
    placement = place(pod_with("data"), *KNOWN, *objects)
    assert (placement.verdict, placement.message, placement.unmodelled) == ("Waiting", all_kinds(message), ())


def test_pod_whose_claim_is_not_ready_and_that_fits_nowhere_is_infeasible() -> None:
    assert place(pod_with("data").gpu(1), *KNOWN).verdict == "Infeasible"


@pytest.mark.parametrize(
    ("objects", "nodes"),
    [
        pytest.param([make_pvc("data", volume="v"), make_pv("v")], {"a", "b", "c"}, id="reached from anywhere"),
        pytest.param([make_pvc("data", volume="v"), make_pv("v", on={ZONE: ["zb"]})], {"b"}, id="affinity"),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={ZONE: "za__zc"})], {"a", "c"}, id="zone label"
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={ZONE: " za__zc "})],
            {"a", "c"},
            id="blanks around the zones",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={ZONE: "za__"})],
            {"a", "b", "c"},
            id="a zone label with an empty part is ignored",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={ZONE: ""})],
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
            [make_pvc("data", "late"), make_storage_class("late", topologies=[{ZONE: ["za"]}, {ZONE: ["zc"]}])],
            {"a", "c"},
            id="made in some zones",
        ),
        pytest.param(
            [
                make_pvc("data", "local", storage="2Gi"),
                make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
                available(make_pv("small", "local", on={ZONE: ["za"]})),
                available(make_pv("large", "local", on={ZONE: ["zb"]}, storage="3Gi")),
                make_pv("taken", "local", on={ZONE: ["zc"]}, storage="3Gi"),
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
                make_pv("first", "local", on={ZONE: ["za"]}, claimRef=_OF_DATA),
                make_pv("second", "local", on={ZONE: ["zb"]}, claimRef=_OF_DATA),
                available(make_pv("free", "local", on={ZONE: ["zc"]})),
            ],
            {"a"},
            id="the first volume that is kept for the claim decides",
        ),
        pytest.param(
            [
                make_pvc("data", "local"),
                make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
                _being_deleted(available(make_pv("leaving", "local", on={ZONE: ["za"]}))),
                available(make_pv("staying", "local", on={ZONE: ["zb"]})),
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
                        on={ZONE: ["za"]},
                        claimRef={"namespace": "default", "name": "data", "uid": "of-an-earlier-claim"},
                    )
                ),
                available(make_pv("free", "local", on={ZONE: ["zb"]})),
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
    placement = place(pod_with("data"), *KNOWN, *objects)
    assert placement.verdict == "Feasible"
    assert set(placement.scores) == nodes or (placement.feasible, {placement.node}) == (1, nodes)
    assert placement.unmodelled == ()


def test_two_claims_do_not_find_the_same_volume() -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    volumes = [
        available(make_pv("a1", "local", on={ZONE: ["za"]})),
        available(make_pv("b1", "local", on={ZONE: ["zb"]})),
        available(make_pv("b2", "local", on={ZONE: ["zb"]})),
    ]
    claims = [make_pvc("x", "local"), make_pvc("y", "local")]
    placement = place(pod_with("x", "y"), *KNOWN, local, *volumes, *claims)
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
    placement = place(pod_with("data"), *KNOWN, *objects)
    assert placement.message == all_kinds("3 node(s) didn't find available persistent volumes to bind")


def test_a_volume_that_is_kept_for_the_claim_is_found_though_it_is_not_available() -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    kept = make_pv("v", "local", on={ZONE: ["zb"]}, claimRef={"namespace": "default", "name": "data"})
    assert place(pod_with("data"), *KNOWN, local, make_pvc("data", "local"), kept).node == "b"


def test_pod_of_a_claim_that_is_being_deleted_waits() -> None:
    placement = place(pod_with("data"), *KNOWN, _being_deleted(make_pvc("data", volume="v")), make_pv("v"))
    assert placement.message == all_kinds('persistentvolumeclaim "data" is being deleted')


def test_a_small_claim_leaves_the_large_volume_to_a_large_claim() -> None:
    local = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    volumes = [
        available(make_pv("a-large", "local", on={ZONE: ["zb"]}, storage="3Gi")),
        available(make_pv("b-small", "local", on={ZONE: ["zb"]}, storage="1Gi")),
    ]
    claims = [make_pvc("small", "local"), make_pvc("large", "local", storage="3Gi")]
    placement = place(pod_with("small", "large"), *KNOWN, local, *volumes, *claims)
    assert (placement.node, placement.feasible) == ("b", 1)


def test_claims_that_are_being_made_on_different_nodes_leave_none() -> None:
    claims = [_selected("x", "b"), _selected("y", "c")]
    placement = place(pod_with("x", "y"), *KNOWN, make_storage_class("late"), *claims)
    assert placement.feasible == 0
    assert placement.message == all_kinds("3 node(s) didn't find available persistent volumes to bind")


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", on={ZONE: ["zx"]})],
            "3 node(s) didn't match PersistentVolume's node affinity",
            id="affinity",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), make_pv("v", labels={ZONE: "zx"})],
            "3 node(s) had no available volume zone",
            id="zone",
        ),
    ],
)
def test_volume_out_of_every_nodes_reach_is_infeasible(objects: list[Object], reason: str) -> None:
    placement = place(pod_with("data"), *KNOWN, *objects)
    assert (placement.verdict, placement.message) == ("Infeasible", all_kinds(reason))


@pytest.mark.parametrize(
    ("storage_class", "verdict"),
    [
        pytest.param(
            make_storage_class("local", provisioner="kubernetes.io/no-provisioner"), "Waiting", id="one may be added"
        ),
        pytest.param(make_storage_class("local", topologies=[{ZONE: ["zx"]}]), "Infeasible", id="made elsewhere"),
    ],
)
def test_claim_for_which_no_volume_is_there(storage_class: Object, verdict: str) -> None:
    placement = place(pod_with("data"), *KNOWN, make_pvc("data", "local"), storage_class)
    reason = "3 node(s) didn't find available persistent volumes to bind"
    assert (placement.verdict, placement.message) == (verdict, all_kinds(reason))


def test_claim_of_that_name_in_another_namespace_is_another_claim() -> None:
    claim = make_pvc("data", volume="v", accessModes=["ReadWriteOncePod"])
    running = make_pod("first").namespace("elsewhere").node_name("a").spec(volumes=uses("data")).obj()
    assert place(pod_with("data"), *KNOWN, claim, make_pv("v"), running).feasible == 3


def test_node_has_so_many_volumes_of_a_driver_attached() -> None:
    limits = [make_csi_node("a", disk=2), make_csi_node("b", disk=1, tape=0), make_csi_node("c", tape=1)]
    known = [each for each in KNOWN if each not in LIMITS]
    objects = [
        *(make_pvc(name, volume=name) for name in ("p", "q", "r")),
        *(make_pv(name) for name in ("p", "q", "r")),
        running_pod("first", uses("p")),
        running_pod("second", uses("p", "q")),
        running_pod("third", uses("p"), node="b"),
    ]
    placement = place(pod_with("r"), *known, *limits, *objects)
    assert (placement.node, placement.feasible) == ("c", 1)
    # A volume that is attached already is not attached once more.
    assert set(place(pod_with("q"), *known, *limits, *objects).scores) == {"a", "c"}
    full = place(pod_with("r").node_selector(ZONE, "za"), *known, *limits, *objects)
    assert full.verdict == "Waiting"
    assert "1 node(s) exceed max volume count" in full.message


def test_node_over_its_limit_takes_a_pod_whose_volumes_are_attached_there() -> None:
    known = [each for each in KNOWN if each not in LIMITS]
    objects = [
        make_csi_node("a", disk=1),
        *(make_pvc(name, volume=name) for name in ("p", "q", "r")),
        *(make_pv(name) for name in ("p", "q", "r")),
        running_pod("first", uses("p", "q")),
    ]

    def on_a(*claims: str) -> Placement:
        return place(pod_with(*claims).node_selector(ZONE, "za"), *known, *objects)

    assert on_a("p").node == "a"
    assert "1 node(s) exceed max volume count" in on_a("p", "r").message


def test_volume_that_is_attached_without_a_running_pod_counts() -> None:
    limits = [make_csi_node("a", disk=1), make_csi_node("b", disk=1), make_csi_node("c", disk=2)]
    known = [each for each in KNOWN if each not in LIMITS]
    objects = [
        *(make_pvc(name, volume=name) for name in ("p", "q")),
        *(make_pv(name) for name in ("p", "q")),
        make_pv("disk", csi=None, hostPath={"path": "/d"}),
        running_pod("first", uses("p"), node="c"),
        make_attachment("a", "p"),
        make_attachment("b", "disk"),
        make_attachment("b", "missing"),
        make_attachment("c", "p"),
    ]
    # On b no volume of the driver is attached; on c, the one that is attached is the running pod's.
    assert set(place(pod_with("q"), *known, *limits, *objects).scores) == {"b", "c"}
    full = place(pod_with("q").node_selector(ZONE, "za"), *known, *limits, *objects)
    assert (full.verdict, full.unmodelled) == ("Waiting", ())
    assert "1 node(s) exceed max volume count" in full.message


def test_attachments_that_are_not_known_are_named_where_a_node_has_a_limit() -> None:
    known = [each for each in KNOWN if each["kind"] not in ("VolumeAttachment", "CSINode")]
    objects = [make_pvc("data", volume="v"), make_pv("v")]
    assert place(pod_with("data"), make_csi_node("a"), *known, *objects).unmodelled == ()
    limited = place(pod_with("data"), make_csi_node("a", disk=9), *known, *objects)
    assert (limited.verdict, limited.unmodelled) == ("Feasible", ("NodeVolumeLimits",))
    other = place(pod_with("data"), make_csi_node("a", tape=9), *known, *objects)
    assert other.unmodelled == ()


@pytest.mark.parametrize(
    ("objects", "plugins"),
    [
        pytest.param([], ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"), id="nothing known"),
        pytest.param(
            [make_pvc("data", volume="v")], ("NodeVolumeLimits", "VolumeBinding", "VolumeZone"), id="no volumes known"
        ),
        pytest.param(
            [make_pvc("data", "late"), *LIMITS],
            ("NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
            id="no classes known",
        ),
        pytest.param(
            [make_pvc("data", volume="v"), *LIMITS],
            ("NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
            id="no volumes known, though a claim names one",
        ),
    ],
)
def test_what_the_file_does_not_tell_is_named(objects: list[Object], plugins: tuple[str, ...]) -> None:
    placement = place(pod_with("data"), *objects)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", plugins)


def test_claim_that_is_made_after_its_pod_is_not_predicted() -> None:
    pod = make_pod("p").spec(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert place(pod, *KNOWN).verdict == "Unknown"
    made = make_pvc("p-v", volume="v")
    made["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": "1", "controller": True}]
    volume = make_pv("v", on={ZONE: ["zb"]})
    assert place(pod, *KNOWN, made, volume).node == "b"
    foreign = place(pod.uid("2"), *KNOWN, made, volume)
    wanted = all_kinds("PVC default/p-v was not created for pod default/p (pod is not owner)")
    assert (foreign.verdict, foreign.message) == ("Waiting", wanted)


def test_without_csi_nodes_no_node_has_a_limit() -> None:
    placement = place(pod_with("data"), make_pvc("data", volume="v"), make_pv("v"))
    assert (placement.verdict, placement.feasible, placement.unmodelled) == ("Feasible", 3, ("NodeVolumeLimits",))


def test_volume_is_reached_by_labels_alone_whatever_it_asks_of_names() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["x"]}]
    volume = make_pv("v", nodeAffinity={"required": {"nodeSelectorTerms": [{"matchFields": fields}]}})
    assert place(pod_with("data"), *KNOWN, make_pvc("data", volume="v"), volume).feasible == 3
