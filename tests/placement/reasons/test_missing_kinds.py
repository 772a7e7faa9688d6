"""Each kind that plugins read beside nodes and pods: a pod that it concerns, and what is named while it is not known.

Namespaces are listed in every view; tests/placement/test_unmodelled.py has the case of one that is missing.
"""

from typing import Any, NamedTuple

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import make_device_class, make_resource_claim
from tests.support.objects.storage import (
    make_capacity,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
    uses,
)
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.optional_kinds import OPTIONAL_KINDS
from webhook.placement.profiles.profile import BINPACK
from webhook.placement.reasons.missing_kinds import missing_kinds
from webhook.placement.scheduler import Placement, PodSignature, Scheduler

Object = dict[str, Any]

_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
_SLICE: Object = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        "devices": [{"name": "gpu-0"}],
    },
}
_PRIORITY: Object = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "low"},
    "value": -9,
}
_OBJECTS: list[Object] = [
    make_pvc("bound", volume="v"),
    make_pvc("late", "late"),
    make_pv("v"),
    make_storage_class("late"),
    make_csi_node("a", disk=9),
    make_csi_driver(tracks_capacity=True),
    make_capacity("c", "late", "1Ti", on={}),
    make_device_class("gpu", any_driver=True),
    make_resource_claim("claim", _REQUEST),
    make_resource_claim("template", _REQUEST, template=True),
    _SLICE,
    _PRIORITY,
    *(
        {
            "apiVersion": OPTIONAL_KINDS[kind].api_version,
            "kind": kind,
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "selector": {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
            },
        }
        for kind in ("ReplicaSet", "StatefulSet", "ReplicationController")
    ),
]


class Entry(NamedTuple):
    """A pod, and what is named while the kind is not known; `keeps_verdict`: the verdict stands even so."""

    pod: PodBuilder
    plugins: tuple[str, ...]
    keeps_verdict: bool = False


_BOUND, _LATE = make_pod().spec(volumes=uses("bound")), make_pod().spec(volumes=uses("late"))
_CLAIM = make_pod().spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "claim"}])
_TEMPLATE = make_pod().spec(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "template"}])
_SPREAD = ("PodTopologySpread",)
_ENTRIES = {
    "Service": Entry(make_pod(), _SPREAD, keeps_verdict=True),
    "ReplicationController": Entry(
        make_pod().owner("ReplicationController", "web", api_version="v1"), _SPREAD, keeps_verdict=True
    ),
    "ReplicaSet": Entry(make_pod().owner("ReplicaSet", "web"), _SPREAD, keeps_verdict=True),
    "StatefulSet": Entry(make_pod().owner("StatefulSet", "web"), _SPREAD, keeps_verdict=True),
    "PersistentVolumeClaim": Entry(_BOUND, ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone")),
    "PersistentVolume": Entry(_BOUND, ("NodeVolumeLimits", "VolumeBinding", "VolumeZone")),
    "StorageClass": Entry(_LATE, ("NodeVolumeLimits", "VolumeBinding", "VolumeZone")),
    "CSINode": Entry(_BOUND, ("NodeVolumeLimits",), keeps_verdict=True),
    "CSIDriver": Entry(_LATE, ("VolumeBinding",)),
    "CSIStorageCapacity": Entry(_LATE, ("VolumeBinding",)),
    "VolumeAttachment": Entry(_BOUND, ("NodeVolumeLimits",), keeps_verdict=True),
    "DeviceClass": Entry(_CLAIM, ("DynamicResources",)),
    "ResourceClaim": Entry(_CLAIM, ("DynamicResources",)),
    "ResourceClaimTemplate": Entry(_TEMPLATE, ("DynamicResources",)),
    "ResourceSlice": Entry(_CLAIM, ("DynamicResources",)),
    # Without rules, no device has another taint than its own. Older releases serve none.
    "DeviceTaintRule": Entry(_CLAIM, (), keeps_verdict=True),
    "PriorityClass": Entry(make_pod().spec(priorityClassName="low"), ("DefaultPreemption",)),
    # No plugin reads quotas: without them, a warning is missing.
    "ResourceQuota": Entry(make_pod(), (), keeps_verdict=True),
    # Only who makes room for a pod depends on them.
    "PodDisruptionBudget": Entry(make_pod(), (), keeps_verdict=True),
    # No plugin of a scheduler reads them: a pod at admission has what they add (tests/admission/api_server).
    "RuntimeClass": Entry(make_pod(), (), keeps_verdict=True),
    "LimitRange": Entry(make_pod(), (), keeps_verdict=True),
}


def _place(pod: PodBuilder, unknown: str = "", left_out: str = "") -> Placement:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a"), make_node_object("b")])
    cache.replace("Namespace", [{"metadata": {"name": "default"}}])
    waiting = make_pod("waits").namespace("default").requests(cpu="1").spec(priority=-5).status(nominatedNodeName="b")
    cache.replace("Pod", [waiting.obj()])
    for kind in OPTIONAL_KINDS:
        if kind != unknown:
            cache.replace(kind, [each for each in _OBJECTS if each["kind"] == kind])
    if left_out:
        found = [each["metadata"] for each in _OBJECTS if each["kind"] == left_out] or [{"name": "web"}]
        for metadata in found:
            malformed = {"metadata": {"namespace": "default", **metadata}, "spec": "none"}
            assert cache.apply(left_out, "MODIFIED", malformed) is not None
    return Scheduler().place(pod.namespace("default").obj(), cache.snapshot())


@pytest.mark.parametrize("kind", OPTIONAL_KINDS)
def test_kind_that_is_not_known_is_named(kind: str) -> None:
    entry = _ENTRIES[kind]
    known, unknown = _place(entry.pod), _place(entry.pod, unknown=kind)
    assert (known.verdict, known.unmodelled) == ("Feasible", ())
    assert unknown.unmodelled == entry.plugins
    assert unknown.verdict == ("Feasible" if entry.keeps_verdict else "Unknown")


_OF_TENANTS = (
    *("Service", "ReplicationController", "ReplicaSet", "StatefulSet"),
    *("PersistentVolumeClaim", "ResourceClaim", "ResourceClaimTemplate"),
)


@pytest.mark.parametrize("kind", _OF_TENANTS)
def test_object_that_is_left_out_counts_as_unknown_and_not_as_missing(kind: str) -> None:
    entry = _ENTRIES[kind]
    placement = _place(entry.pod, left_out=kind)
    assert placement.unmodelled == entry.plugins
    assert placement.verdict == ("Feasible" if entry.keeps_verdict else "Unknown")


_TERM = {
    "labelSelector": {"matchLabels": {"app": "web"}},
    "topologyKey": "zone",
    "namespaces": [str(each) for each in range(9_000)],
}
_LARGE_TERMS = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}
_SPREADING = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "topologyKey": "zone", "labelSelector": {}}


