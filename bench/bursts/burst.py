"""`make bench-burst`: verdicts on pods that are created faster than kube-scheduler binds them.

The control plane is that of the tests: etcd, kube-apiserver, kube-scheduler with its default plugins, and the
controller of Jobs. The webhook runs in a process of its own, or in two behind one address. A burst is a Job of 60 pods
of which 16 fit, or pods of the openb trace, created by several clients as fast as the API server answers.

Nothing leaves the cluster, so a pod that is not bound in the end did not fit. A verdict comes true if the pod is
Feasible and was bound, or Waiting or Infeasible and was not.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from bench.bursts.burst_outcome import Outcome, Prediction, decisions_by_pod, predictions_by_decision
from bench.bursts.burst_trace import MAX_NODES, gpus_of, trace_nodes, trace_option, trace_pods
from bench.running.real_cluster import control_plane_and_folder
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.clusters import DOMAIN
from tests.support.on_cluster.webhooks import serving

Object = dict[str, Any]

JOB_PODS, JOB_GPUS = 60, 16

_SETTLED_SECONDS = 2.0
_POLL_SECONDS = 0.2
_BIND_SECONDS = 120.0


class Burst(NamedTuple):
    """A burst to measure: nodes, the number of pods, and the function that creates them and returns the seconds."""

    name: str
    nodes: Sequence[Object]
    pods: int
    create: Callable[[Cluster], float]


def job_burst(node_count: int) -> Burst:
    """Return a Job with 60 pods of a GPU each, of which 16 fit on so many nodes."""
    nodes = [
        make_node_object(
            f"train-{number}",
            labels={f"{DOMAIN}/node.usage": "training", "nvidia.com/gpu.product": "NVIDIA-H20"},
            taints=[f"{DOMAIN}/node.usage=training:NoSchedule", "nvidia.com/gpu.product=NVIDIA-H20:NoSchedule"],
            capacity={"cpu": "64", "memory": "512Gi", "pods": 110, "nvidia.com/gpu": JOB_GPUS // node_count},
        )
        for number in range(node_count)
    ]
    pod = make_pod("").annotate(f"{DOMAIN}/workload-type", "training").requests(cpu="1", memory="1Gi").gpu(1)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "trainer"},
        "spec": {
            "parallelism": JOB_PODS,
            "completions": JOB_PODS,
            "template": pod.spec(restartPolicy="Never").template(),
        },
    }

    def create(cluster: Cluster) -> float:
        cluster.control_plane.start_controller_manager()
        began = time.monotonic()
        cluster.client.create(job, namespace=cluster.namespace)
        cluster.wait_pods(JOB_PODS)
        return time.monotonic() - began

    return Burst(f"Job of {JOB_PODS}, {JOB_GPUS} fit on {node_count} nodes", nodes, JOB_PODS, create)


def trace_burst(folder: Path, pod_list: str, nodes: int, asked: float, clients: int, seed: int) -> Burst:
    """Return pods of the trace that request `asked` times the GPUs of `nodes` nodes."""
    made = trace_nodes(folder, nodes, seed)
    pods = list(trace_pods(folder / pod_list, asked * sum(map(gpus_of, made)), seed))

    def create(cluster: Cluster) -> float:
        began = time.monotonic()
        with ThreadPoolExecutor(clients, thread_name_prefix="client") as creating:
            for _ in creating.map(lambda pod: cluster.client.create(pod, namespace=cluster.namespace), pods):
                pass
        return time.monotonic() - began

    return Burst(f"trace, seed {seed}", made, len(pods), create)


def measured(cluster: Cluster, folder: Path, burst: Burst, replicas: int = 1) -> Outcome:
    """Create the pods of a burst behind so many replicas, and return what became of them."""
    cluster.make_nodes(*burst.nodes)
    with serving(cluster.control_plane, folder, replicas) as webhooks:
        webhooks.register(cluster, len(burst.nodes))
        seconds = burst.create(cluster)
        nodes = settled(cluster, burst.pods)
    predictions: dict[str, Prediction] = {}
    for each in webhooks.folders:
        predictions |= predictions_by_decision(each)
    decisions = decisions_by_pod(cluster.control_plane.audit_log, cluster.namespace)
    outcome = Outcome(burst.pods, seconds)
    templates = {each["metadata"]["name"]: _template(each) for each in cluster.pods()}
    for name, node in nodes.items():
        outcome.add(name, templates[name], predictions.get(decisions.get(name, "")), node)
    return outcome


def settled(cluster: Cluster, pods: int) -> dict[str, str | None]:
    """Return the node of each pod, or None, once the scheduler has decided on all and changes nothing for a while."""
    last: dict[str, str | None] = {}
    since = began = time.monotonic()
    while time.monotonic() - since < _SETTLED_SECONDS:
        if time.monotonic() - began > _BIND_SECONDS:
            raise click.ClickException(f"the scheduler has not decided on all pods within {_BIND_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)
        found = cluster.pods()
        nodes = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in found if _is_decided(each)}
        if nodes != last or len(nodes) < pods:
            last, since = nodes, time.monotonic()
    return last


def _template(pod: Object) -> str:
    """Return what the scheduler reads of `pod`, which is equal for pods of one template."""
    spec = pod["spec"]
    return repr([[each.get("resources") for each in spec["containers"]], spec.get("affinity"), spec.get("tolerations")])


def _is_decided(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "PodScheduled" for each in conditions)


@click.command()
@trace_option
@click.option("--pod-list", default="openb_pod_list_default.csv", show_default=True, help="The pods in that folder.")
@click.option("--nodes", type=click.IntRange(1, MAX_NODES), default=80, show_default=True, help="Nodes of the trace.")
@click.option("--asked", default=1.15, show_default=True, help="GPUs requested, as a multiple of those of the nodes.")
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--seeds", default=3, show_default=True, help="Bursts of the trace.")
@click.option("--job-nodes", multiple=True, type=click.Choice([1, 2, 4, 8, 16]), default=[2, 4], show_default=True)
@click.option("--replicas", multiple=True, type=click.IntRange(1, 8), default=[1, 2], show_default=True)
@click.option("--show", is_flag=True, help="Print each pod that was not predicted right.")
def main(
    trace: Path,
    pod_list: str,
    nodes: int,
    asked: float,
    clients: int,
    seeds: int,
    job_nodes: tuple[int, ...],
    replicas: tuple[int, ...],
    show: bool,
) -> None:
    """Create bursts of pods on a real control plane and compare the verdicts with the nodes that the pods get."""
    jobs = [job_burst(count) for count in job_nodes]
    bursts = [*jobs, *(trace_burst(trace, pod_list, nodes, asked, clients, seed) for seed in range(1, seeds + 1))]
    table = Table(
        "burst", "replicas", "verdicts", "came true", "bound in best set", "its nodes", "on the node", "pods/s"
    )
    with control_plane_and_folder() as (control_plane, folder):
        for count in replicas:
            for burst in bursts:
                outcome = _measured_alone(control_plane, folder / f"{count} {burst.name}", burst, count)
                table.add_row(burst.name, str(count), *_cells(outcome))
                for line in outcome.failures if show else ():
                    click.echo(f"{burst.name}: {line}", err=True)
    Console(width=max(Console().width, 120)).print(table)


def _measured_alone(control_plane: ControlPlane, folder: Path, burst: Burst, replicas: int) -> Outcome:
    folder.mkdir()
    cluster = Cluster(control_plane)
    try:
        return measured(cluster, folder, burst, replicas)
    finally:
        cluster.remove_everything()


def _cells(outcome: Outcome) -> list[str]:
    verdicts = ", ".join(
        f"{outcome.true[verdict]} of {count} {verdict}" for verdict, count in outcome.by_verdict.most_common()
    )
    as_equals = f" ({100 * outcome.best_share_of_equals:.1f} % as equals)"
    return [
        verdicts,
        f"{100 * outcome.true_share:.1f} % ({100 * outcome.true_share_of_equals:.1f} % as equals)",
        f"{100 * outcome.best_share:.1f} % of {outcome.bound}{as_equals}",
        f"{outcome.best_nodes / max(outcome.bound, 1):.1f}",
        str(outcome.on_node),
        f"{outcome.created / outcome.seconds:.0f}",
    ]


if __name__ == "__main__":
    main()
