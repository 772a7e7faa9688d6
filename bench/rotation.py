"""`make rotate-under-load`: pods created on a real API server while the certs controller rotates certificates and CA.

At first `certs register` makes the installation. The controller starts under load and takes it over, which is the first
rotation of the CA.

The webhook has `failurePolicy: Fail`, so a call that fails is a pod that is not created. Two replicas serve behind one
address. Each has a copy of the Secret that is written as a kubelet writes a mounted one, the second much later than
the first. Another client opens new connections all the time and trusts what the `caBundle` has at that moment: the API
server opens few, because it keeps its connections.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from bench.running.handshakes import Handshakes, shaking_hands
from bench.running.mounted_secret import POLL_SECONDS, mounted
from bench.running.pod_clients import Creations, Load
from bench.running.real_cluster import control_plane_and_folder
from certs import pem, registration
from certs.cluster.register import Registration
from certs.inspection import KeyMaterial, read_key_material
from certs.plan import Request
from certs.registration import Target
from certs.secret import artifacts_in, request_patch
from tests.controlplane.client import ApiError, NotFound
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import ADMISSION
from tests.support.servers.processes import ended, start_program, start_server
from tests.support.servers.service import Backend, service
from tests.support.tls.registering import register_in

_TRUST_SECONDS = 1
_PROPAGATION_SECONDS = 3
# The kubelets of the replicas write a changed Secret after these times; the server reads it within its poll interval.
_KUBELET_SECONDS = (0.0, 1.0)
# The pause of each client once it has created its share.
_SLOW_SECONDS = 1.0
_LONGEST_ROTATION_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The pods that were created, the handshakes of the client beside, and the rotations that are complete."""

    pods: Creations
    handshakes: Handshakes
    rotations: list[str]


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of an installation in a cluster, and the address of its replicas.

    Its waits take `pace` times as long as usual here.
    """

    cluster: Cluster
    target: Target
    port: int
    log: Path
    pace: float = 1.0

    def secret(self) -> dict[str, Any] | None:
        """Return the Secret, if there is one."""
        with suppress(NotFound):
            return self.cluster.client.get("Secret", self.target.secret, self.target.namespace)
        return None

    def key_material(self) -> KeyMaterial:
        """Return what the Secret has."""
        return read_key_material(artifacts_in(self.secret()), datetime.now(UTC))

    def bundle(self) -> bytes:
        """Return the caBundle."""
        name = self.target.configuration
        found = self.cluster.client.get("MutatingWebhookConfiguration", name, api_version=ADMISSION)
        return registration.ca_bundles(found)[0]

    def request(self, rotation: Request) -> None:
        """Request a rotation, as `certs rotate` does: again if the controller has changed the Secret meanwhile."""

        def is_requested() -> bool:
            target, patch = self.target, request_patch(self.secret() or {}, rotation)
            try:
                self.cluster.client.patch("Secret", target.secret, patch, namespace=target.namespace)
            except ApiError as error:
                if error.code != 409:
                    raise
                return False
            return True

        wait_for(is_requested, f"the request of a rotation of {rotation}")

    def rotated(self, rotation: Request, before: KeyMaterial) -> x509.Certificate | None:
        """Return the new certificate once the rotation is complete: of the CA, once the new one alone is trusted."""
        keys = self.key_material()
        if keys.issuer is None or keys.pair.server == before.pair.server:
            return None
        trusted = set(pem.readable_certificates(self.bundle()))
        is_complete = rotation is Request.SERVING or (keys.signer != before.signer and trusted == {keys.signer})
        return keys.pair.server if is_complete else None


@contextmanager
def installed(cluster: Cluster, folder: Path, pace: float = 1.0) -> Iterator[Installation]:
    """Two replicas behind one address, as `certs register` has made them known."""
    with ExitStack() as stack:
        folders = [folder / f"replica-{number}" for number in range(len(_KUBELET_SECONDS))]
        address = stack.enter_context(service())
        port = address.port
        target = Target(cluster.namespace, configuration="placement-webhook", url=f"https://127.0.0.1:{port}/mutate")
        installation = Installation(cluster, target, port, folder / "controller.log", pace)
        cluster.register_webhook(str(target.url), "")
        register_in(cluster.control_plane.kubeconfig, Registration(target, skip_probe=True))
        for each, seconds in zip(folders, _KUBELET_SECONDS, strict=True):
            stack.enter_context(mounted(installation.secret, each, pace * seconds))
        address.backends.extend(stack.enter_context(_replica(each)) for each in folders)
        wait_for(lambda: address.ready == len(folders), "ready replicas")
        cluster.settle_webhooks()
        yield installation


def controller_flags(installation: Installation) -> list[str]:
    """Return the arguments of a certs controller whose rotations take some seconds."""
    target = installation.target
    return [
        "certs",
        "controller",
        f"--kubeconfig={installation.cluster.control_plane.kubeconfig}",
        f"--namespace={target.namespace}",
        f"--configuration={target.configuration}",
        f"--url={target.url}",
        f"--trust-seconds={installation.pace * _TRUST_SECONDS}",
        f"--propagation-seconds={installation.pace * _PROPAGATION_SECONDS}",
        "--admin-listen=127.0.0.1:0",
        "--log-format=json",
    ]


@contextmanager
def _replica(folder: Path) -> Iterator[Backend]:
    """Serve the mounted Secret; yield the ports."""
    wait_for((folder / "tls.crt").exists, "the mounted Secret")
    process, backend = start_server(folder, folder, "--no-cluster")
    with ended(process, folder / "webhook.log"):
        yield backend


def rotated_under_load(
    installation: Installation, creations: int, clients: int, rotations: tuple[Request, ...]
) -> Outcome:
    """Create so many pods by so many clients at a time, then some at a slower pace until all rotations are complete."""
    began, load = time.monotonic(), Load(installation.cluster, clients)
    with (
        shaking_hands(installation.port, installation.bundle, pause_seconds=POLL_SECONDS) as handshakes,
        load,
        ThreadPoolExecutor(1, thread_name_prefix="rotations") as rotating,
    ):
        rotated = rotating.submit(_rotate, installation, rotations, handshakes)
        load.wait_sent(creations)
        load.pause_seconds = _SLOW_SECONDS
        complete = rotated.result()
    return Outcome(Creations(load.made, load.failures, time.monotonic() - began), handshakes, complete)


def _rotate(installation: Installation, rotations: tuple[Request, ...], handshakes: Handshakes) -> list[str]:
    """Start the controller, then request one rotation after the other.

    Each is complete, and its certificate was served to the other client, before the next.
    """

    def wait_rotated(rotation: Request, before: KeyMaterial, what: str) -> None:
        def is_served() -> bool:
            made = installation.rotated(rotation, before)
            return made is not None and made.public_bytes(Encoding.DER) in handshakes.certificates_seen

        wait_for(is_served, what, deadline_seconds=_LONGEST_ROTATION_SECONDS)

    before, complete = installation.key_material(), ["taken over"]
    with ended(start_program(installation.log, *controller_flags(installation)), installation.log):
        wait_rotated(Request.CA, before, "the controller's own CA")
        for rotation in rotations:
            before = installation.key_material()
            installation.request(rotation)
            wait_rotated(rotation, before, f"the rotation of {rotation}")
            complete.append(str(rotation))
    return complete


@click.command()
@click.option("--creations", type=click.IntRange(1, 20_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--rotations", type=click.IntRange(1, 50), default=8, show_default=True)
def main(creations: int, clients: int, rotations: int) -> None:
    """Create pods on a real API server while certificates and CA are rotated; exit with 1 if any failed."""
    kinds = tuple(islice(cycle((Request.SERVING, Request.CA)), rotations))
    with control_plane_and_folder() as (control_plane, folder):
        (folder / "webhook").mkdir()
        control_plane.stop_scheduler()
        with installed(Cluster(control_plane), folder / "webhook") as installation:
            outcome = rotated_under_load(installation, creations, clients, kinds)
    outcome.pods.print(clients)
    outcome.handshakes.print()
    click.echo(
        f"taken over from certs register, {outcome.rotations.count('serving')} rotations of the certificate and "
        f"{outcome.rotations.count('ca')} of the CA"
    )
    if outcome.pods.failures or outcome.pods.faults or outcome.handshakes.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
