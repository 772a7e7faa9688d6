"""`make bench-simulate`: compare the simulation with the real kube-scheduler, on pods of the openb trace.

Without lifetimes, the pods of the trace fill a part of its cluster, and each choice of the real kube-scheduler is
looked up among the best nodes of the simulation. With `--lifetime`, pods arrive and end in real time, and the GPUs
allocated over time are compared. With `--preempt`, too, a pod arrives each second, pods have three priorities by turns,
and each preemption is looked up in what is predicted. Nodes are every n-th node of the trace.
"""

import csv
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from bench.bursts.burst_trace import trace_option
from bench.running.real_cluster import control_plane_and_folder
from bench.simulation.following import created, followed, simulation_of
from bench.simulation.openb import node_object, plain_trace
from bench.simulation.preempted import as_it_was, compared, paced, really, with_classes
from bench.simulation.real import SCHEDULERS, Life, bound, lives, start_scheduler
from placement_planner.simulation.arrival import Arrival, Load
from placement_planner.simulation.plain_csv import read_plain_csv
from placement_planner.simulation.preemption import victims_by
from placement_planner.simulation.sweep import Experiment, Run, random_choice, simulated
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from webhook.documents.documents import Document
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

_GPU = "nvidia.com/gpu"
_PRIORITIES = (0, 50, 100)
# Which of equal nodes a pod gets changes which pods are evicted later.
_OWN_SEEDS = 20


@click.command()
@trace_option
@click.option("--pod-list", default="multigpu50", show_default=True)
@click.option("--every", type=click.IntRange(1), default=16, show_default=True, help="Take every n-th node.")
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True)
@click.option("--profile", type=click.Choice([*SCHEDULERS]), default="binpack", show_default=True)
@click.option("--lifetime", type=float, help="The mean lifetime in seconds; default: pods do not end.")
@click.option("--span", type=float, default=180, show_default=True, help="The seconds in which pods arrive and end.")
@click.option("--load", type=float, default=110, show_default=True, help="With --lifetime: percent of the GPUs.")
@click.option("--preempt", "preempts", is_flag=True, help="With --lifetime: pods have one of three priorities.")
def main(
    trace: Path,
    pod_list: str,
    every: int,
    seeds: int,
    profile: str,
    lifetime: float | None,
    span: float,
    load: float,
    *,
    preempts: bool,
) -> None:
    """Print, for each seed, how the simulation and the real kube-scheduler differ."""
    if preempts and not lifetime:
        raise click.UsageError("--preempt needs --lifetime")
    load_of_run = Load("random", load / 100, span, lifetime) if lifetime else Load("fill")
    experiment = _experiment(trace, pod_list, every, load_of_run)
    with control_plane_and_folder() as (control_plane, _):
        for seed in range(1, seeds + 1):
            began = time.monotonic()
            with _cluster(control_plane, experiment) as cluster:
                text = _preempting if preempts else _with_lifetimes if lifetime else _without_lifetimes
                line = text(cluster, experiment, Run(0, profile, seed))
            click.echo(f"seed {seed}, {profile}: {line} ({time.monotonic() - began:.0f} s)")


def _experiment(folder: Path, pod_list: str, every: int, load: Load) -> Experiment:
    policies = PolicySet(built_in_policy())
    with (folder / "openb_node_list_gpu_node.csv").open() as file:
        nodes = [node_object(row, "training") for row in csv.DictReader(file)][::every]
    name = f"openb_pod_list_{pod_list}.csv"
    with (folder / name).open() as file:
        pods = read_plain_csv(plain_trace(csv.DictReader(file)).encode(), name, _GPU.__eq__)
    if load.mode == "random":
        pods = [replace(each, duration_seconds=None) for each in pods]
    documents = tuple(Document("nodes", node) for node in nodes)
    return Experiment(documents, tuple(pods), (("built-in", policies),), load)


@contextmanager
def _cluster(control_plane: ControlPlane, experiment: Experiment) -> Iterator[Cluster]:
    cluster = Cluster(control_plane)
    try:
        start_scheduler(cluster)
        cluster.make_nodes(*(document.content for document in experiment.cluster))
        yield cluster
    finally:
        cluster.remove_everything()


