"""A cluster file with other names gives every pod the same placement."""

from copy import deepcopy

import pytest

from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import pending_pods, random_world
from webhook.cli.inputs.anonymize import with_other_names
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler

_SMALL = ((4, 8),)


@pytest.mark.parametrize("seed", range(30))
def test_other_names_change_no_placement(seed: int) -> None:
    dice = Dice(seed)
    world = random_world(dice, _SMALL)
    # Nodes, namespaces and pods alone: what is renamed.
    objects = [*world.namespaces, *world.nodes, *world.pods]
    for pod in pending_pods(dice, world, 10):
        results = []
        for cluster in ([*objects, pod], with_other_names(deepcopy([*objects, pod]))):
            asked = cluster[-1]
            snapshot = snapshot_from_documents(Document("cluster", each) for each in cluster)
            placement = Scheduler().place(asked, snapshot)
            results.append((placement.verdict, placement.message, [*map(dict, placement.scores.values())]))
        assert results[0] == results[1]
