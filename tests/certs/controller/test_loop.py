"""Pauses after failures, and between changes that another client keeps undoing."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from certs.controller import loop
from certs.controller.admin import ControllerMetrics
from certs.controller.loop import Controller, WritePacing, backoff_seconds
from tests.certs.controller.quiet import OPTIONS, Quiet
from tests.support.servers.live import until
from webhook.runtime.settings import Address
from webhook.watch.api_errors import ApiServerError


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 0.5, 1.0), (2, 1.0, 2.0), (4, 4.0, 8.0), (9, 15.0, 30.0), (5000, 15.0, 30.0)]
)
def test_pauses_double_up_to_half_a_minute_and_are_half_random(failures: int, least: float, most: float) -> None:
    assert (backoff_seconds(failures, 0.0), backoff_seconds(failures, 1.0)) == (least, most)


def test_the_changes_of_a_rotation_are_not_slowed_down() -> None:
    pacing = WritePacing()
    for at in range(12):
        pacing.note(at)
    assert pacing.pause_seconds(12) == 0.0


@pytest.mark.parametrize("started", [0.0, 100_000.0])
def test_a_fight_is_slowed_down_to_a_change_in_three_seconds_and_forgotten_after_a_minute(started: float) -> None:
    pacing, now, pauses = WritePacing(), started, []
    for _ in range(60):
        pacing.note(now)
        pauses.append(pacing.pause_seconds(now))
        now += pauses[-1]
    assert pauses == [*([0.0] * 12), *([3.0] * 48)]
    assert pacing.pause_seconds(now + 60) == 0.0


class Unsteady(Quiet):
    """An API server whose answers about the Secret are errors where `fails` says so, and all further ones, too."""

    def __init__(self, fails: Iterator[bool]) -> None:
        super().__init__(asyncio.Event())
        self._fails = fails

    async def get(self, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        if path == OPTIONS.watched[0].path and next(self._fails, True):
            raise ApiServerError("it is away", 500)
        return await super().get(path)


def test_pauses_begin_anew_after_a_pass_that_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[int] = []

    def note(count: int, _: float) -> float:
        failures.append(count)
        return 0.0

    monkeypatch.setattr(loop, "backoff_seconds", note)

    async def run() -> None:
        stop, server = asyncio.Event(), Unsteady(iter([True, True, False, True]))
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=0)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0)))
        await until(lambda: len(failures) > 3)
        stop.set()
        await running

    asyncio.run(run())
    assert failures[:4] == [1, 2, 1, 2]


def test_an_event_during_a_pass_leads_to_another_pass() -> None:
    """The objects may have changed after they were read."""

    async def run() -> None:
        event, stop = asyncio.Event(), asyncio.Event()

        class Changing(Quiet):
            async def get(self, path: str, *_: Any, **__: Any) -> dict[str, Any]:
                if not self.reads:
                    event.set()
                    for _turn in range(20):
                        await asyncio.sleep(0)
                return await super().get(path)

        server = Changing(event)
        controller = Controller(OPTIONS, lambda: server, ControllerMetrics(), resync_seconds=3600)
        running = asyncio.create_task(controller.run(stop, Address("127.0.0.1", 0)))
        async with asyncio.timeout(20):
            while server.reads <= len(OPTIONS.watched):  # noqa: ASYNC110 - a read is no event
                await asyncio.sleep(0)
        stop.set()
        await running

    asyncio.run(run())