def _without_lifetimes(cluster: Cluster, experiment: Experiment, run: Run) -> str:
    cards = int(experiment.snapshot.allocatable("nvidia.com/gpu").sum())
    arrivals = experiment.load.arrivals(experiment.trace, cards, run.seed)
    nodes = bound(cluster, created(experiment.templates(run), arrivals, SCHEDULERS[run.profile]))
    found = followed(experiment, run, arrivals, nodes)
    real = sum(each.cards for each, node in zip(arrivals, nodes, strict=True) if node)
    own = simulated(experiment, run).last_allocated
    placed = sum(node is not None for node in nodes)
    return (
        f"{found.pods} pods, kube-scheduler {placed} placed, {100 * real / cards:.2f} % allocated;"
        f" following it {found.placed} placed, {100 * found.cards / cards:.2f} %; other node {len(found.other_nodes)},"
        f" other outcome {len(found.other_outcomes)}; by its own choices {own:.2f} %"
    )


def _with_lifetimes(cluster: Cluster, experiment: Experiment, run: Run) -> str:
    """Compare the GPUs allocated. The simulation gets the times as they were on a machine that may be busy."""
    cards = int(experiment.snapshot.allocatable("nvidia.com/gpu").sum())
    arrivals = experiment.load.arrivals(experiment.trace, cards, run.seed)
    seconds = experiment.load.span_seconds
    pods = created(experiment.templates(run), arrivals, SCHEDULERS[run.profile])
    found = lives(cluster, pods, arrivals, seconds)
    held = [
        each.cards * ((life.deleted or seconds) - life.bound)
        for each, life in zip(arrivals, found, strict=False)
        if life.bound is not None
    ]
    real = 100 * sum(held) / (cards * seconds)
    as_was = [_as_it_was(each, life) for each, life in zip(arrivals, found, strict=False)]
    # The simulation notes its state until the last arrival.
    until_end = [*as_was, replace(as_was[0], at_seconds=seconds)]
    simulation, recorder = simulation_of(experiment, run, until_end, random_choice(run.seed))
    simulation.run(until_end)
    first = as_was[0].at_seconds
    own = recorder.allocated * (seconds - first) / seconds
    late = [
        (was.duration_seconds or 0) - (each.duration_seconds or 0) for each, was in zip(arrivals, as_was, strict=False)
    ]
    return (
        f"{len(found)} pods, ended up to {max(late):.1f} s late; kube-scheduler {real:.2f} % allocated,"
        f" simulation {own:.2f} %, {own - real:+.2f}"
    )


def _preempting(cluster: Cluster, experiment: Experiment, run: Run) -> str:
    """Compare the victims and the GPUs allocated, following the real kube-scheduler and by own choices."""
    cards = int(experiment.snapshot.allocatable(_GPU).sum())
    seconds = experiment.load.span_seconds
    drawn = experiment.load.arrivals(experiment.trace, cards, run.seed)
    arrivals = paced(drawn[: int(seconds)], _PRIORITIES)
    pods = with_classes(cluster, created(experiment.templates(run), arrivals, SCHEDULERS[run.profile]))
    real = really(cluster, pods, arrivals, seconds)
    found = compared(experiment, run, arrivals, real)
    as_was = as_it_was(arrivals, real)
    first, last = as_was[0].at_seconds, as_was[-1].at_seconds
    held = [
        arrivals[pod.number].cards * max(min(pod.gone or seconds, last) - pod.bound, 0)
        for pod in real.pods
        if pod.bound is not None
    ]
    own, evicted = [], []
    for seed in range(_OWN_SEEDS):
        victims = victims_by(random.Random(seed))
        simulation, recorder = simulation_of(experiment, run, as_was, random_choice(seed), victims)
        simulation.run(as_was)
        own.append(recorder.allocated)
        evicted.append(sum(each.pods for each in recorder.evicted))
    allocated = 100 * sum(held) / (cards * (last - first))
    following = "" if found.difference else f" {found.allocated:.2f} %, {found.allocated - allocated:+.2f},"
    return (
        f"{len(as_was)} pods; kube-scheduler {allocated:.2f} % allocated, {real.evictions} evicted;"
        f" following it{following} {found.preemptions} equal preemptions, {found.exact} of them exact, until"
        f" {found.difference or 'the end'}; by its own choices {min(own):.2f} to {max(own):.2f} %,"
        f" {min(evicted)} to {max(evicted)} evicted"
    )


def _as_it_was(arrival: Arrival, life: Life) -> Arrival:
    duration = arrival.duration_seconds
    if life.bound is not None and life.deleted is not None:
        duration = life.deleted - life.bound
    return replace(arrival, at_seconds=life.created, duration_seconds=duration)


if __name__ == "__main__":
    main()
