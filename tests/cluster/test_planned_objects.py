"""The claims of replicas: created with their pods, and bound as they are placed."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
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
from webhook.cluster.planned_objects import with_planned_claims
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
    return place_replicas(Scheduler(), with_planned_claims(_snapshot(objects), claims), pods.pods(), asked)


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
