"""Replicas of `serve` behind one address, which replaces or kills them, and their decisions in audit logs.

The address is `tests.support.servers.service`: as kube-proxy, it sends new connections to ready replicas and leaves
open ones alone.
"""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from certs.pki import KeyPair, issue_ca
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.servers import processes
from tests.support.servers.processes import issued, start_server, write_pair
from tests.support.servers.service import Backend, Service, service
from webhook.audit.reading import rotated_files

# The names of the webhooks that `Cluster.register_webhook` and `certs register` make.
_DECISION = "/decision"


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

    def register(self, cluster: Cluster, **overrides: Any) -> None:
        """Register the address for the pods of all namespaces, fail closed; `overrides` are fields of the webhook."""
        cluster.register_webhook(self.url, self.ca.certificate.decode(), **overrides)

    def audit_files(self) -> list[Path]:
        """The audit logs of all slots."""
        return sorted(self.folder.glob("replica-*/audit.jsonl"))

    def start(self, slot: int) -> Replica:
        """Start a process in the slot, and put it behind the address."""
        folder = self.folder / f"replica-{slot}"
        folder.mkdir(exist_ok=True)
        self._slots = max(self._slots, slot + 1)
        process, backend = start_server(folder, self.tls_folder, *self.flags, name=f"replica-{slot}")
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


@contextmanager
def replicated(folder: Path, count: int, *flags: str, ca: KeyPair | None = None) -> Iterator[Replicas]:
    """Return `count` ready replicas with these flags of `serve`, their certificate and logs in `folder`.

    With `ca`, a certificate of this CA is there already.
    """
    if ca is None:
        ca = issue_ca(now=datetime.now(UTC))
        (folder / "tls").mkdir()
        write_pair(folder / "tls", issued(ca))
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


def decisions(log: Path) -> dict[str, str]:
    """Return the decision in each event of an API server's audit log, by the id of the event.

    A pod that is created in two rounds of admission has the decision of the last one.
    """
    found = {}
    # The API server puts the time into the name of a log of more than 100 MB, and begins another one.
    for file in (*sorted(log.parent.glob(f"{log.stem}-*{log.suffix}")), log):
        with file.open("rb") as lines:
            for line in lines:
                event: dict[str, Any] = orjson.loads(line) if line.endswith(b"}\n") else {}
                for key, value in (event.get("annotations") or {}).items():
                    if key.endswith(_DECISION):
                        found[event["auditID"]] = value
    return found


def recorded(files: Sequence[Path]) -> set[str]:
    """Return the decisions in the audit logs of replicas, the rotated files included.

    Raises:
        orjson.JSONDecodeError: a line is not whole.
    """
    found: set[str] = set()
    for file in files:
        for each in rotated_files(file):
            with Path(each).open("rb") as lines:
                found.update(orjson.loads(line)["decision"] for line in lines)
    return found


def verified(files: Sequence[Path]) -> "subprocess.CompletedProcess[str]":
    """Return what `audit verify` prints of the files, with those that rotation has left."""
    whole = [each for file in files for each in rotated_files(file)]
    command = [*processes.PROGRAM, "audit", "verify", *whole]
    return subprocess.run(command, capture_output=True, text=True, check=False)
