"""A TLS server on loopback that does nothing but shake hands."""

import atexit
import contextlib
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

from certs.pki import KeyPair
from tests.controlplane.process import HeldPort
from tests.support.servers.threads import served_in_thread


def server_context(pair: KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.pem"
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
    return context


def closed_port() -> int:
    """Return a port on 127.0.0.1 without a listener, which no other process gets; `tls_server` can listen there."""
    port = HeldPort()
    atexit.register(port.close)
    return port.number


class LoopbackServer(ThreadingTCPServer):
    allow_reuse_address = allow_reuse_port = True
    daemon_threads = True


@contextlib.contextmanager
def tls_server(pair: KeyPair, port: int = 0) -> Iterator[int]:
    """A server with this certificate; its port on 127.0.0.1 (0: any free one)."""
    context = server_context(pair)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError), context.wrap_socket(self.request, server_side=True) as session:
                session.recv(1)

    with LoopbackServer(("127.0.0.1", port), Handler) as server, served_in_thread(server):
        yield server.server_address[1]
