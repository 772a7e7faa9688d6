"""The webhook, served over TLS and registered in the control plane."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.on_cluster.registered import Webhook, registered_as_shipped
from tests.support.servers.server import World, running_in_thread

__all__ = ["Webhook", "registered_as_shipped"]


@pytest.fixture
def webhook(cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    """Registered for the pods of every namespace, fail closed."""
    world = World(clock=time.monotonic)
    with running_in_thread(world, tmp_path) as server:
        ca_pem = (tmp_path / "ca.crt").read_text()
        cluster.register_webhook(server.url, ca_pem)
        yield Webhook(world, server, ca_pem)


@pytest.fixture
def unreachable_webhook() -> Iterator[str]:
    """The URL of a webhook that is down: a reserved port without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{taken.getsockname()[1]}/mutate"
