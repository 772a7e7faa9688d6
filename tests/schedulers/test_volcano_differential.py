"""Predictions for random pods on random clusters, compared with the real Volcano."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.differential.dice import Dice
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.worlds import pending_pods
from tests.schedulers import volcano
from tests.schedulers.asked import Answer, AskedVolcano, world_for_volcano
from tests.schedulers.build import Built
from tests.schedulers.running import KUBE_SCHEDULER_ALONE
from webhook.cluster.snapshot import Snapshot
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import Scheduler

PODS_PER_WORLD = 25
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(1, int(os.environ.get("DIFFERENTIAL_VOLCANO", "300")) // PODS_PER_WORLD)


class Compared(NamedTuple):
    """A pod, what was predicted for it, and what Volcano did."""

    name: str
    pod: Object
    placement: Placement
    answer: Answer

    @property
    def agrees_on_binding(self) -> bool:
        return (self.placement.verdict == "Feasible") == (self.answer.node is not None)

    @property
    def is_best(self) -> bool:
        totals = {node: scores["total"] for node, scores in self.placement.scores.items()}
        return bool(totals) and totals.get(str(self.answer.node)) == max(totals.values())

    def __str__(self) -> str:
        found = f"{self.placement.verdict} {self.placement.node} {self.placement.message}"
        return f"{self.name}: predicted {found}; Volcano: {self.answer}"


def predicted(pod: Object, snapshot: Snapshot) -> Placement:
    return Scheduler(VOLCANO).place(pod, snapshot)


def compared(cluster: Cluster, kube_scheduler: KubeScheduler, seed: int, built: Built, folder: Path) -> list[Compared]:
    dice = Dice(seed)
    world = world_for_volcano(dice)
    kube_scheduler.establish(world)
    snapshot = kube_scheduler.snapshot()
    found = []
    # Started after the world is there, Volcano knows all of it when it is ready.
    with volcano.running(cluster, built, folder) as started:
        asked = AskedVolcano(cluster, started)
        for pod in pending_pods(dice, world, PODS_PER_WORLD, ("volcano",)):
            answer, _ = asked.ask(pod)
            found.append(Compared(f"seed {seed} {pod['metadata']['name']}", pod, predicted(pod, snapshot), answer))
    return found


@pytest.mark.timeout(1800)
def test_predictions_for_random_pods_match_volcano(cluster: Cluster, volcano_programs: Built, tmp_path: Path) -> None:
    cluster.control_plane.start_scheduler(KUBE_SCHEDULER_ALONE)
    kube_scheduler = KubeScheduler(cluster)

    found: list[Compared] = []
    for seed in range(FIRST_SEED, FIRST_SEED + WORLDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found += compared(cluster, kube_scheduler, seed, volcano_programs, folder)

    bound = [each for each in found if each.answer.node]
    best = sum(each.is_best for each in bound)
    print(f"{len(found)} pods, {len(bound)} bound, {best} on a best node")
    assert [str(each) for each in found if not each.agrees_on_binding] == []
    assert best >= 0.95 * len(bound)
