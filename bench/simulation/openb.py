"""Convert lists of the openb trace of Alibaba's production GPU cluster, as published with the FGD paper.

    python -m bench.simulation.openb openb_node_list_gpu_node.csv > cluster.json
    python -m bench.simulation.openb openb_pod_list_multigpu50.csv > trace.csv

`simulate` reads both files. The trace has no pools and no workload types: all nodes are in the training pool, and all
pods are of the workload type `training`. With `--inference`, all nodes are in the hybrid pool, and the pods of the QoS
LS (latency sensitive) are of the type `inference`; in a list without QoS, every fourth pod is. A fraction of a GPU is
rounded up to one. Pods without a GPU are left out: the product taint of the nodes keeps them off. Pods of a list
without times arrive at 0: use `--arrivals fill` or `random`.

Source: github.com/hkust-adsl/kubernetes-scheduler-simulator, data/csv
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

import click
import orjson

from tests.support.objects.clusters import DOMAIN

Object = dict[str, Any]
Row = Mapping[str, str]

USAGE = f"{DOMAIN}/node.usage"
_GPU = "nvidia.com/gpu"
_PRODUCT = "nvidia.com/gpu.product"
_NODE_COLUMNS = {"sn", "cpu_milli", "memory_mib", "gpu", "model"}
_POD_COLUMNS = {"cpu_milli", "memory_mib", "num_gpu"}


def node_object(row: Row, pool: str) -> Object:
    """Return the node of a row of a node list, labelled and tainted with its pool and its product."""
    labels = {"kubernetes.io/hostname": row["sn"], USAGE: pool}
    taints = [{"key": USAGE, "value": pool, "effect": "NoSchedule"}]
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


def plain_trace(rows: Iterable[Row], *, with_inference: bool = False) -> str:
    """Return the GPU pods of a pod list as the CSV that `simulate` reads, some of them for inference if asked.

    A pod runs from the time at which it was scheduled; one that never was runs from its creation.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("arrival", "duration", "requests", "annotations"))
    pods = (row for row in rows if int(row["num_gpu"]))
    for number, row in enumerate(pods):
        is_inference = with_inference and (row["qos"] == "LS" if "qos" in row else number % 4 == 0)
        writer.writerow(_pod_cells(row, "inference" if is_inference else "training"))
    return text.getvalue()


def _pod_cells(row: Row, workload_type: str) -> Iterator[str]:
    arrival, end = row.get("creation_time") or "0", row.get("deletion_time")
    yield arrival
    yield str(float(end) - float(row.get("scheduled_time") or arrival)) if end else ""
    yield f"cpu={row['cpu_milli']}m;memory={row['memory_mib']}Mi;{_GPU}={row['num_gpu']}"
    products = row.get("gpu_spec", "").replace("|", ",")
    yield f"workload-type={workload_type}" + (f";gpu-product={products}" if products else "")


@click.command()
@click.argument("file", type=click.File(encoding="utf-8-sig"))
@click.option("--inference", "with_inference", is_flag=True, help="With pods for inference, on hybrid nodes.")
def main(file: TextIO, *, with_inference: bool) -> None:
    """Print a node list as a v1 List, or a pod list as a CSV of pods."""
    reader = csv.DictReader(file)
    columns = {*(reader.fieldnames or ())}
    try:
        if columns >= _NODE_COLUMNS:
            nodes = [node_object(row, "hybrid" if with_inference else "training") for row in reader]
            click.echo(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
        elif columns >= _POD_COLUMNS:
            click.echo(plain_trace(reader, with_inference=with_inference), nl=False)
        else:
            raise click.ClickException(f"{file.name}: neither a node list nor a pod list of the openb trace")
    except (ValueError, TypeError) as error:
        raise click.ClickException(f"{file.name}:{reader.line_num}: {error}") from error


if __name__ == "__main__":
    main()
