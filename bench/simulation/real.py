"""Replays on the real kube-scheduler: pods of a trace are created, bound, and deleted when they end."""

import heapq
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import yaml

from bench.burst import settled
from tests.controlplane.cluster import Cluster
from webhook.analysis.simulation.arrival import Arrival

Object = dict[str, Any]

_CONFIGURATION = Path(__file__).parents[2] / "deploy" / "scheduler" / "kube-scheduler-configuration.yaml"
_COLUMNS = '{.type} {.object.metadata.name} {.object.spec.nodeName}{"\\n"}'
_POLL_SECONDS = 0.02

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


class _Seen(NamedTuple):
    """A change of a pod, and when it was seen."""

    at: float
    kind: str
    name: str
    node: str


def card_seconds(cluster: Cluster, pods: Sequence[Object], arrivals: Sequence[Arrival], seconds: float) -> float:
    """Return the sum over the pods of their cards times the seconds for which they were bound.

    The pods are created at the times of `arrivals`, on the wall clock, and deleted once they have been bound for their
    durations. Only the first `seconds` count.
    """
    numbers = {pod["metadata"]["name"]: number for number, pod in enumerate(pods)}
    with _watched(cluster) as seen:
        began = time.monotonic()
        actions = [(each.at_seconds, 0, number) for number, each in enumerate(arrivals)]
        heapq.heapify(actions)
        bound_at: dict[int, float] = {}
        total = 0.0
        while (now := time.monotonic() - began) < seconds:
            for event in _new(seen):
                number, at = numbers[event.name], event.at - began
                if event.kind == "DELETED" and number in bound_at:
                    total += arrivals[number].cards * (min(at, seconds) - bound_at.pop(number))
                elif event.node and event.kind != "DELETED" and number not in bound_at:
                    bound_at[number] = at
                    heapq.heappush(actions, (at + (arrivals[number].duration_seconds or seconds), 1, number))
            while actions and actions[0][0] <= now:
                _, is_end, number = heapq.heappop(actions)
                if is_end:
                    cluster.client.delete("Pod", pods[number]["metadata"]["name"], namespace=cluster.namespace)
                else:
                    cluster.client.create(pods[number], namespace=cluster.namespace)
            time.sleep(_POLL_SECONDS)
    return total + sum(arrivals[number].cards * (seconds - at) for number, at in bound_at.items())


def _new(seen: SimpleQueue[_Seen]) -> Iterator[_Seen]:
    while True:
        try:
            yield seen.get_nowait()
        except Empty:
            return


@contextmanager
def _watched(cluster: Cluster) -> Iterator[SimpleQueue[_Seen]]:
    """Yield the changes of the pods of a namespace, as kubectl prints them."""
    environment = cluster.control_plane.kubectl_environment
    kubectl = Path(environment["PATH"].partition(":")[0]) / "kubectl"
    command = [str(kubectl), "get", "pods", "--namespace", cluster.namespace, "--watch-only", "--output-watch-events"]
    seen: SimpleQueue[_Seen] = SimpleQueue()
    with subprocess.Popen(
        [*command, "-o", f"jsonpath={_COLUMNS}"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                kind, name, node = line.rstrip("\n").split(" ")
                seen.put(_Seen(time.monotonic(), kind, name, node))

        reader = threading.Thread(target=read)
        reader.start()
        # kubectl watches from here on; a pod that is created earlier is not seen.
        time.sleep(1)
        try:
            yield seen
        finally:
            process.terminate()
            reader.join()
