"""Replay in this process: the scorer of this project, or a policy, places the pods one after the other."""

import random
from collections.abc import Callable

import numpy as np

from bench.outcome.arrivals import Object, Trace, TracePod
from bench.outcome.configurations import Configuration
from bench.outcome.figures import Amounts, Figures, Mix, figures
from bench.outcome.fragmentation import Candidates, Policy
from bench.packing import admitted
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.cluster.update import updated
from webhook.kube.resource_names import CPU, MEMORY
from webhook.placement.pod_signature import PodSignature
from webhook.placement.scheduler import Scheduler

_GPU = "nvidia.com/gpu"
_MIB = 2**20


def simulated(trace: Trace, configuration: Configuration, seed: int, steps: tuple[float, ...]) -> list[Figures]:
    """Return the figures of each of the `steps`, shares of the GPUs that the pods have requested until then.

    Among nodes of equal score one is chosen at random, as kube-scheduler does. All nodes are scored.
    """
    snapshot = Snapshot.of([NodeInfo.of(Node.of(node)) for node in trace.nodes])
    best_rows = _chooser(trace, configuration)
    dice = random.Random(seed)
    mix = Mix(trace.shapes)
    pods: list[TracePod] = []
    nodes: dict[str, str] = {}
    result = []
    for step, arriving in zip(steps, trace.arrivals(seed, steps), strict=True):
        for pod in arriving:
            created = admitted(configuration.pod(pod))
            best = best_rows(pod, created, snapshot)
            if len(best):
                row = int(best[dice.randrange(len(best))])
                info = snapshot.nodes[row]
                nodes[pod.name] = info.node.name
                running = RunningPod.of({**created, "spec": {**created["spec"], "nodeName": info.node.name}})
                snapshot = updated(snapshot, [info.with_pods([running])], snapshot.generation + 1)
        pods += arriving
        result.append(figures(trace, mix, step, pods, nodes))
    return result


_Chooser = Callable[[TracePod, Object, Snapshot], Rows]


def _chooser(trace: Trace, configuration: Configuration) -> _Chooser:
    """Return the function from a pod, as it is and as admitted, to the rows of the best nodes."""
    scheduler = Scheduler(configuration.profile)

    def by_profile(_: TracePod, created: Object, snapshot: Snapshot) -> Rows:
        return scheduler.best_rows(PodSignature.of(created), snapshot)

    def by_policy(pod: TracePod, created: Object, snapshot: Snapshot) -> Rows:
        rows = np.flatnonzero(scheduler.feasible(PodSignature.of(created), snapshot))
        if not len(rows):
            return rows
        capacity, free = _amounts(snapshot)
        scores = policy.scores(pod.shape, Candidates(free[rows], capacity[rows], free))
        best: Rows = rows[scores == scores.max()]
        return best[:1] if policy.takes_first else best

    if configuration.policy is None:
        return by_profile
    policy: Policy = configuration.policy(trace.shapes)
    return by_policy


def _amounts(snapshot: Snapshot) -> tuple[Amounts, Amounts]:
    """Return the capacity and the free amounts of the nodes: cores (thousandths), MiB, GPUs."""
    units = np.array((1, _MIB, 1))
    names = (CPU, MEMORY, _GPU)
    capacity = np.stack([snapshot.allocatable(name) for name in names], axis=1) / units
    requested = np.stack([snapshot.requested(name) for name in names], axis=1) / units
    return capacity, capacity - requested
