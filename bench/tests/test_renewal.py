"""A certificate is renewed under load, and no creation fails: the short form of `make bench-renewal`."""

from pathlib import Path

import pytest

from bench.renewal import renewed_under_load, serving
from tests.controlplane.cluster import Cluster


@pytest.mark.usefixtures("forked_servers")
def test_no_creation_fails_while_the_certificate_is_renewed(cluster: Cluster, tmp_path: Path) -> None:
    with serving(tmp_path) as webhook:
        outcome = renewed_under_load(cluster, webhook, creations=300, clients=8, renewals=3, pause_seconds=0.04)

    assert (outcome.pods.failures, outcome.pods.faults) == ([], [])
    assert len(outcome.pods.made) >= 300
    assert len(outcome.handshakes.certificates_seen) == 4
    assert outcome.handshakes.failures == []
