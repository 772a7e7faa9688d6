"""The policy is reloaded under load, and each pod has the injection of one policy: the short `make bench-reload`."""

from pathlib import Path

from bench.reload import following, reloaded_under_load
from tests.controlplane.cluster import Cluster


def test_every_pod_is_decided_by_one_policy_while_it_is_reloaded(cluster: Cluster, tmp_path: Path) -> None:
    with following(tmp_path) as server:
        outcome = reloaded_under_load(cluster, server, creations=200, clients=8, reloads=3)

    assert (outcome.created, outcome.failures, outcome.mixed) == (200, [], [])
    assert (outcome.reloads, outcome.rejections) == (3, 3)
    assert len(outcome.revisions) == 2
