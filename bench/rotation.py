"""`make rotate-under-load`: pods created on a real API server while the certs controller rotates certificates and CA.

At first `certs register` makes the installation. The controller starts under load and takes it over, which is the first
rotation of the CA.

The webhook has `failurePolicy: Fail`, so a call that fails is a pod that is not created. Two replicas serve behind one
address. Each has a copy of the Secret that is written as a kubelet writes a mounted one, the second much later than
the first. Another client opens new connections all the time and trusts what the `caBundle` has at that moment: the API
server opens few, because it keeps its connections.
"""

import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any

import click
import orjson

from bench.forwarder import forwarding
from bench.mounted_secret import POLL_SECONDS, mounted, wait
from certs import pem, registration
from certs.register import Probing, Registration, register
from certs.registration import Target
from certs.rotation.secret import artifacts_in, request_patch
from certs.rotation.state import Request, Ring, read_ring
from certs.store.cluster import connect
from tests.controlplane.binaries import find_or_build
from tests.controlplane.client import ApiError, NotFound
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.webhooks import ADMISSION
from tests.support.builders import make_pod

_TRUST_SECONDS = 1
_PROPAGATION_SECONDS = 3
# The kubelets of the replicas write a changed Secret after these times; the server reads it within its poll interval.
_KUBELET_SECONDS = (0.0, 1.0)
# The pause of each client once it has created its share.
_SLOW_SECONDS = 1.0
_DOMAIN = "maip.mxsf.io"


@dataclass(slots=True)
class Outcome:
    """The result: `failures` are the errors of pods, `broken_handshakes` those of the client beside."""

    seconds: float = 0.0
    latencies_seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    not_injected: int = 0
    rotations: list[str] = field(default_factory=list)
    handshakes: int = 0
    certificates_seen: set[bytes] = field(default_factory=set)
    broken_handshakes: list[str] = field(default_factory=list)

    @property
    def created(self) -> int:
        """The pods that were created."""
        return len(self.latencies_seconds)


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of an installation in a cluster, and the address of its replicas."""

    cluster: Cluster
    target: Target
    port: int
    log: Path

    def secret(self) -> dict[str, Any] | None:
        """Return the Secret, if there is one."""
        with suppress(NotFound):
            return self.cluster.client.get("Secret", self.target.secret, self.target.namespace)
        return None

    def ring(self) -> Ring:
        """Return what the Secret has."""
        return read_ring(artifacts_in(self.secret()), datetime.now(UTC))

    def bundle(self) -> bytes:
        """Return the caBundle."""
        name = self.target.configuration
        found = self.cluster.client.get("MutatingWebhookConfiguration", name, api_version=ADMISSION)
        return registration.ca_bundles(found)[0]

    def request(self, rotation: Request) -> None:
        """Request a rotation, as `certs rotate` does."""
        secret = self.secret() or {}
        self.cluster.client.patch(
            "Secret", self.target.secret, request_patch(secret, rotation), namespace=self.target.namespace
        )

    def is_rotated(self, rotation: Request, before: Ring) -> bool:
        """Return whether the rotation is complete: a new certificate and, of the CA, one that alone is trusted."""
        ring = self.ring()
        if ring.issuer is None or ring.pair.server == before.pair.server:
            return False
        trusted = set(pem.readable_certificates(self.bundle()))
        return rotation is Request.SERVING or (ring.signer != before.signer and trusted == {ring.signer})


@contextmanager
def installed(cluster: Cluster, folder: Path) -> Iterator[Installation]:
    """Two replicas behind one address, as `certs register` has made them known."""
    with ExitStack() as stack:
        folders = [folder / f"replica-{number}" for number in range(len(_KUBELET_SECONDS))]
        ports: list[int] = []
        port = stack.enter_context(forwarding(ports))
        target = Target(cluster.namespace, configuration="placement-webhook", url=f"https://127.0.0.1:{port}/mutate")
        installation = Installation(cluster, target, port, folder / "controller.log")
        cluster.register_webhook(str(target.url), "")
        registering = connect(kubeconfig=cluster.control_plane.kubeconfig)
        for _ in register(registering, Registration(target, probing=Probing(skip=True)), datetime.now(UTC)):
            pass
        for each, seconds in zip(folders, _KUBELET_SECONDS, strict=True):
            stack.enter_context(mounted(installation.secret, each, seconds))
        ports.extend(stack.enter_context(_replica(each)) for each in folders)
        cluster.settle_webhooks()
        yield installation


def _controller_flags(installation: Installation) -> list[str]:
    target = installation.target
    return [
        "certs",
        "controller",
        f"--kubeconfig={installation.cluster.control_plane.kubeconfig}",
        f"--namespace={target.namespace}",
        f"--configuration={target.configuration}",
        f"--url={target.url}",
        f"--trust-seconds={_TRUST_SECONDS}",
        f"--propagation-seconds={_PROPAGATION_SECONDS}",
        "--admin-listen=127.0.0.1:0",
        "--log-format=json",
    ]


@contextmanager
def _program(log_file: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `placement-webhook` with these arguments until the block ends."""
    with log_file.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "webhook", *arguments], stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            if code := process.wait():
                message = f"placement-webhook {arguments[0]} ended with {code}; see {log_file}"
                raise click.ClickException(message)


