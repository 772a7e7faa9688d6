"""Reviews with something wrong in them: no answer is a fault, every patch applies and loses nothing of the user's."""

from itertools import islice

import pytest

from tests.support.mutations import harm, mutated
from tests.support.objects.clusters import cluster_documents
from tests.support.servers.server import World
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.placement.scheduler import Scheduler


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_wrong_review_is_answered_with_a_fault_or_a_patch_that_harms(seed: int) -> None:
    world = World(cluster=ClusterView(snapshot_from_documents(cluster_documents(40, 2)), Scheduler(suggestions=1)))
    admissions, statuses = world.admissions(), set()
    for body in islice(mutated(seed), 500):
        status, answer = admissions.answer(body, 1000.0, None)
        assert harm(body, status, answer) == ""
        statuses.add(status)
    assert statuses == {200, 400}
    assert {"Patched", "Error"} <= {record.outcome for record in world.records}