@pytest.mark.parametrize(
    ("pod", "plugins"),
    [
        (make_pod(), ("InterPodAffinity",)),
        (make_pod().host_port(80), ("InterPodAffinity", "NodePorts")),
        (make_pod().spec(topologySpreadConstraints=[_SPREADING]), ("InterPodAffinity", "PodTopologySpread")),
    ],
)
def test_running_pod_that_is_too_large_leaves_open_what_compares_pods(
    pod: PodBuilder, plugins: tuple[str, ...]
) -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    for kind in OPTIONAL_KINDS:
        cache.replace(kind, [])
    large = make_pod("large").node_name("a")
    for number in range(300):
        large = large.label(f"key-{number}", "v").host_port(10_000 + number)
    cache.replace("Pod", [large.affinity(_LARGE_TERMS).obj()])
    placement = Scheduler(BINPACK).place(pod.obj(), cache.snapshot())
    assert (placement.verdict, placement.unmodelled) == ("Unknown", plugins)
    cache.replace("Pod", [])
    assert Scheduler(BINPACK).place(pod.obj(), cache.snapshot()).unmodelled == ()


@pytest.mark.parametrize(
    ("unknown", "left_out", "wanted"),
    [
        pytest.param(("ResourceSlice",), "", ("resourceslices",), id="one kind"),
        pytest.param(
            ("DeviceClass", "ResourceSlice"), "", ("deviceclasses", "resourceslices"), id="two kinds of a plugin"
        ),
        pytest.param(
            ("ResourceSlice", "PersistentVolume"),
            "",
            ("persistentvolumes", "resourceslices"),
            id="kinds of two plugins",
        ),
        pytest.param((), "", (), id="everything is known"),
        pytest.param(
            ("ResourceSlice",), "PersistentVolumeClaim", (), id="another plugin lacks an object of a known kind"
        ),
    ],
)
def test_kinds_are_named_if_they_suffice(unknown: tuple[str, ...], left_out: str, wanted: tuple[str, ...]) -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    cache.replace("Namespace", [{"metadata": {"name": "default"}}])
    cache.replace("Pod", [])
    for kind in OPTIONAL_KINDS:
        if kind not in unknown:
            cache.replace(kind, [each for each in _OBJECTS if each["kind"] == kind])
    if left_out:
        malformed = {"metadata": {"namespace": "default", "name": "bound"}, "spec": "none"}
        assert cache.apply(left_out, "MODIFIED", malformed) is not None
    snapshot, pod = cache.snapshot(), _CLAIM.spec(volumes=uses("bound")).namespace("default")
    info = PodSignature.of(pod.obj()).info.normalized_for(snapshot)

    assert missing_kinds(info, snapshot) == wanted
