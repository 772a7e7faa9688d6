"""Synthetic clusters and pods: three pools, three GPU products, as many running pods a node as asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from webhook.documents.documents import Document

DOMAIN = "maip.mxsf.io"
USAGES = ("training", "inference", "hybrid")
BURST = 200
PRODUCTS = ("NVIDIA-H20", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")


def cluster_documents(nodes: int, pods_per_node: int) -> Iterator[Document]:
    """The Node and Pod objects of a cluster; each node has 8 GPUs, of which the running pods take up to 4."""
    for number in range(nodes):
        name = f"node-{number:05}"
        yield Document(name, _node(name, USAGES[number % 3], PRODUCTS[number // 3 % 3]))
        for running in range(pods_per_node):
            yield Document(name, _running_pod(name, running, gpus=1 if running < number % 5 else 0))


def write_cluster(file: Path, nodes: int, pods_per_node: int) -> None:
    """Write the same as a cluster file."""
    items = [document.content for document in cluster_documents(nodes, pods_per_node)]
    file.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _node(name: str, usage: str, product: str) -> dict[str, Any]:
    taints = [
        {"key": f"{DOMAIN}/node.usage", "value": usage, "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu.product", "value": product, "effect": "NoSchedule"},
    ]
    labels = {"kubernetes.io/hostname": name, f"{DOMAIN}/node.usage": usage, "nvidia.com/gpu.product": product}
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _running_pod(node: str, number: int, gpus: int) -> dict[str, Any]:
    requests = {"cpu": "2", "memory": "8Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"running-{node}-{number}", "namespace": "team-a", "labels": {"app": "running"}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": "Running"},
    }


def of_bursts(number: int, *, shape: int = 0) -> bytes:
    """The AdmissionReview of pod `number` of bursts that take room, each in a namespace of its own.

    One pool would not have room for all of them, so they are of several pools and products.
    """
    burst = number // BURST
    usage, product = USAGES[burst // len(PRODUCTS) % 2], PRODUCTS[burst % len(PRODUCTS)]
    return review(number, shape=shape, namespace=f"team-{burst}", usage=usage, product=product)


def review(
    number: int, *, shape: int, namespace: str = "team-a", usage: str = "training", product: str = "NVIDIA-H20"
) -> bytes:
    """The AdmissionReview of pod `number`; pods of one `shape` are alike to the scorer.

    As large as what an API server sends: an object with the usual volume, mounts, environment and managed fields.
    """
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "trainer-",
            "namespace": namespace,
            "creationTimestamp": None,
            "labels": {"app": "trainer", "batch.kubernetes.io/job-name": "trainer"},
            "annotations": {f"{DOMAIN}/workload-type": usage, f"{DOMAIN}/gpu-product": product},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "controller": True}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": _FIELDS}],
        },
        "spec": {
            "volumes": [
                {"name": f"kube-api-access-{number:05}", "projected": {"sources": [{"serviceAccountToken": {}}]}}
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "trainer:1",
                    "env": [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)],
                    "resources": {
                        "limits": {"cpu": f"{8000 + shape}m", "memory": "64Gi", "nvidia.com/gpu": "1"},
                        "requests": {"cpu": f"{8000 + shape}m", "memory": "64Gi", "nvidia.com/gpu": "1"},
                    },
                    "volumeMounts": [{"name": f"kube-api-access-{number:05}", "mountPath": "/var/run/secrets"}],
                }
            ],
            "restartPolicy": "Never",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for state in ("not-ready", "unreachable")
            ],
        },
        "status": {},
    }
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request = {
        "uid": f"uid-{number}",
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


_FIELDS: dict[str, Any] = {f"f:field{index}": {"f:inner": {}} for index in range(30)}
