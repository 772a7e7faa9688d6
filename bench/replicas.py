"""Replicas of `serve` behind one address, and clients that create pods on a real API server while replicas stop.

The webhook is registered with `failurePolicy: Fail`, so each call that fails is a pod that is not created. The address
is `tests.support.service`: as kube-proxy, it sends new connections to ready replicas and leaves open ones alone.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import orjson

from certs.inspection import Artifacts
from certs.pki import KeyPair, issue_ca, issue_server
from certs.store import directory
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.builders import PodBuilder, make_pod
from tests.support.service import Backend, Service, service

_DOMAIN = "maip.mxsf.io"
# The names of the webhooks that `Cluster.register_webhook` and `certs register` make.
_DECISION = "/decision"
_LONGEST_START_SECONDS = 60.0


@dataclass(slots=True)
class Replica:
    """A process of `serve`, its slot, and its ports."""

    slot: int
    process: "subprocess.Popen[bytes]"
    backend: Backend

    @property
    def resident_bytes(self) -> int:
        """The resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


@dataclass(slots=True)
class Replicas:
    """Replicas by slot, behind `address`. A slot has its folder; a process that is started in it continues its log."""

    folder: Path
    ca: KeyPair
    address: Service
    flags: Sequence[str]
    running: list[Replica] = field(default_factory=list)
    _slots: int = 0

    @property
    def url(self) -> str:
        """The URL that API servers call."""
        return f"https://127.0.0.1:{self.address.port}/mutate"

    @property
    def tls_folder(self) -> Path:
        """The folder with the certificate, which all replicas share."""
        return self.folder / "tls"

    def register(self, cluster: Cluster) -> None:
        """Register the address for the pods of all namespaces, fail closed."""
        cluster.register_webhook(self.url, self.ca.certificate.decode())

    def audit_files(self) -> list[Path]:
        """The audit logs of all slots."""
        return sorted(self.folder.glob("replica-*/audit.jsonl"))

    def start(self, slot: int) -> Replica:
        """Start a process in the slot, and put it behind the address."""
        folder = self.folder / f"replica-{slot}"
        folder.mkdir(exist_ok=True)
        self._slots = max(self._slots, slot + 1)
        arguments = [f"--tls-dir={self.tls_folder}", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
        arguments += [
            f"--audit={folder / 'audit.jsonl'}",
            f"--replica=replica-{slot}",
            "--log-format=json",
            *self.flags,
        ]
        log = folder / "webhook.log"
        began = log.stat().st_size if log.exists() else 0
        with log.open("ab") as file:
            process = subprocess.Popen([sys.executable, "-P", "-m", "webhook", "serve", *arguments], stderr=file)
        backend = wait_for(
            lambda: _backend(process, log, began), f"a replica in {folder}", deadline_seconds=_LONGEST_START_SECONDS
        )
        replica = Replica(slot, process, backend)
        self.running.append(replica)
        self.address.backends.append(backend)
        return replica

    def stop(self, replica: Replica) -> int:
        """Stop a replica as the kubelet does; return its exit code. The address notices by the probe alone."""
        replica.process.send_signal(signal.SIGTERM)
        return self._ended(replica)

    def kill(self, replica: Replica) -> None:
        """End a replica by SIGKILL."""
        replica.process.kill()
        self._ended(replica)

    def _ended(self, replica: Replica) -> int:
        code = replica.process.wait()
        self.address.backends.remove(replica.backend)
        self.running.remove(replica)
        return code

    def wait_ready(self, count: int) -> None:
        """Return once so many replicas are ready for new connections."""
        wait_for(lambda: self.address.ready >= count, f"{count} ready replicas", deadline_seconds=60)

    def roll(self) -> int:
        """Replace the oldest replica as a Deployment with maxUnavailable 0 does; return its exit code."""
        oldest = self.running[0]
        self.start(self._slots)
        self.wait_ready(len(self.running))
        return self.stop(oldest)

    def crash(self) -> None:
        """Kill the oldest replica, and start another process in its slot, which continues its audit log."""
        oldest = self.running[0]
        self.kill(oldest)
        self.start(oldest.slot)
        self.wait_ready(len(self.running))


def _backend(process: "subprocess.Popen[bytes]", log: Path, began: int) -> Backend | None:
    """Return the ports in the line `serving` after `began` bytes of the log; None if it is not there yet."""
    if process.poll() is not None:
        raise AssertionError(f"serve ended at its start: {log.read_text()}")
    for line in log.read_bytes()[began:].splitlines():
        if b'"serving"' in line and line.endswith(b"}"):
            event = orjson.loads(line)
            return Backend(*(int(event[name].rpartition(":")[2]) for name in ("webhook", "admin")))
    return None


def issued(ca: KeyPair) -> KeyPair:
    """Return a new certificate for the address."""
    return issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))


