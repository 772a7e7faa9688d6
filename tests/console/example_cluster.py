"""A cluster with everything that the console draws, in any size: pools, shared and MIG cards, pods that wait."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

DOMAIN = "maip.mxsf.io"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: team-vision}
spec:
  replicas: 3
  selector: {matchLabels: {app: chat}}
  template:
    metadata:
      labels: {app: chat}
      annotations: {maip.mxsf.io/workload-type: inference, maip.mxsf.io/gpu-product: NVIDIA-H20}
    spec:
      containers:
      - {name: main, image: chat, resources: {limits: {cpu: "1", memory: 1Gi, nvidia.com/gpu: "1"}}}
"""
_POOLS = (
    ("training", "NVIDIA-H20", 8),
    ("training", "NVIDIA-A100-SXM4-80GB", 8),
    ("inference", "NVIDIA-L40S", 4),
    ("hybrid", "NVIDIA-H20", 8),
)
_WORK = (
    ("team-llm", "Job", "pretrain-70b", "training", 8),
    ("team-llm", "Job", "finetune-chat", "training", 4),
    ("team-vision", "Job", "detector", "training", 2),
    ("team-speech", "StatefulSet", "asr", "inference", 1),
    ("team-search", "ReplicaSet", "ranker-5d9c7b", "inference", 1),
    ("team-research", "", "notebook", "", 1),
)

_EMPTY = (
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Service"),
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
)


def gpu_node(
    name: str, pool: str, product: str, cards: dict[str, int], *taints: str, cordoned: bool = False
) -> dict[str, Any]:
    """Return a node with the taints of its pool, and `taints` as keys."""
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", **{key: str(value) for key, value in cards.items()}}
    own = [{"key": each, "effect": "NoSchedule"} for each in taints]
    pools = [{"key": f"{DOMAIN}/node.usage", "value": pool, "effect": "NoSchedule"}] if pool else []
    labels = {"kubernetes.io/hostname": name, **({f"{DOMAIN}/node.usage": pool} if pool else {})}
    if cards:
        labels |= {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "97871", "nvidia.com/gpu.count": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": pools + own, **({"unschedulable": True} if cordoned else {})},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(namespace: str, name: str, cards: int, on: str = "", **more: Any) -> dict[str, Any]:
    """Return a pod with `cards`; `more` has owner (kind, name), type, resource, status, spec, created."""
    kind, owner = more.get("owner", ("", ""))
    metadata: dict[str, Any] = {
        "namespace": namespace,
        "name": name,
        **({"uid": f"{namespace}-{name}"} if more.get("uid", True) else {}),
        "creationTimestamp": more.get("created", "2026-11-20T08:00:00Z"),
        "annotations": {f"{DOMAIN}/workload-type": more["type"]} if more.get("type") else {},
    }
    if kind:
        if kind == "ReplicaSet":
            metadata["labels"] = {"pod-template-hash": owner.rpartition("-")[2]}
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1" if kind == "Job" else "apps/v1", "kind": kind, "name": owner, "controller": True}
        ]
    amounts = {
        "cpu": str(4 * cards + 2),
        "memory": f"{32 * cards + 8}Gi",
        more.get("resource", "nvidia.com/gpu"): str(cards),
    }
    tolerations = [{"key": f"{DOMAIN}/node.usage", "operator": "Exists"}] if more.get("tolerates", True) else []
    spec = {
        "containers": [{"name": "main", "image": "app", "resources": {"requests": amounts, "limits": amounts}}],
        "tolerations": tolerations,
    }
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]} if on else {"phase": "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, **more.get("spec", {}), **({"nodeName": on} if on else {})},
        "status": more.get("status", status),
    }


def urgent() -> dict[str, Any]:
    """Return a new pod of a high priority that needs all cards of a node."""
    return pod("team-vision", "urgent", 8, type="inference", spec={"priority": 2000})


