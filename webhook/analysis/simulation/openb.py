"""The openb trace of Alibaba's production GPU cluster, as published with the FGD paper: its nodes and its pods.

The trace has no pools and no workload types: all nodes are in the training pool, and all pods are of the workload type
`training`. A fraction of a GPU is rounded up to one. Pods without a GPU are left out: the product taint of the nodes
keeps them off.

Source: github.com/hkust-adsl/kubernetes-scheduler-simulator, data/csv
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from webhook.analysis.simulation.arrival import Arrival
from webhook.analysis.simulation.csv_rows import CsvRow, csv_header, csv_rows
from webhook.documents.documents import JsonObject

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_OPTIONAL = ("gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
_GPU = "nvidia.com/gpu"
_PRODUCT = "nvidia.com/gpu.product"


def is_openb(data: bytes, place: str) -> bool:
    """Return whether a CSV file is a pod list of the trace, by its columns.

    Raises:
        InvalidInput: it is not UTF-8, or has no header.
    """
    return "cpu_milli" in csv_header(data, place)


def read_nodes(data: bytes, place: str, pool_label: str) -> Iterator[JsonObject]:
    """Yield the nodes of a node list, labelled and tainted with the training pool by `pool_label`, and their product.

    Raises:
        InvalidInput: it is no node list of the trace.
    """
    for row in csv_rows(data, place, NODE_COLUMNS):
        for column in ("cpu_milli", "memory_mib", "gpu"):
            row.count(column)
        row.text("sn")
        yield node_object(row.cells, pool_label, "training")


def node_object(row: Mapping[str, str], pool_label: str, pool: str) -> JsonObject:
    """Return the node of a row of a node list, labelled and tainted with its pool and its product."""
    labels = {"kubernetes.io/hostname": row["sn"], pool_label: pool}
    taints = [{"key": pool_label, "value": pool, "effect": "NoSchedule"}]
    amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110"}
    if int(row["gpu"]):
        labels[_PRODUCT] = row["model"]
        taints.append({"key": _PRODUCT, "value": row["model"], "effect": "NoSchedule"})
        amounts[_GPU] = row["gpu"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": row["sn"], "labels": labels},
        "spec": {"taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def read_openb_pods(data: bytes, place: str) -> list[Arrival]:
    """Return the GPU pods of a pod list. Without times in the list, an arrival has the time NaN and no duration.

    A pod runs from the time at which it was scheduled; one that never was runs from its creation.

    Raises:
        InvalidInput: it is no pod list of the trace.
    """
    pods: dict[Sequence[str], JsonObject] = {}
    return [_arrival(row, pods) for row in csv_rows(data, place, POD_COLUMNS, _OPTIONAL) if row.count("num_gpu")]


def _arrival(row: CsvRow, pods: dict[Sequence[str], JsonObject]) -> Arrival:
    cpu, memory, gpus = (row.count(column) for column in ("cpu_milli", "memory_mib", "num_gpu"))
    products = row.cells.get("gpu_spec", "")
    key = (str(cpu), str(memory), str(gpus), products)
    if key not in pods:
        amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", _GPU: str(gpus)}
        annotations = {"workload-type": "training"} | ({"gpu-product": products.replace("|", ",")} if products else {})
        container = {"name": "main", "image": "trace", "resources": {"requests": amounts, "limits": amounts}}
        pods[key] = {"metadata": {"name": "trace", "annotations": annotations}, "spec": {"containers": [container]}}
    at, duration = math.nan, None
    if "creation_time" in row.cells:
        at = row.seconds("creation_time")
        began = row.seconds("scheduled_time") if row.cells.get("scheduled_time") else at
        if row.cells.get("deletion_time"):
            duration = row.seconds("deletion_time") - began
            if duration < 0:
                raise row.error("deletion_time", "must not be before the time at which the pod was scheduled")
    return Arrival(at, duration, pods[key], gpus, row.place)
