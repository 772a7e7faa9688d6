"""`make bench-renewal`: pods created on a real API server while the webhook's certificate is renewed under them.

The webhook is registered with `failurePolicy: Fail`: each call that fails is a pod that is not created. The pair
is replaced in three ways in turn: by renaming both files, in place with a moment in which certificate and key do not
match, and by a swap of the symlink that a mounted Secret has. Beside the API server, which keeps its connections, a
client opens a new one all the time.
"""

import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import click

from bench.running.handshakes import Handshakes, shaking_hands
from bench.running.pod_clients import Creations, Load, created_while
from bench.running.real_cluster import control_plane_and_folder
from certs.pki import KeyPair, issue_ca
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.servers.processes import ended, issued, start_server, write_pair
from tests.support.servers.service import Backend
from webhook.runtime.settings import Settings

_POLL_SECONDS = Settings(Path()).certificate_poll_seconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """The pods that were created, and the handshakes of the client beside."""

    pods: Creations
    handshakes: Handshakes


@dataclass(frozen=True, slots=True)
class Webhook:
    """A server in a process of its own, the folder and CA of its certificates, and its ports."""

    folder: Path
    ca: KeyPair
    backend: Backend

    def register(self, cluster: Cluster) -> None:
        """Register the server for the pods of all namespaces, fail closed."""
        cluster.register_webhook(f"https://127.0.0.1:{self.backend.port}/mutate", self.ca.certificate.decode())

    def wait_served(self, pair: KeyPair, handshakes: Handshakes) -> None:
        """Return once a new connection of the other client gets `pair`."""
        wanted = ssl.PEM_cert_to_DER_cert(pair.certificate.decode())
        wait_for(lambda: wanted in handshakes.certificates_seen, "the renewed certificate")


def _in_place(folder: Path, pair: KeyPair) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate)
    # Long enough for the server to read a certificate and a key that do not match.
    time.sleep(2 * _POLL_SECONDS)
    (folder / "tls.key").write_bytes(pair.key)


def _swapped(folder: Path, pair: KeyPair) -> None:
    made = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    write_pair(made, pair)
    link = folder / "..data_tmp"
    link.symlink_to(made.name)
    link.replace(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        staged = folder / f"..{name}"
        staged.symlink_to(f"..data/{name}")
        staged.replace(folder / name)


@contextmanager
def serving(folder: Path, *flags_of_caller: str) -> Iterator[Webhook]:
    """A webhook without a view of the cluster, its certificates in `folder`, with more flags if there are any."""
    ca = issue_ca(now=datetime.now(UTC))
    write_pair(folder, issued(ca))
    process, backend = start_server(folder, folder, "--no-cluster", *flags_of_caller)
    with ended(process, folder / "webhook.log"):
        yield Webhook(folder, ca, backend)


def renewed_under_load(
    cluster: Cluster, webhook: Webhook, creations: int, clients: int, renewals: int, pause_seconds: float = 0.0
) -> Outcome:
    """Create at least so many pods by so many clients at a time, while the certificate is renewed that often.

    A client pauses after each pod.
    """
    webhook.register(cluster)
    ways = cycle((write_pair, _in_place, _swapped))

    def renew() -> None:
        pair = issued(webhook.ca)
        next(ways)(webhook.folder, pair)
        webhook.wait_served(pair, handshakes)

    with shaking_hands(webhook.backend.port, lambda: webhook.ca.certificate) as handshakes:
        pods = created_while(Load(cluster, clients, pause_seconds), creations, renewals, renew)
    return Outcome(pods, handshakes)


@click.command()
@click.option("--creations", type=click.IntRange(1, 20_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--renewals", type=click.IntRange(1, 50), default=9, show_default=True)
def main(creations: int, clients: int, renewals: int) -> None:
    """Create pods on a real API server while the webhook's certificate is renewed; exit with 1 if any failed."""
    with control_plane_and_folder() as (control_plane, folder):
        (folder / "webhook").mkdir()
        control_plane.stop_scheduler()
        with serving(folder / "webhook") as webhook:
            outcome = renewed_under_load(Cluster(control_plane), webhook, creations, clients, renewals)
    outcome.pods.print(clients)
    outcome.handshakes.print()
    if outcome.pods.failures or outcome.pods.faults or outcome.handshakes.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
