"""The worker thread for costly reviews."""

import time
from dataclasses import dataclass
from functools import partial

import pytest
from structlog.testing import capture_logs

from tests.serving.scheduling.site import POLICY, Site, large, run
from tests.support.scorers import ScorerOfNoNodes
from tests.support.servers.server import arrival
from webhook.placement.scheduler import Placement
from webhook.serving.decisions.deciders import WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.scheduling.dispatcher import Dispatcher


def test_the_worker_gives_way_while_small_reviews_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    rested: list[float] = []
    monkeypatch.setattr(time, "sleep", rested.append)

    async def story(site: Site) -> None:
        made = partial(site.dispatcher._work_budget, arrival(), policies=POLICY)
        of_worker, of_loop = (made(seconds) for seconds in (None, 0.01))
        of_worker()
        assert rested == []
        site.dispatcher._is_busy = True
        of_loop()
        assert rested == []
        of_worker()
        assert rested == [0.001]

    run(story)


def test_an_exception_in_the_worker_is_an_error_of_the_admission() -> None:
    @dataclass
    class Broken(ScorerOfNoNodes):
        def answer(self, *_: object) -> Placement:
            raise ZeroDivisionError("out of order")

    async def story(site: Site) -> None:
        dispatcher = Dispatcher(
            site.world.admissions().admissions,
            lambda: site.world.policy,
            lambda: site.world.cluster,
            DecisionCache(),
            WorkerDecider(lambda _: Broken()),
            site.world.clock,
        )
        for _time in range(2):
            answer = await dispatcher.answer(large(), arrival())
            assert answer.status == 500
        dispatcher.close()

    # A traceback with the variables of each frame takes seconds to print.
    with capture_logs() as logs:
        world = run(story)
    assert [record.outcome for record in world.records] == ["Error", "Error"]
    assert len([each for each in logs if each.get("exc_info")]) == 2
