"""A port is reserved for the program that listens on it later."""

import socket

import pytest

from tests.controlplane.process import HeldPort


@pytest.mark.parametrize("reuse_port", [False, True])
def test_a_server_listens_on_a_port_that_is_held(reuse_port: bool) -> None:
    with (
        HeldPort() as port,
        socket.create_server(("127.0.0.1", port.number), reuse_port=reuse_port) as server,
        socket.create_connection(("127.0.0.1", port.number)) as client,
        server.accept()[0] as accepted,
    ):
        assert accepted.getpeername() == client.getsockname()


def test_a_held_port_is_given_to_no_other_socket() -> None:
    with HeldPort() as port, socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", port.number))
