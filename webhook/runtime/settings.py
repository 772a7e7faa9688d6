"""Settings of the server, from flags and environment variables. The policy is separate."""

import re
from dataclasses import dataclass
from pathlib import Path

import durationpy

# durationpy also accepts a sign, weeks and years, and skips unknown text between two parts: "1s, 2s" is 3 s.
_GO_DURATION = re.compile(r"0|(?:\d+(?:\.\d*)?(?:h|ms|us|µs|ns|m|s))+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on or to connect to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of `serve`.

    `max_body_bytes` limits the size of an AdmissionReview: etcd stores objects up to 1.5 MiB, and the API server
    accepts requests up to 3 MiB. `max_bytes_in_flight` limits the large bodies (over 32 KiB) in progress.
    `max_connections` limits the connections to the webhook's port, and `max_connections_per_address` those of one
    address, because the port is open to every client that reaches it, and memory is limited. An API server opens one
    connection for each pod that it admits concurrently. `read_timeout_seconds` limits the time to read a body, and the
    head of the first request of a connection. `server_name` is the name by which API servers call, or empty if it is
    not known; the certificate must be valid for it. `certificate_poll_seconds` is the interval at which the certificate
    files are checked for changes. `policy_poll_seconds` is the same for the policy file. `shutdown_delay_seconds` is
    the time that a stopping server continues to serve, until load balancers know that it is not ready. `grace_seconds`
    is the time that it then waits for requests in progress. One response in `answers_per_connection` closes its
    connection. The API server itself never closes its connections, so without this a replica that is added later would
    get no calls. `cluster` names the view of the cluster for the log. `client_ca` is the file of the CAs of the clients
    that may call the webhook's port, or None if every client may call. `client_names` are patterns: the certificate of
    a client must have a name that matches one of them. Without patterns, any name is accepted. `admin_token_file`
    contains the bearer token of the admin port, or is None if the port needs no token; probes never need it.
    `extender_profile` is the profile with which the scheduler extender evaluates nodes, or `none` for no extender.
    """

    tls_dir: Path
    listen: Address = Address("0.0.0.0", 8443)  # noqa: S104 - a server of a cluster listens on its pod's address
    admin_listen: Address = Address("127.0.0.1", 8080)
    max_body_bytes: int = 4 * 1024 * 1024
    max_bytes_in_flight: int = 16 * 1024 * 1024
    max_connections: int = 512
    max_connections_per_address: int = 256
    read_timeout_seconds: float = 10.0
    server_name: str = ""
    certificate_poll_seconds: float = 1.0
    policy_poll_seconds: float = 1.0
    shutdown_delay_seconds: float = 0.0
    grace_seconds: float = 20.0
    answers_per_connection: int = 1000
    replica: str = ""
    cluster: str = "none"
    extender_profile: str = "none"
    client_ca: Path | None = None
    client_names: tuple[str, ...] = ()
    admin_token_file: Path | None = None


def parse_address(text: str) -> Address:
    """Return the address in `HOST:PORT`, `:PORT` (every interface) or `[IPv6]:PORT`.

    Raises:
        ValueError: there is no port, or it is outside 0 to 65535 (0: any free port).
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and len(port) < 10) or int(port) > 65535:
        raise ValueError("must be HOST:PORT, with a port from 0 to 65535")
    return Address(host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port))  # noqa: S104


def parse_go_duration(text: str) -> float | None:
    """Return the seconds in a Go duration (`10s`, `1m30s`, `500ms`), or None if `text` is not a duration.

    Source: the API server's `?timeout=`, k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go
    """
    if not _GO_DURATION.fullmatch(text):
        return None
    try:
        return durationpy.from_str(text).total_seconds()
    except durationpy.DurationError:  # millions of years; Go returns an error, too
        return None
