"""The real kube-scheduler is the judge of random pods on random clusters."""

import os
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.differential.dice import Dice
from tests.differential.judge import Judge
from tests.differential.profiles import CONFIGURATION, OTHERS, STANDARD
from tests.differential.trial import disagreements_of_command, keep, minimised, tried
from tests.differential.worlds import pending_pods, random_world

PODS_PER_WORLD = 25
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(2, int(os.environ.get("DIFFERENTIAL_PODS", "350")) // PODS_PER_WORLD)
# So many of the worlds are for profiles that the scheduler has to be started anew for.
WORLDS_OF_OTHERS = max(1, WORLDS // 6)


def _agree(cluster: Cluster, seed: int, schedulers: tuple[str, ...], folder: Path) -> None:
    dice = Dice(seed)
    world = random_world(dice)
    judge = Judge(cluster)
    judge.establish(world)
    trials = []
    for pod in pending_pods(dice, world, PODS_PER_WORLD, schedulers):
        trial = tried(judge, pod)
        trials.append(trial)
        if found := trial.disagreements:
            name = pod["metadata"]["name"]
            again, _ = judge.ask(pod)
            case = minimised(judge, world, pod, found)
            path = (
                keep(case, f"seed-{seed}-{name}") if case else f"not seen again; {trial.answer}, and once more {again}"
            )
            pytest.fail(f"seed {seed}, {name}: {found[0]}\nminimised: {path}")
    assert disagreements_of_command(judge, trials, folder) == []


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS - WORLDS_OF_OTHERS))
def test_what_is_foretold_for_random_pods_is_what_becomes_of_them(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    _agree(cluster, seed, (*STANDARD[:1] * 5, *STANDARD), tmp_path)


@pytest.mark.parametrize("seed", range(FIRST_SEED + 50_000, FIRST_SEED + 50_000 + WORLDS_OF_OTHERS))
def test_profiles_are_read_as_kube_scheduler_reads_them(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    cluster.control_plane.start_scheduler(CONFIGURATION)
    _agree(cluster, seed, OTHERS, tmp_path)
