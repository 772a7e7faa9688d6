"""A client that opens a new TLS connection all the time, beside an API server that keeps its connections."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click


@dataclass(slots=True)
class Handshakes:
    """The handshakes so far: their number, the certificates (DER) that were served, the errors."""

    count: int = 0
    certificates_seen: set[bytes] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    def print(self) -> None:
        """Print the numbers, and to standard error the first errors."""
        click.echo(
            f"{self.count} handshakes of another client saw {len(self.certificates_seen)} certificates, "
            f"{len(self.failures)} failed"
        )
        for line in self.failures[:10]:
            click.echo(line, err=True)


def served_certificate(port: int, trusted: bytes) -> bytes:
    """Return the certificate (DER) that a new connection to a port on loopback gets; `trusted` is PEM.

    Raises:
        OSError: the handshake failed.
    """
    trust = ssl.create_default_context(cadata=trusted.decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
        trust.wrap_socket(connection, server_hostname="127.0.0.1") as session,
    ):
        return session.getpeercert(binary_form=True) or b""


@contextmanager
def shaking_hands(port: int, read_trusted: Callable[[], bytes], *, pause_seconds: float = 0.0) -> Iterator[Handshakes]:
    """Open connections until the block ends, the first before it begins. Each reads the trusted CAs anew."""
    found, begun, ended = Handshakes(), threading.Event(), threading.Event()

    def shake() -> None:
        while not ended.wait(pause_seconds):
            try:
                found.certificates_seen.add(served_certificate(port, read_trusted()))
            except OSError as error:
                found.failures.append(str(error))
            finally:
                begun.set()
            found.count += 1

    thread = threading.Thread(target=shake, name="handshakes")
    thread.start()
    try:
        # Otherwise the first certificate can be replaced before this client has seen it.
        begun.wait()
        yield found
    finally:
        ended.set()
        thread.join()
