"""In shadow mode, a real API server creates the pods that exceed the limits of the webhook, with failurePolicy Fail."""

import time
from pathlib import Path

import pytest

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, running_in_thread


@pytest.mark.parametrize("mode", ["shadow", "enforce"])
def test_a_pod_beyond_the_size_limit_is_created_in_shadow_mode(cluster: Cluster, tmp_path: Path, mode: str) -> None:
    world = World(policy=policy_with(mode=mode), clock=time.monotonic)
    pods = [
        make_pod("small").annotate(TYPE, "training").obj(),
        make_pod("large").annotate(TYPE, "training").annotate("notes", "x" * 200_000).obj(),
    ]
    with running_in_thread(world, tmp_path, max_body_bytes=100_000) as server:
        cluster.register_webhook(server.url, (tmp_path / "ca.crt").read_text())
        cluster.create(pods[0])
        if mode == "shadow":
            cluster.create(pods[1])
        else:
            with pytest.raises(ApiError, match="failed calling webhook"):
                cluster.create(pods[1])

    namespaces = [record.namespace for record in world.records]
    assert namespaces == [cluster.namespace] * (2 if mode == "shadow" else 1)
