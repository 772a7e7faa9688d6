"""Nodes and jobs of the tests on schedulers: pods that are annotated with our keys alone."""

from tests.controlplane.client import Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod


def gpu_node(name: str, gpus: int) -> Object:
    """Return a node of the training pool."""
    return make_node_object(
        name,
        labels={USAGE: "training", "kubernetes.io/hostname": name},
        taints=[f"{USAGE}=training:NoSchedule"],
        capacity={"cpu": "64", "memory": "512Gi", "pods": 110, "nvidia.com/gpu": gpus},
    )


def worker(name: str, **keys: object) -> PodBuilder:
    """Return a training pod of one card with our annotations, such as `gang_size=4`."""
    pod = make_pod(name).annotate(TYPE, "training").requests(cpu="1", memory="1Gi").limits(cpu="1", memory="1Gi").gpu(1)
    for key, value in keys.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", str(value))
    return pod


def create_interleaved(cluster: Cluster, size: int, *jobs: str) -> dict[str, Objects]:
    """Return the pods of each job, created in turns as by controllers that work at the same time."""
    made: dict[str, Objects] = {job: [] for job in jobs}
    for number in range(size):
        for job in jobs:
            made[job].append(cluster.create(worker(f"{job}-{number}", gang=job, gang_size=size)).object)
    return made


def wait_one_job_whole(cluster: Cluster, jobs: dict[str, Objects]) -> tuple[str, str]:
    """Return the job that runs and the one that waits, once one of two has all its pods bound."""

    def whole() -> str | None:
        return next((job for job, pods in jobs.items() if bound(cluster, pods) == len(pods)), None)

    running = wait_for(whole, lambda: f"a whole job among { {job: bound(cluster, jobs[job]) for job in jobs} }")
    (waiting,) = jobs.keys() - {running}
    return running, waiting


def bound(cluster: Cluster, pods: Objects) -> int:
    """Return how many of the pods are bound now."""
    nodes = (_current(cluster, pod)["spec"].get("nodeName") for pod in pods)
    return sum(node is not None for node in nodes)


def wait_bound_all(cluster: Cluster, pods: Objects) -> list[str]:
    """Return the nodes of the pods, once all are bound."""
    return [cluster.wait_bound(pod) for pod in pods]


def wait_refused(cluster: Cluster, pods: Objects) -> list[str]:
    """Return the message of each pod, once its condition PodScheduled is False."""
    return [_wait_refused(cluster, pod) for pod in pods]


def _wait_refused(cluster: Cluster, pod: Object) -> str:
    return wait_for(lambda: refusal(_current(cluster, pod)), f"no node for {_name(pod)}")


def refusal(pod: Object) -> str | None:
    """Return the message of the condition PodScheduled, if it is False."""
    conditions = pod["status"].get("conditions", [])
    found = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
    return found[0]["message"] if found else None


def _current(cluster: Cluster, pod: Object) -> Object:
    return cluster.client.get("Pod", _name(pod), pod["metadata"]["namespace"])


def _name(pod: Object) -> str:
    name: str = pod["metadata"]["name"]
    return name