@contextmanager
def replicated(folder: Path, count: int, *flags: str) -> Iterator[Replicas]:
    """Return `count` ready replicas with these flags of `serve`, their certificate and logs in `folder`."""
    ca = issue_ca(now=datetime.now(UTC))
    pair = issued(ca)
    (folder / "tls").mkdir()
    directory.write(folder / "tls", Artifacts(certificate=pair.certificate, key=pair.key))
    with service() as address:
        found = Replicas(folder, ca, address, flags)
        try:
            for slot in range(count):
                found.start(slot)
            found.wait_ready(count)
            yield found
        finally:
            for replica in list(found.running):
                replica.process.kill()
                replica.process.wait()


@dataclass(frozen=True, slots=True)
class Created:
    """A pod that was created: when its request was sent (monotonic), its latency, and the id of its audit event."""

    sent_seconds: float
    latency_seconds: float
    audit_id: str
    is_injected: bool


@dataclass(slots=True)
class Load:
    """Clients that create pods without pause. `made` and `failures` grow while they run; a client deletes its pods."""

    cluster: Cluster
    clients: int
    pause_seconds: float = 0.0
    deletes: bool = False
    template: PodBuilder = field(
        default_factory=lambda: make_pod("load").annotate(f"{_DOMAIN}/workload-type", "training")
    )
    made: list[Created] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        for number in range(self.clients):
            thread = threading.Thread(target=self._create_pods, args=(number,), name=f"client-{number}")
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def sent(self) -> int:
        """The requests that have an answer."""
        return len(self.made) + len(self.failures)

    def wait_sent(self, count: int, *, deadline_seconds: float = 3600.0) -> None:
        """Return once so many requests have an answer."""
        wait_for(lambda: self.sent >= count, f"{count} requests", deadline_seconds=deadline_seconds)

    def wait_more(self, count: int) -> None:
        """Return once so many more requests have an answer."""
        self.wait_sent(self.sent + count)

    def _create_pods(self, client: int) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            name = f"load-{client}-{number}"
            self._create(name)
            if self.deletes and number > 1:
                self._delete(f"load-{client}-{number - 1}")
            if self.pause_seconds:
                self._ended.wait(self.pause_seconds)

    def _create(self, name: str) -> None:
        pod = self.template.obj()
        pod["metadata"]["name"] = name
        sent = time.monotonic()
        try:
            answer = self.cluster.client.create(pod, namespace=self.cluster.namespace)
        except ApiError as error:
            self.failures.append(str(error))
            return
        annotations = answer.object["metadata"].get("annotations", {})
        injected = f"{_DOMAIN}/placement-policy" in annotations
        self.made.append(Created(sent, time.monotonic() - sent, answer.audit_id, injected))

    def _delete(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.cluster.namespace}/pods/{name}"
        try:
            self.cluster.client.request("DELETE", path, query={"gracePeriodSeconds": "0"})
        except ApiError as error:
            if error.code != 404:
                self.failures.append(str(error))


def decisions(cluster: Cluster) -> dict[str, str]:
    """Return the decision in each audit event of the API server, by the id of the event.

    A pod that is created in two rounds of admission has the decision of the last one.
    """
    found = {}
    with cluster.control_plane.audit_log.open("rb") as lines:
        for line in lines:
            event: dict[str, Any] = orjson.loads(line) if line.endswith(b"}\n") else {}
            for key, value in (event.get("annotations") or {}).items():
                if key.endswith(_DECISION):
                    found[event["auditID"]] = value
    return found


def recorded(files: Sequence[Path]) -> set[str]:
    """Return the decisions in the audit logs of replicas.

    Raises:
        orjson.JSONDecodeError: a line is not whole.
    """
    return {orjson.loads(line)["decision"] for file in files for line in file.read_bytes().splitlines()}


def verified(files: Sequence[Path]) -> "subprocess.CompletedProcess[str]":
    """Return what `audit verify` prints of the files."""
    command = [sys.executable, "-P", "-m", "webhook", "audit", "verify", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
