"""Processes of `serve`: their certificates, their ports, and what they cost."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import orjson

from certs import directory
from certs.inspection import Artifacts
from certs.pki import KeyPair, issue_ca, issue_server
from tests.controlplane.polling import wait_for
from tests.support.servers.service import Backend

TREE = Path(__file__).parents[3]
# `placement-webhook` of a working tree, by PYTHONPATH.
PROGRAM = (sys.executable, "-P", "-m", "webhook")
_LONGEST_START_SECONDS = 120.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def issued(ca: KeyPair) -> KeyPair:
    """Return a new certificate for servers on loopback."""
    return issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))


def write_pair(folder: Path, pair: KeyPair) -> None:
    """Write tls.crt and tls.key, each by renaming a new file."""
    directory.write(folder, Artifacts(certificate=pair.certificate, key=pair.key))


def certificate(folder: Path) -> ssl.SSLContext:
    """Put a server certificate into `folder`; return the client's side that trusts it."""
    ca = issue_ca(now=datetime.now(UTC))
    (folder / "ca.crt").write_bytes(ca.certificate)
    write_pair(folder, issued(ca))
    return ssl.create_default_context(cadata=ca.certificate.decode())


def await_port(port: int, label: str) -> None:
    """Return once somebody listens there."""

    def listens() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        wait_for(listens, label, deadline_seconds=_LONGEST_START_SECONDS)
    except TimeoutError as late:
        raise click.ClickException(f"{label} did not start within {_LONGEST_START_SECONDS:g} s") from late


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, with its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def start_program(
    log: Path, *arguments: str, tree: Path = TREE, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start `placement-webhook` of a working tree with these arguments; it appends its log to the file."""
    with log.open("ab") as file:
        return subprocess.Popen(
            [*PROGRAM, *arguments], stderr=file, env={**os.environ, "PYTHONPATH": str(tree), **(environment or {})}
        )


def start_server(
    folder: Path, tls_folder: Path, *flags: str, tree: Path = TREE, name: str = ""
) -> tuple["subprocess.Popen[bytes]", Backend]:
    """Start `serve` with these flags and this `name` of the replica; return its process and its ports.

    Log and audit log are in `folder`.
    """
    log = folder / "webhook.log"
    began = log.stat().st_size if log.exists() else 0
    arguments = [f"--tls-dir={tls_folder}", f"--audit={folder / 'audit.jsonl'}"]
    arguments += ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", *flags]
    process = start_program(log, "serve", *arguments, tree=tree, environment={"POD_NAME": name})
    backend = wait_for(
        lambda: _backend(process, log, began), f"a server in {folder}", deadline_seconds=_LONGEST_START_SECONDS
    )
    return process, backend


def _backend(process: "subprocess.Popen[bytes]", log: Path, began: int) -> Backend | None:
    """Return the ports in the line `serving` after `began` bytes of the log; None if it is not there yet."""
    if process.poll() is not None:
        raise AssertionError(f"serve ended at its start: {log.read_text()}")
    for line in log.read_bytes()[began:].splitlines():
        if b'"serving"' in line and line.endswith(b"}"):
            event = orjson.loads(line)
            return Backend(*(int(event[name].rpartition(":")[2]) for name in ("webhook", "admin")))
    return None


@contextmanager
def ended(process: "subprocess.Popen[bytes]", log: Path) -> Iterator[None]:
    """Stop the process at the end of the block, as the kubelet does.

    Raises:
        AssertionError: its exit code is not 0.
    """
    try:
        yield
    finally:
        process.terminate()
        if code := process.wait():
            raise AssertionError(f"placement-webhook ended with {code}; see {log}")
