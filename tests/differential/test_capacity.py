"""As many pods are bound by the real kube-scheduler as `capacity` counts, until one stays pending."""

import os
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.differential.capacity import (
    SIZES,
    Predicted,
    bound,
    bound_in_turn,
    predicted,
    templates,
    with_equal_nodes,
    with_few_places,
)
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.profiles import STANDARD
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import World, random_world

PODS_PER_WORLD = 5
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(2, int(os.environ.get("DIFFERENTIAL_CAPACITY", "10")) // PODS_PER_WORLD)
WORLDS_OF_SEVERAL = max(1, WORLDS // 5)
# A cluster with room for more turns takes too long to fill one by one.
_MOST_TURNS = 20
_MOST_TRIES = 200


@pytest.mark.parametrize("seed", range(FIRST_SEED + 80_000, FIRST_SEED + 80_000 + WORLDS))
def test_as_many_pods_are_bound_as_are_counted(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    dice = Dice(seed)
    world = _world(dice, equal=seed % 2 == 0)
    scheduler = KubeScheduler(cluster)
    scheduler.establish(world)
    # About half of them fit nowhere; one of these is enough.
    pods = templates(dice, world, 6 * PODS_PER_WORLD, (*STANDARD[:1] * 5, *STANDARD))
    counts = predicted(tmp_path, scheduler.objects(), pods)
    known = [(pod, count) for pod, count in zip(pods, counts, strict=True) if count is not None]
    with_room = [each for each in known if each[1].fits]
    without_room = [each for each in known if not each[1].fits]
    cases = [*without_room[:1], *with_room, *without_room[1:]][:PODS_PER_WORLD]

    assert len(cases) == PODS_PER_WORLD
    found = []
    for pod, count in cases:
        real = bound(cluster, pod, count.highest + 1)
        if not _agrees(count, real.number, real.message):
            found.append((pod, count, real))
    assert found == []


@pytest.mark.parametrize("seed", range(FIRST_SEED + 85_000, FIRST_SEED + 85_000 + WORLDS_OF_SEVERAL))
def test_as_many_pods_in_turn_are_bound_as_are_counted_together(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    dice = Dice(seed)
    world = _world(dice, equal=seed % 2 == 0)
    scheduler = KubeScheduler(cluster)
    scheduler.establish(world)
    pods, counts = _several_with_room(dice, world, scheduler, tmp_path)

    numbers, message = bound_in_turn(cluster, pods, _MOST_TURNS)

    assert [each.lowest <= number <= each.highest for each, number in zip(counts, numbers, strict=True)] == [
        True
    ] * len(pods), (pods, counts, numbers, message)
    if all(each.lowest == each.highest for each in counts):
        assert message == (counts[0].stopped_by or "")


def _world(dice: Dice, *, equal: bool) -> World:
    world = random_world(dice, SIZES)
    return with_few_places(dice, with_equal_nodes(dice, world) if equal else world)


def _several_with_room(
    dice: Dice, world: World, scheduler: KubeScheduler, folder: Path
) -> tuple[list[Object], list[Predicted]]:
    """Return random pods that fit beside each other, and the counts of the command for them together."""
    objects = scheduler.objects()
    for _ in range(_MOST_TRIES):
        pods = templates(dice, world, dice.randint(2, 3), STANDARD[:1])
        counts = predicted(folder, objects, pods, "--together", "--until", str(_MOST_TURNS))
        known = [each for each in counts if each is not None]
        if len(known) == len(pods) and all(each.fits for each in known):
            return pods, known
    pytest.fail("no pods fit beside each other")


def _agrees(count: Predicted, number: int, message: str) -> bool:
    """Return whether the real number is in the range; if nothing depends on chance, the message is equal too."""
    is_exact = count.lowest == count.highest
    return count.lowest <= number <= count.highest and (not is_exact or message == count.stopped_by)
