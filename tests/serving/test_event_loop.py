"""A connection that fails closes its descriptor once: the number can be that of another file by then."""

import asyncio
import os
import socket
import ssl
import struct
from pathlib import Path

import pytest
import uvloop

from webhook.serving.event_loop import event_loop

# Closing resets the connection.
_RESETS = struct.pack("ii", 1, 0)


async def connect_and_reuse(path: Path) -> int:
    """Connect over a socket that is reset, open the file, close the socket; return the descriptor of the file."""
    loop, given = asyncio.get_running_loop(), socket.socket()
    given.setblocking(False)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        await loop.sock_connect(given, listening.getsockname())
        peer, _ = listening.accept()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
        peer.close()
    number, trust = given.fileno(), ssl.create_default_context()
    with pytest.raises(ConnectionResetError):
        await loop.create_connection(asyncio.Protocol, sock=given, ssl=trust, server_hostname="localhost")
    opened = [os.open(path, os.O_WRONLY | os.O_CREAT) for _ in range(10)]
    assert number in opened
    given.close()
    for each in opened:
        if each != number:
            os.close(each)
    return number


def test_a_connection_that_is_reset_closes_no_other_file(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        descriptor = runner.run(connect_and_reuse(tmp_path / "audit.jsonl"))
        assert isinstance(runner.get_loop(), uvloop.Loop)
    assert os.write(descriptor, b"record\n") == 7
    os.close(descriptor)
