"""The nodes and the arriving pods of a replay: a part of the openb trace.

Nodes are every n-th GPU node of the trace, all in the training pool. Pods are the GPU pods of a pod list in random
order, all of them training; a fraction of a GPU is rounded up to one. Pods without a GPU are left out: the product
taint of the nodes keeps them off. A pod that requests more GPUs than are left to request is left out, so that the
pods request exactly the GPUs of the nodes, or the share of them that a step asks for.
"""

import csv
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bench.bursts.burst_trace import trace_node, trace_pod
from bench.outcome.fragmentation import Shape
from placement_planner.simulation.arrival import filling
from tests.support.objects.builders import PodBuilder

Object = dict[str, Any]


class TracePod(NamedTuple):
    """A pod of the trace; `products` are the models of GPU that it accepts, empty if any."""

    name: str
    shape: Shape
    products: str
    builder: PodBuilder


class Sample(NamedTuple):
    """The part of the trace in `folder` to replay: every `every`-th node, beginning with number `first`."""

    folder: Path
    pod_list: str
    every: int
    first: int

    def node_rows(self) -> list[dict[str, str]]:
        """Return the rows of the chosen nodes."""
        with (self.folder / "openb_node_list_gpu_node.csv").open() as file:
            return list(csv.DictReader(file))[self.first :: self.every]

    def pod_rows(self) -> list[dict[str, str]]:
        """Return the rows of all pods with GPUs."""
        with (self.folder / f"openb_pod_list_{self.pod_list}.csv").open() as file:
            return [row for row in csv.DictReader(file) if int(row["num_gpu"])]


class Trace:
    """The nodes of a sample, and its pods."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        rows = sample.node_rows()
        self.nodes: list[Object] = [trace_node(row, "training") for row in rows]
        self.capacity = {
            row["sn"]: Shape(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"])) for row in rows
        }
        self.gpus = sum(each.gpus for each in self.capacity.values())
        self._pods = [
            TracePod(row["name"], _request(row), row.get("gpu_spec", ""), trace_pod(row, "training"))
            for row in sample.pod_rows()
        ]

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of each pod of the list, for the mix of pods that is to be expected."""
        return tuple(pod.shape for pod in self._pods)

    def arrivals(self, seed: int, steps: Sequence[float]) -> Iterator[list[TracePod]]:
        """Return, for each of the increasing `steps`, the pods that bring the requests to this share of the GPUs."""
        return filling(self._pods, lambda pod: pod.shape.gpus, seed, [round(step * self.gpus) for step in steps])


def _request(row: dict[str, str]) -> Shape:
    return Shape(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]))
