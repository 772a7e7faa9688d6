"""The deadline of a response, checked between the steps over user-controlled lists."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Expired = Callable[[], bool]
"""Returns true once the deadline has passed. Functions and objects that get one raise DeadlineNearError then."""


class DeadlineNearError(Exception):
    """Ends an evaluation that takes too long. Its text becomes the message of the verdict Unknown."""

    def __init__(self, text: str = "the deadline was near: not every plugin was asked") -> None:
        super().__init__(text)


class BudgetSpentError(DeadlineNearError):
    """Ends an evaluation that exceeds its work budget. Do not retry it, because a retry costs as much again."""

    def __init__(self, budget_milliseconds: int) -> None:
        super().__init__(f"the work budget of {budget_milliseconds} ms is spent: not every plugin was asked")


def never() -> bool:
    """Return false: there is no deadline."""
    return False


def in_time(items: Iterable[T], expired: Expired) -> Iterator[T]:
    """Yield `items` until `expired()` returns true.

    A pod can have thousands of terms, and the cost of each grows with the cluster. `expired()` may raise another
    error instead.
    """
    for item in items:
        if expired():
            raise DeadlineNearError
        yield item
