"""Short forms of `make abuse`."""

from pathlib import Path

import orjson
import pytest
import uvloop

from bench.abuse import serving
from bench.attackers.abuse_preemption import besiege, preempting_review
from tests.support.objects.clusters import cluster_documents
from tests.support.servers.processes import certificate
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.placement.scheduler import PodSignature, Scheduler


@pytest.mark.slow
def test_victims_are_searched_on_each_node_for_each_pod_of_high_priority() -> None:
    snapshot, scheduler = snapshot_from_documents(cluster_documents(100, 10)), Scheduler(suggestions=1)
    for number in range(4):
        found = scheduler.answer(
            PodSignature.of(orjson.loads(preempting_review(number))["request"]["object"]), snapshot
        )
        assert (found.verdict, found.preemption and found.preemption.candidates) == ("Waiting", 100)


@pytest.mark.slow
def test_normal_pods_are_injected_while_pods_of_high_priority_search_victims(tmp_path: Path) -> None:
    certificate(tmp_path)
    with serving(tmp_path, 100, 10) as target:
        before, meanwhile, attackers = uvloop.run(besiege(target, 40, give_up=60))

    assert (before.statuses, attackers.statuses) == ({"200": 10}, {"200": 40})
    assert set(meanwhile.statuses) == {"200"}
    assert before.unpatched == meanwhile.unpatched == attackers.unpatched == 0