def cluster_objects(nodes: int = 36, seed: int = 7, cards_each: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the objects of a cluster with `nodes` nodes with cards, and a few more.

    The nodes have `cards_each`, or if that is 0 those of their pool.
    """
    random = Random(seed)
    for name in ("team-llm", "team-vision", "team-speech", "team-search", "team-research"):
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        }
    yield gpu_node("control-plane-1", "", "", {}, f"{DOMAIN}/control-plane")
    for index in range(nodes):
        pool, product, cards = _POOLS[index % len(_POOLS)]
        cards = cards_each or cards
        name = f"{pool}-{product.split('-')[1].lower()}-{index // len(_POOLS) + 1:0{len(str(nodes))}}"
        states = {5: ("node.kubernetes.io/not-ready",), 17: ()}
        yield gpu_node(
            name, pool, product, {"nvidia.com/gpu": cards}, *states.get(index % 97, ()), cordoned=index % 97 == 17
        )
        yield from _load(name, pool, cards, random, index)
    yield gpu_node(
        "mig-h100-1",
        "inference",
        "NVIDIA-H100",
        {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 7, "nvidia.com/mig-3g.40gb": 2},
    )
    yield gpu_node("shared-t4-1", "inference", "NVIDIA-T4", {"nvidia.com/gpu.shared": 8})
    for index in range(4):
        yield pod(
            "team-search",
            f"embed-{index}",
            1,
            "mig-h100-1",
            owner=("StatefulSet", "embed"),
            type="inference",
            resource="nvidia.com/mig-1g.10gb",
        )
        yield pod(
            "team-research",
            f"lab-{index}",
            1,
            "shared-t4-1",
            owner=("StatefulSet", "lab"),
            resource="nvidia.com/gpu.shared",
        )


def _load(name: str, pool: str, cards: int, random: Random, index: int) -> Iterator[dict[str, Any]]:
    free = cards
    # The hybrid pool is fragmented: small pods on every node.
    mine = [each for each in _WORK if (each[4] == 1 and each[1] if pool == "hybrid" else each[3] in (pool, ""))]
    idle = 0.4 if pool == "hybrid" else 0.15
    for number in range(cards):
        namespace, kind, owner, workload_type, size = random.choice(mine)
        if size > free or random.random() < idle:
            continue
        free -= size
        yield pod(
            namespace,
            f"{owner}-{index}-{number}",
            size,
            name,
            owner=(kind, owner) if kind else ("", ""),
            type=workload_type,
        )


def pending_objects() -> Iterator[dict[str, Any]]:
    """Yield pods that wait, for each reason, and the budgets of the cluster: there are none."""
    why = "0/39 nodes are available: 1 node(s) were unschedulable, 38 Insufficient nvidia.com/gpu."
    message = f"{why} preemption: 0/39 nodes are available: 39 Preemption is not helpful for scheduling."
    unschedulable = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}],
    }
    for index in range(3):
        yield pod(
            "team-llm",
            f"pretrain-70b-x{index}",
            8,
            owner=("Job", "pretrain-70b"),
            type="training",
            status=unschedulable,
            created=f"2026-11-23T09:0{index}:00Z",
            spec={"priority": 1000},
        )
    yield pod(
        "team-vision",
        "segmenter-0",
        6,
        owner=("Job", "segmenter"),
        type="training",
        status=unschedulable,
        created="2026-11-23T10:12:00Z",
    )
    yield pod(
        "team-search",
        "ranker-new-0",
        1,
        owner=("StatefulSet", "ranker-new"),
        type="inference",
        created="2026-11-23T10:30:00Z",
    )
    gated = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    yield pod(
        "team-research",
        "sweep-0",
        2,
        owner=("Job", "sweep"),
        type="training",
        spec=gated,
        created="2026-11-23T10:40:00Z",
    )
    yield pod(
        "team-speech",
        "asr-t4-0",
        1,
        type="inference",
        tolerates=False,
        status=unschedulable,
        created="2026-11-23T10:45:00Z",
        spec={"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-T4"}},
    )
    # An empty list says that there are none: so moves can be proven.
    for version, kind in _EMPTY:
        yield {"apiVersion": version, "kind": f"{kind}List", "items": []}


def write_cluster(path: Path, nodes: int = 36, *, with_pending: bool = True) -> Path:
    """Write the cluster as `kubectl get -o json` prints it, and return `path`."""
    items = [*cluster_objects(nodes), *(pending_objects() if with_pending else ())]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path
