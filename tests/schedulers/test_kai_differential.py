"""Predictions for random pods on random clusters, compared with the real KAI: bound or not."""

import os
from pathlib import Path

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.differential.dice import Dice
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.worlds import pending_pods
from tests.schedulers import kai
from tests.schedulers.asked import Asked, Compared, world_for_batch_scheduler
from tests.schedulers.build import Built
from tests.schedulers.running import KUBE_SCHEDULER_ALONE
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.scheduler import Scheduler

PODS_PER_WORLD = 20
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(1, int(os.environ.get("DIFFERENTIAL_KAI", "60")) // PODS_PER_WORLD)


def without_owner(pod: Object) -> Object:
    return {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}}


def compared(cluster: Cluster, kube_scheduler: KubeScheduler, seed: int, built: Built, folder: Path) -> list[Compared]:
    dice = Dice(seed)
    world = world_for_batch_scheduler(dice)
    kube_scheduler.establish(world)
    snapshot, scheduler = kube_scheduler.snapshot(), Scheduler(KAI)
    with kai.running(cluster, built, folder) as started:
        started.make_queue("default-queue")
        asked = Asked(cluster, kai.POD_GROUPS)
        # Its pod grouper needs the owner of a pod, which may not exist.
        return [
            Compared(f"seed {seed} {pod['metadata']['name']}", pod, scheduler.place(pod, snapshot), asked.ask(pod))
            for pod in map(without_owner, pending_pods(dice, world, PODS_PER_WORLD, ("kai-scheduler",)))
        ]


@pytest.mark.timeout(900)
def test_random_pods_are_bound_by_kai_as_predicted(cluster: Cluster, kai_programs: Built, tmp_path: Path) -> None:
    cluster.control_plane.start_scheduler(KUBE_SCHEDULER_ALONE)
    kube_scheduler = KubeScheduler(cluster)

    found: list[Compared] = []
    for seed in range(FIRST_SEED, FIRST_SEED + WORLDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found += compared(cluster, kube_scheduler, seed, kai_programs, folder)

    bound = [each for each in found if each.answer.node]
    print(f"{len(found)} pods, {len(bound)} bound, {sum(each.is_best for each in bound)} on a best node")
    assert [str(each) for each in found if each.placement.verdict == "Unknown"] == []
    assert [str(each) for each in found if not each.agrees_on_binding] == []
    assert len(bound) >= len(found) / 4
