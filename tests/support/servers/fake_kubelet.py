"""The part of a kubelet that serves logs of containers, for a real API server that proxies to it."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from certs.pki import issue_ca, issue_server
from tests.support.servers.threads import LocalServer, served_in_thread


@dataclass(slots=True)
class Kubelet:
    """Logs by pod, and whether they are those before a restart; the queries that were asked.

    Source: k8s.io/kubernetes/pkg/kubelet/server/server.go, getContainerLogs
    """

    port: int = 0
    logs: dict[tuple[str, bool], bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def answer(self, path: str) -> bytes | None:
        """Return the log at `/containerLogs/NAMESPACE/POD/CONTAINER?…`."""
        url = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        pod = url.path.split("/")[3]
        self.asked.append((pod, query))
        return self.logs.get((pod, query.get("previous") == "true"))


class _Handler(BaseHTTPRequestHandler):
    kubelet: Kubelet

    def handle(self) -> None:
        # A reader can leave before the end.
        with suppress(OSError):
            super().handle()

    def do_GET(self) -> None:
        found = self.kubelet.answer(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"there is no such log" if found is None else found)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving_logs(folder: Path) -> Iterator[Kubelet]:
    """A kubelet on a free port of loopback. Its certificate is of no CA that the API server checks."""
    kubelet, now = Kubelet(), datetime.now(UTC)
    pair = issue_server(issue_ca(now=now), dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=now)
    (folder / "kubelet.crt").write_bytes(pair.certificate)
    (folder / "kubelet.key").write_bytes(pair.key)

    handler = type("Handler", (_Handler,), {"kubelet": kubelet})
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
    with LocalServer(("127.0.0.1", 0), handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        kubelet.port = server.server_address[1]
        with served_in_thread(server):
            yield kubelet
