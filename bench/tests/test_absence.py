"""Pods are injected while no replica of the webhook runs: the short form of `make bench-absence`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.absence import absent_under_load, exporting, make_training_node
from bench.running.replicas import Replicas, replicated
from tests.controlplane.cluster import Cluster


@pytest.fixture
def replicas(cluster: Cluster, tmp_path: Path, forked_servers: None) -> Iterator[Replicas]:
    """A replica that exports its policy."""
    make_training_node(cluster)
    flags = (f"--kubeconfig={cluster.control_plane.kubeconfig}", *exporting(cluster.client))
    with replicated(tmp_path, 1, *flags) as found:
        yield found


def test_pods_of_an_absence_are_injected_and_later_ones_have_verdicts(cluster: Cluster, replicas: Replicas) -> None:
    outcome = absent_under_load(cluster, replicas, creations=40, clients=4)

    assert (outcome.pods.failures, outcome.pods.faults) == ([], [])
    assert len(outcome.pods.made) >= 40
    assert outcome.missed.stdout == f"no pod was missed, of {len(outcome.pods.made)}\n"
    assert outcome.missed_pods == 0
    assert outcome.verdicts == {"Unchanged, Feasible": 10}
