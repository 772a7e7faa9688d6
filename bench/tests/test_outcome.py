"""Pods of a small trace fill a cluster, simulated and on the real kube-scheduler, as in `make bench-outcome`.

Eight pods of one GPU and one of eight, for two nodes of eight. Only a scheduler that packs has a node for the large
one.
"""

from pathlib import Path

import numpy as np
import pytest

from bench.outcome.arrivals import Sample, Trace
from bench.outcome.configurations import CONFIGURATIONS
from bench.outcome.figures import Figures, unplaceable
from bench.outcome.fragmentation import Shape, mix_of
from bench.outcome.replay import replayed
from bench.outcome.simulation import simulated
from tests.controlplane.cluster import Cluster

_NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,96000,393216,8,G2\nnode-1,96000,393216,8,G2\n"
_POD = "pod-{number},{cpu},32768,{gpus},1000\n"
_ALL = (1.0,)
_BY_NAME = {each.name: each for each in CONFIGURATIONS}

# The large pod arrives after at least two small ones.
_SEED = 1


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(_NODES)
    pods = [_POD.format(number=number, cpu=8000, gpus=1) for number in range(8)]
    pods += [_POD.format(number=8, cpu=64000, gpus=8), _POD.format(number=9, cpu=1000, gpus=0)]
    (tmp_path / "openb_pod_list_small.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(pods))
    return Trace(Sample(tmp_path, "small", every=1, first=0))


def outcome(figures: list[Figures]) -> tuple[float, int, int]:
    """The GPUs allocated in percent, and the pods with one and with eight GPUs that have no node."""
    last = figures[-1]
    return last.allocated, last.unplaced["1"], last.unplaced["8"]


@pytest.mark.parametrize("name", ["hint", "profile", "both", "PackGpus", "PackGpus, known mix", "FGD, exact"])
def test_simulated_packing_leaves_a_node_for_the_large_pod(trace: Trace, name: str) -> None:
    assert outcome(simulated(trace, _BY_NAME[name], _SEED, _ALL)) == (100, 0, 0)


def test_simulated_stock_scheduler_leaves_none(trace: Trace) -> None:
    assert outcome(simulated(trace, _BY_NAME["stock"], _SEED, _ALL)) == (50, 0, 1)


def test_real_scheduler_leaves_a_node_for_the_large_pod(cluster: Cluster, tmp_path: Path, trace: Trace) -> None:
    assert outcome(replayed(cluster, tmp_path, trace, _BY_NAME["both"], _SEED, _ALL)) == (100, 0, 0)


def test_pods_request_exactly_the_gpus_of_each_step(trace: Trace) -> None:
    steps = [sum(pod.shape.gpus for pod in arriving) for arriving in trace.arrivals(_SEED, (0.25, 1.0))]

    assert steps == [4, 12]


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        ([Shape(64, 1, 8)] * 2, [Shape(96, 1, 8)], 1),
        ([Shape(64, 1, 8), Shape(120, 1, 8)], [Shape(128, 1, 8), Shape(96, 1, 8)], 0),
        ([Shape(120, 1, 8), Shape(120, 1, 8)], [Shape(128, 1, 8), Shape(96, 1, 8)], 1),
        ([Shape(64, 9, 8)], [Shape(96, 8, 8)], 1),
    ],
)
def test_unplaceable_pods_are_those_beyond_the_best_assignment(
    pods: list[Shape], nodes: list[Shape], expected: int
) -> None:
    assert unplaceable(pods, nodes) == expected


def test_fragmented_gpus_are_those_that_the_mix_cannot_use() -> None:
    mix = mix_of([Shape(8, 0, 1), Shape(8, 0, 1), Shape(8, 0, 1), Shape(64, 0, 8)])
    rows = [Shape(96, 0, 8), Shape(96, 0, 4), Shape(4, 0, 2)]

    assert list(mix.fragmentation(np.array(rows, dtype=np.float64))) == [0, 1, 2]
