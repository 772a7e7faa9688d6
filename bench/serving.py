"""Processes of `serve`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson

from certs.inspection import Artifacts
from certs.pki import KeyPair, issue_server
from certs.store import directory
from tests.controlplane.polling import wait_for
from tests.support.service import Backend

_LONGEST_START_SECONDS = 60.0


def issued(ca: KeyPair) -> KeyPair:
    """Return a new certificate for servers on loopback."""
    return issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))


def write_pair(folder: Path, pair: KeyPair) -> None:
    """Write tls.crt and tls.key, each by renaming a new file."""
    directory.write(folder, Artifacts(certificate=pair.certificate, key=pair.key))


def start_program(log: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start `placement-webhook` with these arguments; it appends its log to the file."""
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, "-P", "-m", "webhook", *arguments], stderr=file)


def start_server(folder: Path, tls_folder: Path, *flags: str) -> tuple["subprocess.Popen[bytes]", Backend]:
    """Start `serve` with these flags; return its process and its ports. Log and audit log are in `folder`."""
    log = folder / "webhook.log"
    began = log.stat().st_size if log.exists() else 0
    arguments = [f"--tls-dir={tls_folder}", f"--audit={folder / 'audit.jsonl'}", "--log-format=json"]
    arguments += ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", *flags]
    process = start_program(log, "serve", *arguments)
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
