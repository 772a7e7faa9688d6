"""Gangs, and clusters for them."""

from typing import Any

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.result import Placement
from webhook.placement.gang.gang import gang_placement
from webhook.placement.gang.gang_count import Gang
from webhook.placement.scheduler import Scheduler, never
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, predict_placement

Object = dict[str, Any]
GANG = "maip.mxsf.io/gang"
HOST = "kubernetes.io/hostname"
WORKER = make_pod("worker").annotate(GANG, "train").label("app", "web").gpu(1)


def on(*nodes: NodeInfo) -> AssumedPods[Any]:
    """Return a cluster without pods that wait."""
    return AssumedPods(Snapshot.of(nodes), {})


def gpus(name: str, count: int, *running: PodBuilder, **labels: str) -> NodeInfo:
    return node(name, *running, labels={HOST: name, **labels}, capacity={"nvidia.com/gpu": str(count)})


def gpu_node(name: str, count: int) -> Object:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": str(count)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def asked(pod: PodBuilder | Object, size: int, assumed: AssumedPods[Any], **fields: Any) -> Placement:
    """Return the placement of a gang of `size` pods like `pod`."""
    waiting = WaitingPod.of(pod if isinstance(pod, dict) else pod.obj())
    key = GangKey(waiting.running.namespace, GANG, "train")
    gang = Gang(key, size, fields.pop("least", 1), within=fields.pop("within", None))
    own = predict_placement(Scheduler(), waiting.signature, assumed, None, never)
    return gang_placement(Scheduler(), gang, waiting, own, assumed, **fields)


def counted(placement: Placement) -> tuple[str, int, int]:
    """Return the verdict, and how many pods of the gang fit and have a place."""
    assert placement.gang is not None
    return placement.verdict, placement.gang.fit, placement.gang.placed


def spread(key: str) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}


def running(count: int) -> list[PodBuilder]:
    return [WORKER] * count


def affinity(kind: str, key: str) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def snapshot_of(nodes: list[Object], others: list[Object]) -> Snapshot:
    return snapshot_from_documents(Document("cluster", each) for each in (*nodes, *others))


IN_A_RACK = WORKER.affinity(affinity("podAffinity", "rack"))
TWO_RACKS = on(
    gpus("a", 4, rack="1"), gpus("b", 4, make_pod("other").gpu(3), rack="1"), gpus("c", 4, rack="2"), gpus("d", 9)
)
