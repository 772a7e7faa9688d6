"""The end of the time that an answer may take, asked between the steps of whatever a user can make long."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Expired = Callable[[], bool]


class DeadlineNearError(Exception):
    """Ends a question that takes too long."""


def never() -> bool:
    """Say that there is no deadline."""
    return False


def in_time(items: Iterable[T], expired: Expired) -> Iterator[T]:
    """`items`, one after the other, as long as `expired()` does not hold.

    A pod can have thousands of terms, each of which costs as much as the cluster is large.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    for item in items:
        if expired():
            raise DeadlineNearError
        yield item
