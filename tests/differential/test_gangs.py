"""As many pods of a gang are bound by the real kube-scheduler as fit together by prediction."""

import os
from dataclasses import replace

import pytest

from placement_planner.capacity.counting import count_each
from placement_planner.capacity.simulation import FurtherPods
from tests.controlplane.cluster import Cluster
from tests.differential.capacity import SIZES, bound, templates, with_few_places
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.profiles import STANDARD
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import random_world
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.result import Placement
from webhook.placement.gang.gang import gang_placement
from webhook.placement.gang.gang_count import Gang
from webhook.placement.scheduler import Scheduler, never
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, predict_placement

GANGS = max(4, int(os.environ.get("DIFFERENTIAL_GANGS", "4")))
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
_MOST_TRIES = 200


@pytest.mark.parametrize("seed", range(FIRST_SEED + 90_000, FIRST_SEED + 90_000 + GANGS // 4))
def test_as_many_pods_of_a_gang_are_bound_as_fit_together(cluster: Cluster, seed: int) -> None:
    dice = Dice(seed)
    # A nominated pod can get its node meanwhile, and then takes the room of the gang.
    world = replace(with_few_places(dice, random_world(dice, SIZES)), nominated=())
    scheduler = KubeScheduler(cluster)
    scheduler.establish(world)
    snapshot = snapshot_from_documents(Document("cluster", each) for each in scheduler.objects())

    found: list[tuple[bool, int, bool, int, Object]] = []
    for pod in templates(dice, world, _MOST_TRIES, STANDARD[:1]):
        count = count_each(further(pod), snapshot)
        # Where chance decides between nodes of equal scores, more or fewer can fit.
        if count.range is None or count.range.lowest != count.range.highest or not 2 <= count.fits <= 8:
            continue
        size = dice.randint(2, count.fits) if len(found) % 2 else count.fits + dice.randint(1, 2)
        gang = predicted(pod, size, snapshot)
        assert gang.gang is not None
        real = bound(cluster, pod, size)
        found.append((gang.verdict == "Feasible", gang.gang.fit, real.number == size, real.number, pod))
        if len(found) == 4:
            break

    assert len(found) == 4
    assert [each for each in found if each[:2] != each[2:4]] == []


def further(pod: Object) -> FurtherPods:
    return FurtherPods(Scheduler(), lambda _: pod)


def predicted(pod: Object, size: int, snapshot: Snapshot) -> Placement:
    """Return the placement of a gang of `size` pods like `pod`."""
    asked, assumed = WaitingPod.of(pod), AssumedPods[str](snapshot, {})
    own = predict_placement(Scheduler(), asked.signature, assumed, None, never)
    gang = Gang(GangKey(asked.running.namespace, "maip.mxsf.io/gang", "train"), size)
    return gang_placement(Scheduler(), gang, asked, own, assumed)
