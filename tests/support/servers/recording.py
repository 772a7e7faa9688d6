"""A webhook on loopback that admits everything, changed by one patch, and remembers what it was asked about."""

import base64
import contextlib
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from certs.pki import KeyPair
from tests.support.servers.loopback import server_context
from tests.support.servers.threads import LocalServer, served_in_thread


@dataclass
class Recording:
    """The requests of the AdmissionReviews that came, in their order."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)

    def pods(self) -> list[str]:
        """Return the names of the pods asked about, or what their names begin with."""
        metadata = [request["object"]["metadata"] for request in self.requests]
        return [each.get("name") or each["generateName"] for each in metadata]


@contextlib.contextmanager
def recording_webhook(pair: KeyPair, *operations: dict[str, Any]) -> Iterator[Recording]:
    """It serves TLS with `pair` until the block ends; `operations` are the JSON patch of each object."""
    patch = {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            recording.requests.append(review["request"])
            review["response"] = {"uid": review.pop("request")["uid"], "allowed": True, **(patch if operations else {})}
            answer = json.dumps(review).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with TlsServer(("127.0.0.1", 0), Handler) as server:
        server.context = server_context(pair)
        recording = Recording(f"https://127.0.0.1:{server.server_port}/mutate")
        with served_in_thread(server):
            yield recording


class TlsServer(LocalServer):
    """Shakes hands in the connection's own thread."""

    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(OSError):
            super().process_request_thread(self.context.wrap_socket(request, server_side=True), client_address)
