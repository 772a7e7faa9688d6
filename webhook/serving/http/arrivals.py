"""Listening sockets, connection limits, and a fair queue of connections whose TLS handshake has not begun."""

import os
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

BACKLOG = 1024
"""The connections that the kernel holds before they are accepted."""

# More than these are of a flood. If they are of several addresses, the rest is closed.
_MOST_WAITING = 64
# If they are of one address, the rest waits in the kernel, but not before other addresses had the chance to be seen.
_MOST_OF_ONE_ADDRESS = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """The connection limits of one listener.

    `most` limits all connections, and `most_per_address` those of one address. `head_seconds` limits the time for TLS
    and the head of the first request, and `keepalive_seconds` the time between requests.
    """

    most: int
    most_per_address: int
    head_seconds: float
    keepalive_seconds: float


class Arrivals(Generic[T]):
    """Connections that wait for their handshake, which takes a millisecond of the event loop.

    Accepting them takes far less.

    Addresses take turns. If more than 64 connections wait, the last one of the address with the most is closed, so that
    connections of other addresses, which wait in the kernel, can be accepted. If all are of one address, none is
    closed.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Return whether further connections must wait in the kernel."""
        return self._count >= _MOST_OF_ONE_ADDRESS and len(self._waiting) == 1

    def put(self, item: T, address: str) -> T | None:
        """Add a connection of `address`. Return a connection to close if too many wait, or None."""
        self._waiting.setdefault(address, deque()).append(item)
        self._count += 1
        if self._count <= _MOST_WAITING or len(self._waiting) == 1:
            return None
        largest = max(self._waiting, key=lambda each: len(self._waiting[each]))
        return self._without_empty(largest, self._waiting[largest].pop())

    def take(self) -> tuple[T, str]:
        """Remove and return the first connection of the next address, with the address.

        Raises:
            StopIteration: no connection waits.
        """
        address = next(iter(self._waiting))
        # The address goes behind the others.
        self._waiting[address] = waiting = self._waiting.pop(address)
        return self._without_empty(address, waiting.popleft()), address

    def _without_empty(self, address: str, item: T) -> T:
        self._count -= 1
        if not self._waiting[address]:
            del self._waiting[address]
        return item


def bound_socket(family: int, where: Any) -> socket.socket:
    """Return a socket that listens at `where`, an address of this family.

    Raises:
        OSError: the address cannot be listened on.
    """
    try:
        listening = socket.create_server(where, family=family, backlog=BACKLOG)
    except OSError as error:
        # Without the address, which `create_server` adds.
        raise OSError(error.errno, os.strerror(error.errno or 0)) from error
    listening.setblocking(False)
    return listening
