"""The claims of replicas: created with their pods, and bound as they are placed."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import claiming, make_cards, make_device_class, make_resource_claim, make_slice
from tests.support.objects.storage import (
    available,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
)
from tests.support.objects.workload_objects import apps
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.planned_objects import is_planned, with_planned_claims, with_planned_objects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name
from webhook.placement.replicas.replicas import Replicas, place_replicas
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]
_HOST = "kubernetes.io/hostname"
_NODES = [make_node_object(name, labels={"zone": zone}) for name, zone in (("a", "x"), ("b", "y"), ("c", "y"))]
_DISKS = make_storage_class("disks")
_LIMITS = [make_csi_node(name, disk=1) for name in "abc"]
_DRIVER = [
    make_csi_driver(),
    {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachmentList", "items": []},
    make_csi_node("a", other=1),
]


def _local(*nodes: str) -> list[Object]:
    """Return a class without a provisioner, and a volume on each of `nodes`."""
    volumes = [available(make_pv(f"disk-{index}", "local", on={_HOST: [node]})) for index, node in enumerate(nodes)]
    return [make_storage_class("local", provisioner="kubernetes.io/no-provisioner"), *volumes]


def _snapshot(objects: Iterable[Object]) -> Snapshot:
    return snapshot_from_documents([Document("cluster", each) for each in (*_NODES, *objects)])


def _stateful_set(replicas: int, storage_class: str | None, **spec: Any) -> PodSet:
    claim: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    if storage_class is not None:
        claim["storageClassName"] = storage_class
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    content = apps("StatefulSet", replicas=replicas, template=make_pod().template(), volumeClaimTemplates=templates)
    content["metadata"]["namespace"] = "default"
    (found,) = pod_sets(content, kinds_by_name())
    return found


def _placed(pods: PodSet, objects: Iterable[Object]) -> Replicas:
    asked = pods.replicas or 0
    claims = (claim for index in range(asked) for claim in pods.claims_at(index))
    each_pod = map(pods.pod_at, range(asked))
    return place_replicas(Scheduler(), with_planned_claims(_snapshot(objects), claims), each_pod, asked)


def test_each_replica_takes_a_local_volume() -> None:
    found = _placed(_stateful_set(4, "local"), _local("a", "b", "b"))

    assert (found.nodes, found.placed, found.is_complete) == ({"a": 1, "b": 2}, 3, True)
    assert found.stopped is not None
    assert (
        found.stopped.message == "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."
    )


def test_a_claim_that_is_there_is_used_as_it_is() -> None:
    bound = make_pvc("data-web-0", "local", "disk-0")
    volume = make_pv("disk-0", "local", on={_HOST: ["c"]}, claimRef={"namespace": "default", "name": "data-web-0"})

    found = _placed(_stateful_set(1, "local"), [*_local(), volume, bound])

    assert found.nodes == {"c": 1}


def test_a_provisioner_serves_every_replica_where_its_topology_allows() -> None:
    found = _placed(_stateful_set(4, "disks"), [make_storage_class("disks", topologies=[{"zone": ["y"]}]), *_DRIVER])

    assert found.placed == 4
    assert set(found.nodes) <= {"b", "c"}


def test_a_node_takes_as_many_volumes_as_its_driver_allows() -> None:
    found = _placed(_stateful_set(5, "disks"), [_DISKS, *_DRIVER[:2], *_LIMITS])

    assert found.nodes == {"a": 1, "b": 1, "c": 1}
    assert found.stopped is not None
    assert "node(s) exceed max volume count" in found.stopped.message


@pytest.mark.parametrize(
    ("classes", "placed"),
    [
        ([make_storage_class("disks", is_default=True)], 2),
        ([make_storage_class("disks")], 0),
        ([*_local("a"), make_storage_class("disks", is_default=True)], 2),
        (
            [
                make_storage_class("disks", is_default=True, created="2025-01-01T00:00:00Z"),
                make_storage_class(
                    "local", provisioner="kubernetes.io/no-provisioner", is_default=True, created="2026-01-01T00:00:00Z"
                ),
            ],
            0,
        ),
    ],
    ids=["the default class", "no default class", "one of two", "the newest default"],
)
def test_a_claim_without_a_class_has_the_default_one(classes: list[Object], placed: int) -> None:
    assert _placed(_stateful_set(2, None), [*classes, *_DRIVER]).placed == placed


def test_an_empty_class_is_not_the_default_one() -> None:
    assert _placed(_stateful_set(1, ""), [make_storage_class("disks", is_default=True)]).placed == 0


def test_a_cluster_whose_claims_are_not_known_gives_no_verdict() -> None:
    found = _placed(_stateful_set(2, "disks"), [])

    assert found.first.verdict == "Unknown"
    assert "VolumeBinding" in found.first.unmodelled


def test_replicas_that_share_a_volume_follow_the_first() -> None:
    shared = {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}
    pod = make_pod().spec(volumes=[shared]).obj()

    found = place_replicas(Scheduler(), _snapshot([*_local("b", "a"), make_pvc("shared", "local")]), [pod] * 3, 3)

    assert (found.placed, len(found.nodes)) == (3, 1)


def test_a_shared_volume_that_is_yet_to_be_provisioned_ends_the_count() -> None:
    shared = {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}
    pod = make_pod().spec(volumes=[shared]).obj()

    found = place_replicas(Scheduler(), _snapshot([_DISKS, *_DRIVER, make_pvc("shared", "disks")]), [pod] * 3, 3)

    assert (found.placed, found.is_complete, found.placement.verdict) == (1, False, "Unknown")
    assert found.text == "at least 1 of 3 replicas fits now"


def _facts(snapshot: Snapshot) -> Object:
    devices = snapshot.devices
    return {
        "claims": {key[1]: each.storage_class for key, each in (snapshot.storage.claims or {}).items()},
        "priorities": {name: (each.value, each.is_planned) for name, each in snapshot.priority_classes.items()},
        "ranges": {key: [each.name for each in found] for key, found in snapshot.limit_ranges.items()},
        "devices": {key[1]: len(each.requests) for key, each in (devices.claims or {}).items()},
        "templates": None
        if devices.templates is None
        else {key[1]: len(each.requests) for key, each in devices.templates.items()},
        "planned": [key[1] for key in devices.planned_templates],
    }


def _priority(value: int) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": value}


def _range(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"limits": []},
    }


def _device_claim(count: int, *, template: bool = False) -> Object:
    requests = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
        for number in range(count)
    ]
    return make_resource_claim("d", *requests, template=template)


_EMPTY = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplateList", "items": []}


@pytest.mark.parametrize(
    ("existing", "planned", "field", "wanted"),
    [
        pytest.param([make_pvc("c", "slow")], make_pvc("c", "fast"), "claims", {"c": "slow"}, id="a claim is kept"),
        pytest.param(
            [make_pvc("c", "slow")], make_pvc("d", "fast"), "claims", {"c": "slow", "d": "fast"}, id="a claim"
        ),
        pytest.param([], make_pvc("d", "fast"), "claims", {}, id="claims are not known"),
        pytest.param([_priority(1)], _priority(2), "priorities", {"p": (1, False)}, id="a class is kept"),
        pytest.param([], _priority(2), "priorities", {"p": (2, True)}, id="a planned class"),
        pytest.param([_range("a")], _range("a"), "ranges", {"default": ["a"]}, id="a range is kept"),
        pytest.param([_range("a")], _range("b"), "ranges", {"default": ["a", "b"]}, id="a range is added"),
        pytest.param([_device_claim(1)], _device_claim(2), "devices", {"d": 1}, id="a claim of devices is kept"),
        pytest.param([], _device_claim(2), "devices", {}, id="claims of devices are not known"),
        pytest.param([], _device_claim(2, template=True), "planned", ["d"], id="templates are not known"),
        pytest.param([_EMPTY], _device_claim(2, template=True), "templates", {"d": 2}, id="a template"),
        pytest.param(
            [_device_claim(1, template=True)], _device_claim(2, template=True), "templates", {"d": 1}, id="it is kept"
        ),
    ],
)
def test_planned_object_is_beside_those_that_exist(
    existing: list[Object], planned: Object, field: str, wanted: object
) -> None:
    before = _snapshot(existing)

    after = with_planned_objects(before, [Document("file", planned)])

    assert is_planned(planned)
    assert _facts(after) == _facts(before) | {field: wanted}


_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def _default(name: str, created: str = "2026-01-01T00:00:00Z") -> Object:
    return make_storage_class(name, is_default=True, created=created)


@pytest.mark.parametrize(
    ("written", "classes", "wanted"),
    [
        pytest.param({}, [make_storage_class("a")], "", id="no default class"),
        pytest.param({}, [_default("b"), _default("a"), _default("c")], "a", id="the first by name"),
        pytest.param({}, [_default("a", "2025-01-01T00:00:00Z"), _default("b")], "b", id="the newest"),
        pytest.param({"storageClassName": ""}, [_default("a")], "", id="it asks for none"),
        pytest.param({"storageClassName": "x"}, [_default("a")], "x", id="it asks for another"),
        pytest.param({_BETA_CLASS: "old"}, [_default("a")], "old", id="by the old annotation"),
        pytest.param({_BETA_CLASS: ""}, [_default("a")], "", id="for none by the old annotation"),
        pytest.param({_BETA_CLASS: "old", "storageClassName": "x"}, [_default("a")], "old", id="by both"),
    ],
)
def test_class_of_a_planned_claim_is_its_own_or_the_default_one(
    written: Object, classes: list[Object], wanted: str
) -> None:
    annotations = {key: value for key, value in written.items() if key == _BETA_CLASS}
    spec = {key: value for key, value in written.items() if key != _BETA_CLASS}
    claim = {"metadata": {"name": "new", "namespace": "default", "annotations": annotations}, "spec": spec}

    after = with_planned_claims(_snapshot([make_pvc("old", "x"), *classes]), [claim])

    assert _facts(after)["claims"] == {"old": "x", "new": wanted}


@pytest.mark.parametrize("namespace", ["", "default", "x"])
def test_planned_limit_range_is_beside_those_of_its_namespace(namespace: str) -> None:
    planned = _range("planned")
    planned["metadata"] = {"name": "planned", **({"namespace": namespace} if namespace else {})}

    found = with_planned_objects(_snapshot([_range("known")]), [Document("file", planned)]).limit_ranges

    names = {of: [each.name for each in ranges] for of, ranges in found.items()}
    of_default = ["known", "planned"] if namespace != "x" else ["known"]
    assert names == {"default": of_default, **({"x": ["planned"]} if namespace == "x" else {})}


@pytest.mark.parametrize("template", [False, True])
def test_pod_that_was_placed_before_is_placed_anew_with_the_planned_claim(*, template: bool) -> None:
    """What is remembered of the devices of a cluster does not hold with another claim."""
    requests = _device_claim(1)["spec"]["devices"]["requests"]
    others = [make_resource_claim("other", *requests, template=each) for each in (True, False)]
    before = _snapshot([make_device_class("gpu"), make_slice("a", *make_cards(1)), *others])
    pod = make_pod().namespace("default").spec(resourceClaims=claiming("d", template=template)).obj()

    without = Scheduler().place(pod, before)
    planned = with_planned_objects(before, [Document("file", _device_claim(1, template=template))])

    assert (without.verdict, Scheduler().place(pod, planned).verdict) == ("Waiting", "Feasible")
    assert planned.devices.answers is not before.devices.answers
