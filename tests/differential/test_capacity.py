"""As many pods are bound by the real kube-scheduler as `capacity` counts, until one stays pending."""

import os
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.differential.capacity import SIZES, Predicted, bound, predicted, templates, with_few_places
from tests.differential.dice import Dice
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.profiles import STANDARD
from tests.differential.worlds import random_world

PODS_PER_WORLD = 5
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(1, int(os.environ.get("DIFFERENTIAL_CAPACITY", "10")) // PODS_PER_WORLD)
# One pod in five may fit nowhere.
_MOST_WITHOUT_ROOM = 1


@pytest.mark.parametrize("seed", range(FIRST_SEED + 80_000, FIRST_SEED + 80_000 + WORLDS))
def test_as_many_pods_are_bound_as_are_counted(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    dice = Dice(seed)
    world = with_few_places(dice, random_world(dice, SIZES))
    scheduler = KubeScheduler(cluster)
    scheduler.establish(world)
    pods = templates(dice, world, 6 * PODS_PER_WORLD, (*STANDARD[:1] * 5, *STANDARD))
    counts = predicted(tmp_path, scheduler.objects(), pods)
    known = [(pod, count) for pod, count in zip(pods, counts, strict=True) if count is not None]
    with_room = [each for each in known if each[1].fits]
    without_room = [each for each in known if not each[1].fits][:_MOST_WITHOUT_ROOM]
    cases = [*without_room, *with_room][:PODS_PER_WORLD]

    assert len(cases) == PODS_PER_WORLD
    found = []
    for pod, count in cases:
        real = bound(cluster, pod, count.highest + 1)
        if not _agrees(count, real.number, real.message):
            found.append((pod["metadata"]["name"], count, real))
    assert found == []


def _agrees(count: Predicted, number: int, message: str) -> bool:
    """Return whether the real number is in the range; if nothing depends on chance, the message is equal too."""
    is_exact = count.lowest == count.highest
    return count.lowest <= number <= count.highest and (not is_exact or message == count.stopped_by)
