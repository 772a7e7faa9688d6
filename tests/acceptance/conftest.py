"""The webhook, served over TLS and registered in the control plane."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from certs.registration import Target, manifest, with_ca_bundle
from tests.controlplane.cluster import Cluster
from tests.support.server import Running, World, running_in_thread
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import parse
from webhook.pipeline import ClusterView as View
from webhook.placement.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Webhook:
    """The running webhook; `world` has its records, and can be given another policy or view."""

    world: World
    server: Running
    ca_pem: str

    def look_at(self, cluster: Cluster, resources: str = "nodes,pods,namespaces") -> None:
        """Give the webhook the view that a cluster file of this moment gives."""
        printed = cluster.kubectl("get", resources, "--all-namespaces", "--output=json").stdout
        self.world.cluster = View(snapshot_from_documents(parse(printed, "cluster")), Scheduler())


@pytest.fixture
def webhook(cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    """Registered for the pods of every namespace, fail closed."""
    world = World(clock=time.monotonic)
    with running_in_thread(world, tmp_path) as server:
        ca_pem = (tmp_path / "ca.crt").read_text()
        cluster.register_webhook(server.url, ca_pem)
        yield Webhook(world, server, ca_pem)


@contextmanager
def registered_as_shipped(cluster: Cluster, folder: Path) -> Iterator[Webhook]:
    """Register the webhook as deploy/ does, but fail closed, so that a test notices a failed call."""
    world = World(clock=time.monotonic)
    with running_in_thread(world, folder) as server:
        ca = (folder / "ca.crt").read_bytes()
        configuration = with_ca_bundle(manifest(Target(url=server.url)), ca)
        for webhook in configuration["webhooks"]:
            webhook["failurePolicy"] = "Fail"
        cluster.client.create(configuration)
        cluster.settle_webhooks()
        yield Webhook(world, server, ca.decode())


@pytest.fixture
def unreachable_webhook() -> Iterator[str]:
    """The URL of a webhook that is down: a reserved port without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{taken.getsockname()[1]}/mutate"
