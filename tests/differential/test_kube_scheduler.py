"""Predictions for random pods on random clusters match the real kube-scheduler."""

import json
import os
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.differential.command import predicted_by_command
from tests.differential.comparison import disagreements
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.profiles import CONFIGURATION, OTHERS, STANDARD
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.random_profiles import random_configuration
from tests.differential.random_objects.worlds import pending_pods, random_world
from tests.differential.trial import disagreements_of_command, report, tried
from webhook.placement.config.profile_loader import parse_profiles

PODS_PER_WORLD = 25
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(2, int(os.environ.get("DIFFERENTIAL_PODS", "200")) // PODS_PER_WORLD)
# The number of worlds with profiles for which the scheduler must restart.
WORLDS_OF_OTHERS = max(1, WORLDS // 6)


def _agree(cluster: Cluster, seed: int, schedulers: tuple[str, ...], folder: Path) -> None:
    dice = Dice(seed)
    world = random_world(dice)
    scheduler = KubeScheduler(cluster)
    scheduler.establish(world)
    trials = []
    for pod in pending_pods(dice, world, PODS_PER_WORLD, schedulers):
        trial = tried(scheduler, pod)
        trials.append(trial)
        if trial.disagreements:
            pytest.fail(report(scheduler, world, trial, f"seed-{seed}-{pod['metadata']['name']}"))
    assert disagreements_of_command(scheduler, trials, folder) == []


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS - WORLDS_OF_OTHERS))
def test_predictions_for_random_pods_match_kube_scheduler(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    _agree(cluster, seed, (*STANDARD[:1] * 5, *STANDARD), tmp_path)


@pytest.mark.parametrize("seed", range(FIRST_SEED + 50_000, FIRST_SEED + 50_000 + WORLDS_OF_OTHERS))
def test_profiles_are_read_as_kube_scheduler_reads_them(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    cluster.control_plane.start_scheduler(CONFIGURATION)
    _agree(cluster, seed, OTHERS, tmp_path)


@pytest.mark.parametrize("seed", range(FIRST_SEED + 60_000, FIRST_SEED + 60_000 + WORLDS_OF_OTHERS))
def test_random_profiles_are_read_as_kube_scheduler_reads_them(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    dice = Dice(seed)
    configuration = random_configuration(dice, OTHERS)
    cluster.control_plane.start_scheduler(configuration)
    world = random_world(dice)
    scheduler = KubeScheduler(cluster)
    scheduler.establish(world)
    pods = pending_pods(dice, world, PODS_PER_WORLD, OTHERS)
    answers = [scheduler.ask(pod)[0] for pod in pods]
    placements = predicted_by_command(tmp_path, scheduler.objects(), pods, configuration)
    profiles = parse_profiles(json.dumps(configuration), "configuration")
    found = [
        (pod["spec"]["schedulerName"], *disagreements(placement, answer, profiles[pod["spec"]["schedulerName"]]))
        for pod, placement, answer in zip(pods, placements, answers, strict=True)
    ]
    assert [each for each in found if len(each) > 1] == []
