"""The real kube-scheduler evicts the pods that are predicted, on the predicted node, with the predicted text."""

import os

import pytest

from tests.controlplane.cluster import Cluster
from tests.differential.preemption import (
    Preempting,
    disagreements,
    predicted,
    random_budgets,
    random_preemptor,
    random_world,
)
from tests.differential.random_objects.dice import Dice

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
PODS = int(os.environ.get("DIFFERENTIAL_PREEMPTIONS", "30"))
PODS_PER_WORLD = 5


@pytest.mark.parametrize("seed", range(FIRST_SEED + 90_000, FIRST_SEED + 90_000 + PODS // PODS_PER_WORLD))
def test_victims_are_predicted(cluster: Cluster, seed: int) -> None:
    dice = Dice(seed)
    nodes = dice.choice((2, 3, 4, 6, 17, 30)) if seed % 10 else 101
    world, budgets = random_world(dice, nodes), random_budgets(dice)
    preempting = Preempting(cluster)
    found = []
    for number in range(PODS_PER_WORLD):
        preempting.establish(world, budgets)
        pod = random_preemptor(dice, f"preemptor-{seed}-{number}")
        message, preemption = predicted(preempting.scheduler, pod)
        real = preempting.ask(pod)
        wrong = disagreements(real, message, preemption)
        found += [(pod["metadata"]["name"], *wrong, real, preemption and preemption.to_json())] if wrong else []
    assert found == [], "\n".join(map(str, found))