@contextmanager
def _replica(folder: Path) -> Iterator[int]:
    """Serve the mounted Secret; yield the port."""
    wait((folder / "tls.crt").exists, "the mounted Secret")
    flags = {"tls-dir": folder, "audit": folder / "audit.jsonl", "listen": "127.0.0.1:0", "admin-listen": "127.0.0.1:0"}
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    arguments += [f"--certificate-poll-seconds={POLL_SECONDS}", "--no-cluster", "--log-format=json"]
    log = folder / "webhook.log"
    with _program(log, "serve", *arguments) as process:

        def first_line() -> bool:
            if process.poll() is not None:
                raise click.ClickException(f"the webhook ended at its start: {log.read_text()}")
            return b"\n" in log.read_bytes()

        wait(first_line, "the webhook")
        yield int(orjson.loads(log.read_bytes().splitlines()[0])["webhook"].rpartition(":")[2])


def rotated_under_load(
    installation: Installation, creations: int, clients: int, rotations: tuple[Request, ...]
) -> Outcome:
    """Create so many pods by so many clients at a time, then some at a slower pace until all rotations are complete."""
    outcome, ended, rotated = Outcome(), threading.Event(), threading.Event()
    shaking = threading.Thread(target=_shake_hands, args=(installation, outcome, ended), name="handshakes")
    rotating = threading.Thread(target=_rotate, args=(installation, outcome, rotations, rotated), name="rotations")
    numbers, began = count(), time.monotonic()
    for thread in (shaking, rotating):
        thread.start()

    def create_until_done(_: int) -> None:
        for number in numbers:
            if number >= creations and rotated.is_set():
                return
            if number >= creations:
                time.sleep(_SLOW_SECONDS)
            _create(installation.cluster, outcome, number)

    try:
        with ThreadPoolExecutor(clients, thread_name_prefix="client") as creating:
            for _ in creating.map(create_until_done, range(clients)):
                pass
        outcome.seconds = time.monotonic() - began
    finally:
        ended.set()
        for thread in (rotating, shaking):
            thread.join()
    outcome.latencies_seconds.sort()
    return outcome


def _create(cluster: Cluster, outcome: Outcome, number: int) -> None:
    pod = make_pod(f"rotation-{number}").annotate(f"{_DOMAIN}/workload-type", "training").obj()
    sent = time.monotonic()
    try:
        made: dict[str, Any] = cluster.client.create(pod, namespace=cluster.namespace).object
    except ApiError as error:
        outcome.failures.append(str(error))
        return
    outcome.latencies_seconds.append(time.monotonic() - sent)
    outcome.not_injected += f"{_DOMAIN}/placement-policy" not in made["metadata"]["annotations"]


def _rotate(
    installation: Installation, outcome: Outcome, rotations: tuple[Request, ...], rotated: threading.Event
) -> None:
    """Start the controller, then request one rotation after the other; each is complete before the next."""
    try:
        before = installation.ring()
        with _program(installation.log, *_controller_flags(installation)):
            wait(partial(installation.is_rotated, Request.CA, before), "the controller's own CA")
            outcome.rotations.append("taken over")
            for rotation in rotations:
                before = installation.ring()
                installation.request(rotation)
                wait(partial(installation.is_rotated, rotation, before), f"the rotation of {rotation}")
                outcome.rotations.append(str(rotation))
    except click.ClickException as error:
        outcome.failures.append(error.message)
    finally:
        rotated.set()


def _shake_hands(installation: Installation, outcome: Outcome, ended: threading.Event) -> None:
    while not ended.wait(POLL_SECONDS):
        trust = ssl.create_default_context(cadata=installation.bundle().decode())
        try:
            with (
                socket.create_connection(("127.0.0.1", installation.port), timeout=10) as connection,
                trust.wrap_socket(connection, server_hostname="127.0.0.1") as session,
            ):
                outcome.certificates_seen.add(session.getpeercert(binary_form=True) or b"")
        except OSError as error:
            outcome.broken_handshakes.append(str(error))
        outcome.handshakes += 1


@click.command()
@click.option("--creations", type=click.IntRange(1, 20_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--rotations", type=click.IntRange(1, 50), default=8, show_default=True)
def main(creations: int, clients: int, rotations: int) -> None:
    """Create pods on a real API server while certificates and CA are rotated; exit with 1 if any failed."""
    programs = find_or_build(os.environ, lambda line: click.echo(line, err=True))
    kinds = tuple(kind for kind, _ in zip(cycle((Request.SERVING, Request.CA)), range(rotations), strict=False))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("control-plane", "tls"):
            (folder / part).mkdir()
        with ControlPlane(programs, folder / "control-plane") as control_plane:
            control_plane.stop_scheduler()
            with installed(Cluster(control_plane), folder / "tls") as installation:
                outcome = rotated_under_load(installation, creations, clients, kinds)
    failed = [*outcome.failures, *outcome.broken_handshakes]
    click.echo(
        f"{outcome.created} pods created in {outcome.seconds:.1f} s by {clients} clients, "
        f"{len(outcome.failures)} failed, {outcome.not_injected} without injection; "
        f"slowest {outcome.latencies_seconds[-1]:.3f} s, "
        f"median {outcome.latencies_seconds[outcome.created // 2] * 1000:.1f} ms\n"
        f"taken over from certs register, {outcome.rotations.count('serving')} rotations of the certificate and "
        f"{outcome.rotations.count('ca')} of the CA; {outcome.handshakes} handshakes of another client saw "
        f"{len(outcome.certificates_seen)} certificates, {len(outcome.broken_handshakes)} failed"
    )
    for failure in failed[:10]:
        click.echo(failure, err=True)
    if failed or outcome.not_injected or len(outcome.rotations) <= rotations:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
