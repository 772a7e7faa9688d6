"""Replays on the real kube-scheduler: pods of a trace are created, bound, and deleted when they end."""

import heapq
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import yaml

from bench.bursts.burst import settled
from placement_planner.simulation.arrival import Arrival
from tests.controlplane.cluster import Cluster

Object = dict[str, Any]

_CONFIGURATION = Path(__file__).parents[2] / "deploy" / "scheduler" / "kube-scheduler-configuration.yaml"
_COLUMNS = '{.type} {.object.metadata.name} {.object.spec.nodeName} {.object.metadata.deletionTimestamp}{"\\n"}'
POLL_SECONDS = 0.02

# The names of the simulated profiles in that configuration.
SCHEDULERS = {"default": "default-scheduler", "binpack": "binpack-scheduler"}


def start_scheduler(cluster: Cluster) -> None:
    """Start a kube-scheduler with the configuration of `deploy/scheduler`, which scores all nodes."""
    cluster.control_plane.start_scheduler(yaml.safe_load(_CONFIGURATION.read_text()), verbosity=4)


def bound(cluster: Cluster, pods: Sequence[Object]) -> list[str | None]:
    """Create `pods` one after the other, and return the node of each, None without one."""
    for pod in pods:
        cluster.client.create(pod, namespace=cluster.namespace)
    found = settled(cluster, len(pods))
    return [found[pod["metadata"]["name"]] for pod in pods]


class Seen(NamedTuple):
    """A change of a pod, and when it was seen."""

    at: float
    kind: str
    name: str
    node: str
    is_terminating: bool


@dataclass(slots=True)
class Life:
    """When a pod was created, bound and deleted, in seconds; None: not yet."""

    created: float
    bound: float | None = None
    deleted: float | None = None


def lives(cluster: Cluster, pods: Sequence[Object], arrivals: Sequence[Arrival], seconds: float) -> list[Life]:
    """Return what becomes of `pods` within so many seconds.

    They are created at the times of `arrivals`, on the wall clock, and deleted once they have been bound for their
    durations, or as soon after that as the machine can.
    """
    numbers = {pod["metadata"]["name"]: number for number, pod in enumerate(pods)}
    found: list[Life] = []
    with watched(cluster) as seen:
        began = time.monotonic()
        actions = [(each.at_seconds, 0, number) for number, each in enumerate(arrivals)]
        heapq.heapify(actions)
        while (now := time.monotonic() - began) < seconds:
            for event in new_events(seen):
                number, life = numbers[event.name], found[numbers[event.name]]
                if event.kind == "DELETED":
                    life.deleted = event.at - began
                elif event.node and life.bound is None:
                    life.bound = event.at - began
                    duration = arrivals[number].duration_seconds
                    assert duration is not None
                    heapq.heappush(actions, (life.bound + duration, 1, number))
            while actions and actions[0][0] <= now:
                _, is_end, number = heapq.heappop(actions)
                if is_end:
                    cluster.client.delete("Pod", pods[number]["metadata"]["name"], namespace=cluster.namespace)
                else:
                    found.append(Life(time.monotonic() - began))
                    cluster.client.create(pods[number], namespace=cluster.namespace)
            time.sleep(POLL_SECONDS)
    return found


def new_events(seen: SimpleQueue[Seen]) -> Iterator[Seen]:
    """Yield what has been seen since the last call."""
    while True:
        try:
            yield seen.get_nowait()
        except Empty:
            return


@contextmanager
def watched(cluster: Cluster) -> Iterator[SimpleQueue[Seen]]:
    """Yield the changes of the pods of a namespace, as kubectl prints them."""
    environment = cluster.control_plane.kubectl_environment
    kubectl = Path(environment["PATH"].partition(":")[0]) / "kubectl"
    command = [str(kubectl), "get", "pods", "--namespace", cluster.namespace, "--watch-only", "--output-watch-events"]
    seen: SimpleQueue[Seen] = SimpleQueue()
    with subprocess.Popen(
        [*command, "-o", f"jsonpath={_COLUMNS}"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                kind, name, node, deletion = line.rstrip("\n").split(" ")
                seen.put(Seen(time.monotonic(), kind, name, node, bool(deletion)))

        reader = threading.Thread(target=read)
        reader.start()
        # kubectl watches from here on; a pod that is created earlier is not seen.
        time.sleep(1)
        try:
            yield seen
        finally:
            process.terminate()
            reader.join()
