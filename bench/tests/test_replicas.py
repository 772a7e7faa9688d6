"""Replicas behind one address end under load: the short forms of `make bench-rollout` and `make bench-crash`."""

from collections.abc import Iterator

import pytest

from bench.rollout import FLAGS, records_of
from bench.running.pod_clients import Load, created_while
from bench.running.replicas import Replicas, replicated
from tests.controlplane.cluster import Cluster

# 8 clients create less than 27 pods a second together: they do not stop while a replica starts.
PAUSE_SECONDS = 0.3


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Return two replicas, which the tests end and replace."""
    with replicated(tmp_path_factory.mktemp("replicas"), 2, *FLAGS) as found:
        yield found


def test_no_creation_fails_while_replicas_are_replaced(cluster: Cluster, replicas: Replicas) -> None:
    codes: list[int] = []
    replicas.register(cluster)
    load = Load(cluster, clients=8, pause_seconds=PAUSE_SECONDS)
    outcome = created_while(load, 60, 2, lambda: codes.append(replicas.roll()))

    assert (outcome.failures, outcome.faults, codes) == ([], [], [0, 0])
    assert len(outcome.made) >= 60


def test_every_answer_has_its_audit_record_when_replicas_are_killed(cluster: Cluster, replicas: Replicas) -> None:
    replicas.register(cluster)
    load = Load(cluster, clients=8, pause_seconds=PAUSE_SECONDS)
    outcome = created_while(load, 60, 2, replicas.crash)
    records = records_of(cluster, replicas, outcome)

    assert outcome.faults == []
    assert records.decisions == len(outcome.made) > 0
    assert records.unrecorded == []
    assert records.verification.returncode == 0, records.verification.stderr
