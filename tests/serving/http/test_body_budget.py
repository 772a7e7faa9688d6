"""The bytes in flight are bounded; requests that exceed the budget wait in the order of their arrival."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from webhook.serving.http.body_budget import BodyBudget, BodyBudgetExceededError


def run(story: Callable[[BodyBudget], Awaitable[None]], most_bytes: int = 100) -> None:
    async def begin() -> None:
        async with asyncio.timeout(20):
            await story(BodyBudget(most_bytes))

    asyncio.run(begin())


async def started(*waiting: Awaitable[None]) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.ensure_future(each) for each in waiting]
    await asyncio.sleep(0)
    return tasks


async def fits(budget: BodyBudget, size_bytes: int) -> bool:
    try:
        await budget.reserve(size_bytes, 0)
    except BodyBudgetExceededError:
        return False
    budget.release(size_bytes)
    return True


def test_a_single_request_of_any_size_fits() -> None:
    async def story(budget: BodyBudget) -> None:
        assert await fits(budget, 1000)
        await budget.reserve(1000, 0)
        assert not await fits(budget, 1)
        budget.release(1000)
        assert await fits(budget, 1)

    run(story)


def test_requests_are_served_in_order_even_if_a_later_one_would_fit() -> None:
    async def story(budget: BodyBudget) -> None:
        await budget.reserve(60, 0)
        large, small = await started(budget.reserve(90, 10), budget.reserve(10, 10))
        assert not await fits(budget, 10)
        assert not small.done()
        budget.release(60)
        await asyncio.gather(large, small)
        assert not await fits(budget, 1)

    run(story)


def test_a_timeout_states_the_reserved_bytes_and_blocks_no_other_request() -> None:
    async def story(budget: BodyBudget) -> None:
        await budget.reserve(60, 0)
        (next_one,) = await started(budget.reserve(40, 10))
        await next_one
        with pytest.raises(
            BodyBudgetExceededError, match=r"^100 bytes of requests are in flight, 50 more are over 100$"
        ):
            await budget.reserve(50, 0.01)
        budget.release(60)
        budget.release(40)
        assert await fits(budget, 100)

    run(story)


def test_a_cancelled_wait_reserves_nothing() -> None:
    async def story(budget: BodyBudget) -> None:
        await budget.reserve(100, 0)
        leaving, staying = await started(budget.reserve(50, 10), budget.reserve(50, 10))
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        budget.release(100)
        await staying
        budget.release(50)
        assert await fits(budget, 100)

    run(story)


def test_a_wait_cancelled_as_it_succeeds_releases_its_bytes() -> None:
    async def story(budget: BodyBudget) -> None:
        await budget.reserve(100, 0)
        (leaving,) = await started(budget.reserve(50, 10))
        budget.release(100)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert await fits(budget, 100)

    run(story)


def test_requests_behind_a_cancelled_one_are_served() -> None:
    async def story(budget: BodyBudget) -> None:
        await budget.reserve(60, 0)
        large, small = await started(budget.reserve(90, 10), budget.reserve(10, 10))
        large.cancel()
        await small
        with pytest.raises(asyncio.CancelledError):
            await large

    run(story)
