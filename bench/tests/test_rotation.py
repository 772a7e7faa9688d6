"""An installation is taken over and rotated, and no creation fails: the short form of `make rotate-under-load`."""

from pathlib import Path

import pytest

from bench.rotation import installed, rotated_under_load
from certs.plan import Request
from tests.controlplane.cluster import Cluster


@pytest.mark.usefixtures("forked_servers")
def test_no_creation_fails_while_certificate_and_ca_are_rotated(cluster: Cluster, tmp_path: Path) -> None:
    with installed(cluster, tmp_path, pace=0.6) as webhook:
        outcome = rotated_under_load(webhook, 200, clients=8, rotations=(Request.SERVING, Request.CA))

    assert (outcome.pods.failures, outcome.pods.faults) == ([], [])
    assert len(outcome.pods.made) >= 200
    assert outcome.rotations == ["taken over", "serving", "ca"]
    assert len(outcome.handshakes.certificates_seen) == 4
    assert outcome.handshakes.failures == []
