"""`make bench-renewal`: pods created on a real API server while the webhook's certificate is renewed under them.

The webhook is registered with `failurePolicy: Fail`: each call that fails is a pod that is not created. The pair
is replaced in three ways in turn: by renaming both files, in place with a moment in which certificate and key do not
match, and by a swap of the symlink that a mounted Secret has. Beside the API server, which keeps its connections, a
client opens a new one all the time.
"""

import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
import orjson

from certs.inspection import Artifacts
from certs.pki import KeyPair, issue_ca, issue_server
from certs.store import directory
from tests.controlplane.binaries import find_or_build
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.builders import make_pod

_POLL_SECONDS = 0.2
_RENEWAL_SECONDS = 30.0
_DOMAIN = "maip.mxsf.io"


@dataclass(slots=True)
class Outcome:
    """The result: `failures` are the errors of pods, `broken_handshakes` those of the client beside."""

    seconds: float = 0.0
    latencies_seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    not_injected: int = 0
    renewals_served: int = 0
    handshakes: int = 0
    broken_handshakes: list[str] = field(default_factory=list)

    @property
    def created(self) -> int:
        """The pods that were created."""
        return len(self.latencies_seconds)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A server in a process of its own, and the folder and CA of its certificates."""

    folder: Path
    ca: KeyPair
    port: int

    def served(self) -> bytes:
        """The certificate that a new connection gets.

        Raises:
            OSError: the handshake failed.
        """
        trust = ssl.create_default_context(cadata=self.ca.certificate.decode())
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection,
            trust.wrap_socket(connection, server_hostname="127.0.0.1") as session,
        ):
            return session.getpeercert(binary_form=True) or b""

    def wait_served(self, pair: KeyPair) -> bool:
        """Return whether new connections get `pair` in time."""
        wanted = ssl.PEM_cert_to_DER_cert(pair.certificate.decode())
        deadline = time.monotonic() + _RENEWAL_SECONDS
        while time.monotonic() < deadline:
            if self.served() == wanted:
                return True
            time.sleep(_POLL_SECONDS / 4)
        return False


def _issued(ca: KeyPair) -> KeyPair:
    return issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))


def _renamed(folder: Path, pair: KeyPair) -> None:
    directory.write(folder, Artifacts(certificate=pair.certificate, key=pair.key))


def _in_place(folder: Path, pair: KeyPair) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate)
    # Long enough for the server to read a certificate and a key that do not match.
    time.sleep(2 * _POLL_SECONDS)
    (folder / "tls.key").write_bytes(pair.key)


def _swapped(folder: Path, pair: KeyPair) -> None:
    made = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    _renamed(made, pair)
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
    _renamed(folder, _issued(ca))
    flags = {"tls-dir": folder, "audit": folder / "audit.jsonl", "listen": "127.0.0.1:0", "admin-listen": "127.0.0.1:0"}
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    arguments += [f"--certificate-poll-seconds={_POLL_SECONDS}", "--no-cluster", "--log-format=json", *flags_of_caller]
    with (folder / "webhook.log").open("wb") as log, (folder / "webhook.log").open("rb") as reported:
        process = subprocess.Popen([sys.executable, "-m", "webhook", "serve", *arguments], stderr=log)
        try:
            yield Webhook(folder, ca, _port(process, reported.readline))
        finally:
            process.terminate()
            process.wait()


def _port(process: "subprocess.Popen[bytes]", read_line: Callable[[], bytes]) -> int:
    """The port in the log's first line, once that is there."""
    line = b""
    while not line.endswith(b"\n"):
        if process.poll() is not None:
            raise click.ClickException(f"the webhook ended at its start: {line.decode()}")
        time.sleep(_POLL_SECONDS / 4)
        line += read_line()
    return int(orjson.loads(line)["webhook"].rpartition(":")[2])


def renewed_under_load(cluster: Cluster, webhook: Webhook, creations: int, clients: int, renewals: int) -> Outcome:
    """Create so many pods by so many clients at a time, while the certificate is renewed that often."""
    outcome, ended = Outcome(), threading.Event()
    cluster.register_webhook(f"https://127.0.0.1:{webhook.port}/mutate", webhook.ca.certificate.decode())
    shaking = threading.Thread(target=_shake_hands, args=(webhook, outcome, ended), name="handshakes")
    renewing = threading.Thread(target=_renew, args=(webhook, outcome, creations, renewals, ended), name="renewals")
    began = time.monotonic()
    for thread in (shaking, renewing):
        thread.start()
    try:
        with ThreadPoolExecutor(clients, thread_name_prefix="client") as creating:
            for _ in creating.map(lambda number: _create(cluster, outcome, number), range(creations)):
                pass
        outcome.seconds = time.monotonic() - began
        renewing.join()
    finally:
        ended.set()
        for thread in (renewing, shaking):
            thread.join()
    outcome.latencies_seconds.sort()
    return outcome


def _create(cluster: Cluster, outcome: Outcome, number: int) -> None:
    pod = make_pod(f"renewal-{number}").annotate(f"{_DOMAIN}/workload-type", "training").obj()
    sent = time.monotonic()
    try:
        made: dict[str, Any] = cluster.client.create(pod, namespace=cluster.namespace).object
    except ApiError as error:
        outcome.failures.append(str(error))
        return
    outcome.latencies_seconds.append(time.monotonic() - sent)
    outcome.not_injected += f"{_DOMAIN}/placement-policy" not in made["metadata"]["annotations"]


def _renew(webhook: Webhook, outcome: Outcome, creations: int, renewals: int, ended: threading.Event) -> None:
    """Renew each time that so many more pods are there."""
    for turn, replace in enumerate(islice(cycle((_renamed, _in_place, _swapped)), renewals), start=1):
        while outcome.created + len(outcome.failures) < creations * turn // (renewals + 1) and not ended.is_set():
            time.sleep(_POLL_SECONDS / 4)
        pair = _issued(webhook.ca)
        replace(webhook.folder, pair)
        outcome.renewals_served += webhook.wait_served(pair)


def _shake_hands(webhook: Webhook, outcome: Outcome, ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            webhook.served()
        except OSError as error:
            outcome.broken_handshakes.append(str(error))
        outcome.handshakes += 1


@click.command()
@click.option("--creations", type=click.IntRange(1, 20_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--renewals", type=click.IntRange(1, 50), default=9, show_default=True)
def main(creations: int, clients: int, renewals: int) -> None:
    """Create pods on a real API server while the webhook's certificate is renewed; exit with 1 if any failed."""
    programs = find_or_build(os.environ, lambda line: click.echo(line, err=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("control-plane", "tls"):
            (folder / part).mkdir()
        with ControlPlane(programs, folder / "control-plane") as control_plane, serving(folder / "tls") as webhook:
            control_plane.stop_scheduler()
            outcome = renewed_under_load(Cluster(control_plane), webhook, creations, clients, renewals)
    failed = [*outcome.failures, *outcome.broken_handshakes]
    click.echo(
        f"{outcome.created} of {creations} pods created in {outcome.seconds:.1f} s by {clients} clients, "
        f"{len(outcome.failures)} failed, {outcome.not_injected} without injection; "
        f"slowest {outcome.latencies_seconds[-1]:.3f} s, "
        f"median {outcome.latencies_seconds[outcome.created // 2] * 1000:.1f} ms\n"
        f"{outcome.renewals_served} of {renewals} renewals served; "
        f"{outcome.handshakes} handshakes of another client, {len(outcome.broken_handshakes)} failed"
    )
    for failure in failed[:10]:
        click.echo(failure, err=True)
    if failed or outcome.not_injected or outcome.renewals_served < renewals:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
