"""Work that waits for its turn, and its timeouts."""

import asyncio

import pytest

from tests.serving.scheduling.site import Site, large, response, run
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import review_bytes
from webhook.serving.decisions.admissions import Answer
from webhook.serving.scheduling.work import OverdueError

SMALL = review_bytes(make_pod("small").annotate(TYPE, "training").obj())


def test_an_overdue_request_is_not_processed() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        overdue = site.post(large(1), deadline_seconds=1004.5, overdue_seconds=1005.0)
        await asyncio.sleep(0)
        site.world.clock.seconds += 5  # type: ignore[attr-defined] # a Clock
        site.gate.open.set()
        await slow
        with pytest.raises(OverdueError):
            await overdue
        with pytest.raises(OverdueError):
            await small_and_overdue(site)
        assert site.gate.asked == 1

    async def small_and_overdue(site: Site) -> Answer:
        return await site.post(SMALL, deadline_seconds=1004.5, overdue_seconds=1005.0)

    run(story)


def test_after_the_deadline_the_patch_is_returned_without_the_check() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        late = site.post(large(1), deadline_seconds=1004.5, overdue_seconds=1005.0)
        await asyncio.sleep(0)
        site.world.clock.seconds += 4.6  # type: ignore[attr-defined]
        site.gate.open.set()
        await slow
        assert "patch" in response(await late)

    world = run(story)
    placement = world.records[-1].placement
    assert placement is not None
    assert (placement.verdict, placement.message) == ("Unknown", "the deadline was near: not every plugin was asked")


def test_a_client_that_disconnects_when_overdue_blocks_no_other_review() -> None:
    """Both happen at the timeout of the API server: the cancelled task has not run when its review is next."""

    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        leaving = site.post(large(1), overdue_seconds=1001.0)
        await asyncio.sleep(0)
        staying = site.post(large(2))
        await asyncio.sleep(0)
        site.world.clock.seconds += 2  # type: ignore[attr-defined]
        leaving.cancel()
        # The loop does this when the worker is done, before the cancelled task runs.
        site.gate.open.set()
        site.dispatcher._running = None
        site.dispatcher._start_next()
        assert "patch" in response(await staying)
        await asyncio.wait([slow])

    run(story)
