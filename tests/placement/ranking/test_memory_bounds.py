"""The memory for a pod is bounded for any number of nodes."""

import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.attacks import WORST, attack_pod
from tests.support.objects.clusters import cluster_documents
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import PodSignature, Scheduler

NODES = 2000
# A mask of the nodes for each of ten thousand things would be 20 MB.
MOST_BYTES = 6 * 1024 * 1024


def _distinct_topologies() -> Mapping[str, Any]:
    terms = [{"labelSelector": {}, "topologyKey": f"example.com/t{number}"} for number in range(3000)]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _requirements() -> Mapping[str, Any]:
    expressions = [{"key": f"k{number}", "operator": "Exists"} for number in range(5000)]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


_SPECS = {
    **{name: WORST[name] for name in ("21,000 nodeSelector keys", "11,000 resources", "1,400 anti-affinity terms")},
    "3,000 topologies": _distinct_topologies,
    "5,000 requirements": _requirements,
}


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return snapshot_from_documents(cluster_documents(NODES, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", _SPECS)
def test_filters_and_suggestions_keep_no_mask_for_each_thing_that_a_pod_names(snapshot: Snapshot, name: str) -> None:
    framework = Scheduler(suggestions=1)
    question = PodSignature.of(attack_pod("a", _SPECS[name]()))
    tracemalloc.start()
    try:
        placement = framework.answer(question, snapshot)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert placement.verdict in ("Feasible", "Waiting", "Infeasible", "Unknown")
    assert peak_bytes < MOST_BYTES
