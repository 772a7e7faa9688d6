"""An HTTP proxy on loopback that opens the tunnels of CONNECT, as a client of HTTPS asks for."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.support.servers.threads import LocalServer, served_in_thread


@dataclass(frozen=True, slots=True)
class Tunnels:
    """The URL of the proxy, and the addresses to which it opened a tunnel."""

    url: str
    opened: list[str] = field(default_factory=list)


@contextlib.contextmanager
def tunnels() -> Iterator[Tunnels]:
    """Run the proxy until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            proxy.opened.append(self.path)
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                self.send_response(200)
                self.end_headers()
                answers = threading.Thread(target=_copy, args=(server, self.connection))
                answers.start()
                _copy(self.connection, server)
                answers.join()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with LocalServer(("127.0.0.1", 0), Handler) as server:
        proxy = Tunnels(f"http://127.0.0.1:{server.server_address[1]}")
        with served_in_thread(server):
            yield proxy


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, then tell the target so."""
    with contextlib.suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
