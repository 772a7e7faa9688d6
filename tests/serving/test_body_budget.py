"""Bytes in flight have a bound; who finds no room waits for it, in the order of coming."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from webhook.serving.body_budget import NoRoomError, Room


def run(story: Callable[[Room], Awaitable[None]], most_bytes: int = 100) -> None:
    async def begin() -> None:
        async with asyncio.timeout(20):
            await story(Room(most_bytes))

    asyncio.run(begin())


async def started(*waiting: Awaitable[None]) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.ensure_future(each) for each in waiting]
    await asyncio.sleep(0)
    return tasks


def test_a_single_one_has_room_whatever_its_size() -> None:
    async def story(room: Room) -> None:
        assert room.fits(1000)
        await room.take(1000, 0)
        assert not room.fits(1)
        room.give_back(1000)
        assert room.fits(1)

    run(story)


def test_those_who_wait_come_in_their_order_though_a_later_one_would_fit() -> None:
    async def story(room: Room) -> None:
        await room.take(60, 0)
        large, small = await started(room.take(90, 10), room.take(10, 10))
        assert not room.fits(10)
        assert not small.done()
        room.give_back(60)
        await asyncio.gather(large, small)
        assert not room.fits(1)

    run(story)


def test_who_runs_out_of_patience_is_told_how_much_is_taken_and_holds_up_nobody() -> None:
    async def story(room: Room) -> None:
        await room.take(60, 0)
        (next_one,) = await started(room.take(40, 10))
        await next_one
        with pytest.raises(NoRoomError, match=r"^100 bytes of requests are in flight, 50 more are over 100$"):
            await room.take(50, 0.01)
        room.give_back(60)
        room.give_back(40)
        assert room.fits(100)

    run(story)


def test_who_leaves_takes_no_room_with_him() -> None:
    async def story(room: Room) -> None:
        await room.take(100, 0)
        leaving, staying = await started(room.take(50, 10), room.take(50, 10))
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        room.give_back(100)
        await staying
        room.give_back(50)
        assert room.fits(100)

    run(story)


def test_who_leaves_just_as_there_is_room_gives_it_back() -> None:
    async def story(room: Room) -> None:
        await room.take(100, 0)
        (leaving,) = await started(room.take(50, 10))
        room.give_back(100)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert room.fits(100)

    run(story)


def test_those_behind_one_who_gives_up_have_what_he_waited_for() -> None:
    async def story(room: Room) -> None:
        await room.take(60, 0)
        large, small = await started(room.take(90, 10), room.take(10, 10))
        large.cancel()
        await small
        with pytest.raises(asyncio.CancelledError):
            await large

    run(story)
