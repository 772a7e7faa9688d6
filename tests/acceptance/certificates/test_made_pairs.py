"""Pairs of openssl, cfssl and cert-manager, served by the webhook and judged by the API server."""

from pathlib import Path

import pytest

from tests.acceptance.placing.pools import training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.servers.server import World, running_in_thread
from tests.support.tls.pairs import MadePair, pairs


@pytest.mark.parametrize("pair", pairs("trusted"), ids=lambda pair: pair.name)
def test_api_server_trusts_the_pair(cluster: Cluster, tmp_path: Path, pair: MadePair) -> None:
    world = World()
    with running_in_thread(world, pair.write(tmp_path)) as server:
        cluster.register_webhook(server.url, pair.files["ca.crt"])
        cluster.create(training_pod("trainer"))
    assert [record.outcome for record in world.records] == ["Patched"]


@pytest.mark.parametrize("pair", pairs("untrusted"), ids=lambda pair: pair.name)
def test_api_server_does_not_trust_the_pair(cluster: Cluster, tmp_path: Path, pair: MadePair) -> None:
    world = World()
    with running_in_thread(world, pair.write(tmp_path)) as server:
        cluster.register_webhook(server.url, pair.files["ca.crt"])
        with pytest.raises(ApiError, match=r"x509|tls:"):
            cluster.create(training_pod("trainer"))
    assert world.records == []
