"""`python -m bench.scorer.capacity`: the time to count the further pods of a cluster, until it is full."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from placement_planner.capacity.counting import Count, count_each, count_together
from placement_planner.capacity.simulation import FurtherPods
from tests.support.objects.clusters import cluster_documents
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]

_SELECTOR = {"labelSelector": {"matchLabels": {"app": "further"}}}
_SPREAD = [_SELECTOR | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "maip.mxsf.io/node.usage"}]


def _pod(requests: Mapping[str, str], **spec: Any) -> Object:
    container = {"name": "main", "image": "further:1", "resources": {"requests": dict(requests)}}
    fields = {"containers": [container], "tolerations": [{"operator": "Exists"}], **spec}
    return {"metadata": {"name": "further", "namespace": "team-a", "labels": {"app": "further"}}, "spec": fields}


_GPU = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
_HOST = "kubernetes.io/hostname"
_ON_EACH = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_SELECTOR | {"topologyKey": _HOST}]}}
PODS = {
    "1 GPU": [_pod(_GPU)],
    "1 CPU": [_pod({"cpu": "1"})],
    "1 GPU, one pod a node": [_pod(_GPU, affinity=_ON_EACH)],
    "1 GPU, spread over the pools": [_pod(_GPU, topologySpreadConstraints=_SPREAD)],
    "2 CPUs and 8 GPUs together": [_pod({"cpu": "2"}), _pod(_GPU | {"nvidia.com/gpu": "8"})],
}


@click.command()
@click.option("--nodes", default=5000, show_default=True, help="Nodes of the cluster.")
@click.option("--pods-per-node", default=10, show_default=True, help="Running pods a node.")
def main(nodes: int, pods_per_node: int) -> None:
    """Measure the time of each count, without reading the cluster."""
    snapshot = snapshot_from_documents(cluster_documents(nodes, pods_per_node))
    table = Table("pods", "fit", "seconds", "processor seconds", title=f"{nodes} nodes, {nodes * pods_per_node} pods")
    for name, pods in PODS.items():
        began, worked = time.perf_counter(), time.process_time()
        counts = _counts(snapshot, pods)
        fits = ", ".join(f"{count.fits}" for count in counts)
        table.add_row(name, fits, f"{time.perf_counter() - began:.2f}", f"{time.process_time() - worked:.2f}")
    Console().print(table)


def _counts(snapshot: Snapshot, pods: Sequence[Object]) -> Sequence[Count]:
    further = [FurtherPods(Scheduler(), lambda _, pod=pod: pod) for pod in pods]  # type: ignore[misc] # a bound default
    return count_together(further, snapshot) if len(further) > 1 else (count_each(further[0], snapshot),)


if __name__ == "__main__":
    main()
