"""The webhook, served over TLS and registered in the control plane as an installation registers it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from certs.registration import Target, manifest, with_ca_bundle
from tests.controlplane.cluster import Cluster
from tests.support.servers.server import Running, World, running_in_thread
from webhook.admission.cluster_view import ClusterView as View
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document, parse
from webhook.placement.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Webhook:
    """The running webhook; `world` has its records, and can be given another policy or view."""

    world: World
    server: Running
    ca_pem: str

    def look_at(self, cluster: Cluster, others: str = "") -> None:
        """Give the webhook the view that a cluster file of this moment gives: nodes, pods, namespaces and `others`.

        `others` are resources as kubectl names them.
        """
        view = [
            Document("cluster", each) for kind in ("Node", "Pod", "Namespace") for each in cluster.client.list(kind)
        ]
        if others:
            printed = cluster.kubectl("get", others, "--all-namespaces", "--output=json").stdout
            view += parse(printed, "cluster")
        self.world.cluster = View(snapshot_from_documents(view), Scheduler())


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
