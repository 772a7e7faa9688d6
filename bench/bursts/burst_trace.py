"""A part of the openb trace as Kubernetes objects: nodes in pools, and the pods that request GPUs, in random order.

The trace has no pools and no workload types, so both are assigned by the seed: two of four nodes are in the training
pool, one in the inference pool, one is hybrid; a fourth of the pods are inference. A fraction of a GPU is rounded up to
one. Pods without a GPU are left out: the product taint of the nodes keeps them off.
"""

import csv
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from bench.simulation.openb import node_object
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.clusters import DOMAIN

Object = dict[str, Any]

# Three of four nodes take a training pod. If more than 100 do, kube-scheduler scores a part of them, so no best set is
# known.
MAX_NODES = 133

_GPU = "nvidia.com/gpu"
_POOLS = ("training", "training", "hybrid", "inference")

trace_option = click.option(
    "--trace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="../shared/data/openb",
    show_default=True,
    envvar="OPENB_TRACE",
    help="Folder with the CSV files of the openb trace.",
)


def trace_nodes(folder: Path, count: int, seed: int) -> list[Object]:
    """Return `count` nodes of the trace, chosen by the seed, labelled and tainted by pool and product."""
    with (folder / "openb_node_list_gpu_node.csv").open() as file:
        rows = list(csv.DictReader(file))
    chosen = random.Random(seed).sample(rows, count)
    return [trace_node(row, _POOLS[number % len(_POOLS)]) for number, row in enumerate(chosen)]


def gpus_of(node: Object) -> int:
    """Return the number of GPUs of a node."""
    return int(node["status"]["allocatable"][_GPU])


def trace_pods(path: Path, gpus: float, seed: int) -> Iterator[Object]:
    """Yield pods of the trace in random order until they have requested so many GPUs."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if int(row["num_gpu"])]
    dice = random.Random(seed)
    dice.shuffle(rows)
    for row in rows:
        if gpus <= 0:
            return
        gpus -= int(row["num_gpu"])
        yield trace_pod(row, "inference" if dice.random() < 0.25 else "training").obj()


def trace_node(row: Mapping[str, str], usage: str) -> Object:
    """Return the node of a row of the node list, labelled and tainted with its pool and its product."""
    return node_object(row, usage)


def trace_pod(row: Mapping[str, str], workload_type: str) -> PodBuilder:
    """Return the pod of a row of a pod list, annotated with its workload type and its products."""
    pod = (
        make_pod(row["name"])
        .annotate(f"{DOMAIN}/workload-type", workload_type)
        .requests(cpu=f"{row['cpu_milli']}m", memory=f"{row['memory_mib']}Mi")
        .gpu(int(row["num_gpu"]))
    )
    if products := row.get("gpu_spec"):
        pod = pod.annotate(f"{DOMAIN}/gpu-product", products.replace("|", ","))
    return pod
