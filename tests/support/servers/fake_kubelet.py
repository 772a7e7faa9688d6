"""The part of a kubelet that serves logs and commands of containers, for a real API server that proxies to it."""

import base64
import hashlib
import json
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from certs.pki import issue_ca, issue_server
from tests.support.programs.programs import forked
from tests.support.servers.threads import LocalServer, served_in_thread

_PROGRAM = "placement-webhook"
_PROTOCOL = "v4.channel.k8s.io"
_HANDSHAKE = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
_STANDARD_OUTPUT, _STANDARD_ERROR, _STATUS = 1, 2, 3
_DATA, _ERROR = 0, 1
_BINARY, _CLOSE = 0x82, 0x88


@dataclass(slots=True)
class Kubelet:
    """Logs by pod, and whether they are those before a restart; the queries that were asked, and the commands.

    Commands run on this machine: the files of all containers are its own. In the pods of `printed` they print these
    bytes instead. `lost_after` ends the connection of each command without a status after so many bytes. A command in
    the pods of `refused` is an internal error with this text. `forwarded` are the ports of this
    machine that were forwarded to.
    Source: k8s.io/kubernetes/pkg/kubelet/server/server.go, getContainerLogs and getExec
    """

    port: int = 0
    logs: dict[tuple[str, bool], bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    printed: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, bytes] = field(default_factory=dict)
    lost_after: int | None = None
    forwarded: list[int] = field(default_factory=list)

    def run(self, path: str, send: Callable[[int, bytes], None]) -> None:
        """Run the command of `/exec/NAMESPACE/POD/CONTAINER?command=…` and send what it prints by channel."""
        command = parse_qs(urlsplit(path).query)["command"]
        self.commands.append(command)
        if command[0] != _PROGRAM:
            send(_STATUS, _status(f'exec: "{command[0]}": executable file not found in $PATH'))
            return
        printed = self.printed.get(path.split("/")[3])
        done = _printing(printed) if printed is not None else _run(command)
        whole = done.stdout[: self.lost_after]
        for start in range(0, len(whole), 32 * 1024):
            send(_STANDARD_OUTPUT, whole[start : start + 32 * 1024])
        if self.lost_after is None:
            send(_STANDARD_ERROR, done.stderr)
            message = f"command terminated with exit code {done.returncode}"
            send(_STATUS, _status(message if done.returncode else None))

    def answer(self, path: str) -> bytes | None:
        """Return the log at `/containerLogs/NAMESPACE/POD/CONTAINER?…`."""
        url = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        pod = url.path.split("/")[3]
        self.asked.append((pod, query))
        return self.logs.get((pod, query.get("previous") == "true"))


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([forked(), *command[1:]], capture_output=True, timeout=60, check=False)


def _printing(content: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.CompletedProcess([], 0, content, b"")


def _status(failure: str | None) -> bytes:
    """Return the Status at the end of a command.

    Source: k8s.io/kubelet/pkg/cri/streaming/remotecommand/exec.go
    """
    outcome = {"status": "Success"} if failure is None else {"status": "Failure", "message": failure}
    return json.dumps({"metadata": {}, **outcome}).encode()


def _frame(kind: int, content: bytes) -> bytes:
    """Return an unmasked frame, as a server sends it (RFC 6455, section 5.2)."""
    size = len(content)
    length = struct.pack("!B", size) if size < 126 else struct.pack("!BH", 126, size)
    return bytes([kind]) + length + content


class _Handler(BaseHTTPRequestHandler):
    kubelet: Kubelet

    def do_GET(self) -> None:
        if self.path.startswith("/portForward/"):
            self.forward()
            return
        if self.path.startswith("/exec/"):
            refused = self.kubelet.refused.get(self.path.split("/")[3])
            self.upgrade() if refused is None else self.refuse(refused)
            return
        found = self.kubelet.answer(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"there is no such log" if found is None else found)

    def refuse(self, text: bytes) -> None:
        self.send_response(500)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def forward(self) -> None:
        """Forward what one message sends to the port of the query, on this machine, and send what comes back.

        Source: k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go
        """
        port = int(parse_qs(urlsplit(self.path).query)["port"][0])
        self.kubelet.forwarded.append(port)
        self.open_web_socket()
        for channel in (_DATA, _ERROR):
            self.send(bytes([channel]) + struct.pack("<H", port))
        request = self.received()
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(request[1:])
                while piece := connection.recv(16 * 1024):
                    self.send(bytes([_DATA]) + piece)
        except OSError as error:
            self.send(bytes([_ERROR]) + f"error forwarding port {port}: {error.strerror}".encode())
        self.wfile.write(_frame(_CLOSE, b""))
        self.close_connection = True

    def received(self) -> bytes:
        """Return the content of the next frame, which a client masks (RFC 6455, section 5.3)."""
        size = self.rfile.read(2)[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self.rfile.read(2))
        mask = self.rfile.read(4)
        return bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))

    def upgrade(self) -> None:
        self.open_web_socket()
        # An empty message says that the streams are open.
        self.wfile.write(_frame(_BINARY, bytes([_STANDARD_OUTPUT])))
        self.kubelet.run(self.path, lambda channel, data: self.send(bytes([channel]) + data))
        self.wfile.write(_frame(_CLOSE, b""))
        self.close_connection = True

    def open_web_socket(self) -> None:
        key = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + _HANDSHAKE).encode(), usedforsecurity=False)
        assert self.headers["Sec-WebSocket-Protocol"] == _PROTOCOL
        self.protocol_version = "HTTP/1.1"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(key.digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", _PROTOCOL)
        self.end_headers()

    def send(self, message: bytes) -> None:
        self.wfile.write(_frame(_BINARY, message))

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
