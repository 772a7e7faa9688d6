"""A cluster with claims and volumes in two zones."""

from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import (
    make_attachment,
    make_csi_driver,
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
ZONE = "topology.kubernetes.io/zone"
NODES = [make_node_object(name, labels={ZONE: f"z{name}"}) for name in ("a", "b", "c")]
LIMITS = [make_csi_node(name) for name in ("a", "b", "c")]
# With one object of each kind, all kinds are known.
KNOWN = [
    make_pvc("other", volume="other"),
    make_pv("other"),
    make_storage_class("other"),
    make_csi_driver(),
    make_attachment("elsewhere", "other"),
    *LIMITS,
]


def place(pod: PodBuilder, *objects: Object) -> Placement:
    documents = [Document("cluster", each) for each in (*NODES, *objects)]
    return Scheduler().place(pod.obj(), snapshot_from_documents(documents))


def pod_with(*claims: str) -> PodBuilder:
    return make_pod().spec(volumes=uses(*claims))


def running_pod(name: str, volumes: list[Object], node: str = "a") -> Object:
    return make_pod(name).namespace("default").node_name(node).spec(volumes=volumes).obj()


def all_kinds(reason: str) -> str:
    return f"0/3 nodes are available: {reason}."
