"""How the server is run: what flags and environment set, and nothing of the policy."""

import re
from dataclasses import dataclass
from pathlib import Path

import durationpy

# The library also takes a sign, weeks and years, and skips what it cannot read between two parts: "1s, 2s" is 3 s.
_GO_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:h|ms|us|µs|ns|m|s))+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of `serve`.

    `max_body_bytes` bounds an AdmissionReview: etcd holds objects of 1.5 MiB, and the API server takes requests of 3.
    `max_bytes_in_flight` bounds the large bodies (over 32 KiB) that are being read and answered, `max_connections` the
    connections to the webhook's port and `max_connections_per_address` those of one address: anybody who reaches the
    port may send, and memory is bounded, too. An API server opens one connection for each pod that it admits at a
    time.
    `read_timeout_seconds` is how long a body may take, and the head of a connection's first request.
    `certificate_poll_seconds` is how often the certificate's files are looked at.
    `shutdown_delay_seconds` is how long a stopping server goes on to serve while load balancers learn that it is not
    ready; `grace_seconds` how long it then waits for what is in flight.
    One answer in `answers_per_connection` closes its connection: the API server keeps its connections for ever, so that
    a replica added later would get no calls.
    """

    tls_dir: Path
    listen: Address = Address("0.0.0.0", 8443)  # noqa: S104 - a server of a cluster listens on its pod's address
    admin_listen: Address = Address("0.0.0.0", 8080)  # noqa: S104
    max_body_bytes: int = 4 * 1024 * 1024
    max_bytes_in_flight: int = 16 * 1024 * 1024
    max_connections: int = 512
    max_connections_per_address: int = 256
    read_timeout_seconds: float = 10.0
    certificate_poll_seconds: float = 5.0
    shutdown_delay_seconds: float = 0.0
    grace_seconds: float = 20.0
    answers_per_connection: int = 1000
    replica: str = ""


def parse_address(text: str) -> Address:
    """The address in `HOST:PORT`, `:PORT` (every interface) or `[IPv6]:PORT`.

    Raises:
        ValueError: it has no port, or one outside 0 to 65535 (0: any free one).
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and len(port) < 10) or int(port) > 65535:
        raise ValueError("must be HOST:PORT, with a port from 0 to 65535")
    return Address(host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port))  # noqa: S104


def parse_go_duration(text: str) -> float | None:
    """The seconds in a duration as Go prints it (`10s`, `1m30s`, `500ms`); None where it is none.

    Source: the API server's `?timeout=`, k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go
    """
    if not _GO_DURATION.fullmatch(text):
        return None
    try:
        return durationpy.from_str(text).total_seconds()
    except durationpy.DurationError:  # millions of years, where Go has an error, too
        return None
