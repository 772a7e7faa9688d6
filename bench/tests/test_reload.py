"""Pods are created while the policy is reloaded: the short form of `make bench-reload`."""

from pathlib import Path

import pytest

from bench.reload import following, reloaded_under_load
from tests.controlplane.cluster import Cluster


@pytest.mark.usefixtures("forked_servers")
def test_every_pod_is_decided_by_one_policy_while_it_is_reloaded(cluster: Cluster, tmp_path: Path) -> None:
    with following(tmp_path) as server:
        pods = reloaded_under_load(cluster, server, creations=120, clients=8, reloads=3, pause_seconds=0.1)

    assert len(pods.made) >= 120
    assert (pods.failures, pods.faults) == ([], [])
    assert len(pods.policies) == 2
