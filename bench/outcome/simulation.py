"""Replay in this process: the scorer of this project, or a policy, places the pods one after the other."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bench.outcome.arrivals import Trace, TracePod
from bench.outcome.configurations import Configuration
from bench.outcome.figures import Figures, figures
from bench.outcome.fragmentation import Shape, mix_of
from bench.scorer.packing import admitted
from placement_planner.simulation.cluster import SimulatedCluster
from placement_planner.simulation.outcome import Amounts
from placement_planner.simulation.sweep import random_choice
from placement_planner.simulation.templates import RankedScheduler
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.packing.typical_pods import TypicalPod
from webhook.placement.profiles.profile import Profile
from webhook.placement.scorer import PodSignature

_GPU = "nvidia.com/gpu"
_MIB = 2**20


def simulated(trace: Trace, configuration: Configuration, seed: int, steps: tuple[float, ...]) -> list[Figures]:
    """Return the figures of each of the `steps`, shares of the GPUs that the pods have requested until then.

    Among nodes of equal score one is chosen at random, as kube-scheduler does. All nodes are scored.
    """
    cluster = SimulatedCluster(Snapshot.of([NodeInfo.of(Node.of(node)) for node in trace.nodes]))
    best_rows, admit = _chooser(trace, configuration), _admission(configuration)
    choose = random_choice(seed)
    mix = mix_of(trace.shapes)
    pods: list[TracePod] = []
    nodes: dict[str, str] = {}
    result = []
    for step, arriving in zip(steps, trace.arrivals(seed, steps), strict=True):
        for pod in arriving:
            running, signature = admit(pod)
            best = best_rows(pod.shape, signature, cluster.snapshot)
            if len(best):
                nodes[pod.name] = cluster.add(running, choose(best, None)).node_name
        pods += arriving
        result.append(figures(trace, mix, step, pods, nodes))
    return result


def _admission(configuration: Configuration) -> Callable[[TracePod], tuple[RunningPod, PodSignature]]:
    """Return the function from a pod to an admitted pod; pods that differ in their names only share it."""
    known: dict[tuple[Shape, str], tuple[RunningPod, PodSignature]] = {}

    def admit(pod: TracePod) -> tuple[RunningPod, PodSignature]:
        key = (pod.shape, pod.products)
        if key not in known:
            created = admitted(configuration.pod(pod))
            known[key] = RunningPod.of(created), PodSignature.of(created)
        return known[key]

    return admit


_Chooser = Callable[[Shape, PodSignature, Snapshot], Rows]


def _chooser(trace: Trace, configuration: Configuration) -> _Chooser:
    """Return the function from a pod to the rows of the best nodes."""
    scheduler = RankedScheduler(_profile(trace, configuration))

    def by_profile(_: Shape, signature: PodSignature, snapshot: Snapshot) -> Rows:
        return scheduler.best_rows(signature, snapshot)

    def by_policy(shape: Shape, signature: PodSignature, snapshot: Snapshot) -> Rows:
        rows = np.flatnonzero(scheduler.scheduler.feasible(signature, snapshot))
        if not len(rows):
            return rows
        scores = policy.scores(shape, _free(snapshot)[rows])
        best: Rows = rows[scores == scores.max()]
        return best[:1] if policy.takes_first else best

    if configuration.policy is None:
        return by_profile
    policy = configuration.policy(trace.shapes)
    return by_policy


def _profile(trace: Trace, configuration: Configuration) -> Profile:
    """Return the profile of a configuration; one of its own, since PackGpus remembers the pods of a cluster."""
    profile = configuration.profile
    args = profile.args
    if configuration.knows_mix:
        mix = Counter(TypicalPod(each.cpu, each.memory * _MIB, each.gpus) for each in trace.shapes)
        args = replace(args, cards=replace(args.cards, mixes={_GPU: mix}))
    return Profile.of(profile.name, args, profile.enabled)


def _free(snapshot: Snapshot) -> Amounts:
    """Return the free amounts of the nodes: cores (thousandths), MiB, GPUs."""
    columns = [snapshot.allocatable(name) - snapshot.requested(name) for name in (CPU, MEMORY, _GPU)]
    free: Amounts = np.stack(columns, axis=1) / np.array((1, _MIB, 1))
    return free
