"""Convert lists of the openb trace of Alibaba's production GPU cluster, as published with the FGD paper.

    python -m bench.simulation.openb openb_node_list_gpu_node.csv > cluster.json
    python -m bench.simulation.openb openb_pod_list_multigpu50.csv > trace.csv

`simulate` reads both files. The trace has no pools and no workload types: all nodes are in the training pool, and all
pods are of the workload type `training`. With `--inference`, all nodes are in the hybrid pool, and the pods of the QoS
LS (latency sensitive) are of the type `inference`; in a list without QoS, every fourth pod is. A fraction of a GPU is
rounded up to one. Pods without a GPU are left out: the product taint of the nodes keeps them off. Pods of a list
without times arrive at 0: use `--arrivals fill` or `random`.

With `--racks N`, each N nodes of the list are a rack, the level of a Topology of Kueue. Of the pods with one GPU, every
tenth is a gang of 4 equal pods instead, and every fortieth a gang of 16, each within one rack: use a policy with
`queueing: kueue`.

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
_RACK = "topology.kubernetes.io/rack"
_TOPOLOGY = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "Topology",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"nodeLabel": _RACK}]},
}


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


def in_racks(nodes: list[Object], size: int) -> list[Object]:
    """Return the nodes in racks of `size`, in their order, and the Topology."""
    for number, node in enumerate(nodes):
        node["metadata"]["labels"][_RACK] = f"rack-{number // size}"
    return [*nodes, _TOPOLOGY]


def plain_trace(rows: Iterable[Row], *, with_inference: bool = False, with_gangs: bool = False) -> str:
    """Return the GPU pods of a pod list as the CSV that `simulate` reads, some for inference or gangs if asked.

    A pod runs from the time at which it was scheduled; one that never was runs from its creation.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("arrival", "duration", "replicas", "requests", "annotations"))
    pods = (row for row in rows if int(row["num_gpu"]))
    for number, row in enumerate(pods):
        is_inference = with_inference and (row["qos"] == "LS" if "qos" in row else number % 4 == 0)
        size = _gang_size(number) if with_gangs and int(row["num_gpu"]) == 1 else 1
        gang = f";gang=g{number};gang-size={size};queue=q;within=rack;within-mode=required" if size > 1 else ""
        writer.writerow(_pod_cells(row, "inference" if is_inference else "training", size, gang))
    return text.getvalue()


def _gang_size(number: int) -> int:
    if number % 10:
        return 1
    return 16 if number % 40 == 0 else 4


def _pod_cells(row: Row, workload_type: str, replicas: int, gang: str) -> Iterator[str]:
    arrival, end = row.get("creation_time") or "0", row.get("deletion_time")
    yield arrival
    yield str(float(end) - float(row.get("scheduled_time") or arrival)) if end else ""
    yield str(replicas)
    yield f"cpu={row['cpu_milli']}m;memory={row['memory_mib']}Mi;{_GPU}={row['num_gpu']}"
    products = row.get("gpu_spec", "").replace("|", ",")
    yield f"workload-type={workload_type}" + (f";gpu-product={products}" if products else "") + gang


@click.command()
@click.argument("file", type=click.File(encoding="utf-8-sig"))
@click.option("--inference", "with_inference", is_flag=True, help="With pods for inference, on hybrid nodes.")
@click.option("--racks", type=click.IntRange(min=1), metavar="N", help="With racks of N nodes, and gangs within them.")
def main(file: TextIO, *, with_inference: bool, racks: int | None) -> None:
    """Print a node list as a v1 List, or a pod list as a CSV of pods."""
    reader = csv.DictReader(file)
    columns = {*(reader.fieldnames or ())}
    try:
        if columns >= _NODE_COLUMNS:
            nodes = [node_object(row, "hybrid" if with_inference else "training") for row in reader]
            items = nodes if racks is None else in_racks(nodes, racks)
            click.echo(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        elif columns >= _POD_COLUMNS:
            click.echo(plain_trace(reader, with_inference=with_inference, with_gangs=racks is not None), nl=False)
        else:
            raise click.ClickException(f"{file.name}: neither a node list nor a pod list of the openb trace")
    except (ValueError, TypeError) as error:
        raise click.ClickException(f"{file.name}:{reader.line_num}: {error}") from error


if __name__ == "__main__":
    main()
