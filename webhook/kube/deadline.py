"""The end of the time that an answer may take, asked between the steps of whatever a user can make long."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Expired = Callable[[], bool]


class DeadlineNearError(Exception):
    """Ends a question that takes too long; its text becomes the message of the verdict Unknown."""

    def __init__(self, text: str = "the deadline was near: not every plugin was asked") -> None:
        super().__init__(text)


class BudgetSpentError(DeadlineNearError):
    """Ends a question that costs too much, however much time there is: asked again, it would cost as much again."""

    def __init__(self, budget_milliseconds: int) -> None:
        super().__init__(f"the work budget of {budget_milliseconds} ms is spent: not every plugin was asked")


def never() -> bool:
    """Say that there is no deadline."""
    return False


def in_time(items: Iterable[T], expired: Expired) -> Iterator[T]:
    """`items`, one after the other, as long as `expired()` does not hold.

    A pod can have thousands of terms, each of which costs as much as the cluster is large. `expired()` may raise
    instead, to say what else has come to its end.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    for item in items:
        if expired():
            raise DeadlineNearError
        yield item
