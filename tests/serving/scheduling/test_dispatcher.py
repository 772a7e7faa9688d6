"""Normal pods are answered at once while large ones wait, and a large one is dropped when its client disconnects."""

import asyncio
import threading
import time

import orjson
import pytest

from tests.serving.scheduling.site import POLICY, Site, large, response, run
from tests.support.admission import TYPE, USAGE, policy_with
from tests.support.attacks import WORST, attack_review
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.servers.server import arrival, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.audit.record import ReservedEntry
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.policy.policy_set import PolicyOrSet
from webhook.serving.connection import Arrival, Connection, Stage
from webhook.serving.decisions.admissions import Answer
from webhook.serving.decisions.deciders import WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.scheduling.dispatcher import _BATCH_SECONDS, SMALL_BYTES, Dispatcher
from webhook.serving.scheduling.work import QueueFullError
from webhook.serving.work_budget import WorkBudget

SMALL = review_bytes(make_pod("small").annotate(TYPE, "training").obj())


def test_a_small_pod_is_answered_while_a_large_one_is_processed() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        waiting = [site.post(large(number)) for number in range(1, 5)]

        assert "patch" in response(await site.post(SMALL))

        assert not slow.done()
        assert site.dispatcher.waiting == 5
        site.gate.open.set()
        for task in (slow, *waiting):
            assert "patch" in response(await task)
        assert site.dispatcher.waiting == 0

    world = run(story)
    assert world.records[0].name == "small"
    assert {record.outcome for record in world.records} == {"Patched"}


def test_a_policy_that_is_replaced_meanwhile_does_not_reach_a_running_decision() -> None:
    """The worker ends its review with the policy that it began with; the reviews that wait get the new one."""
    shadow = policy_with(mode="shadow")

    async def story(site: Site) -> None:
        running = await site.post_and_wait_for_scorer(large())
        waiting = site.post(large(1))
        before, site.world.policy = site.world.policy, shadow
        assert "patch" not in response(await site.post(SMALL))
        site.gate.open.set()
        assert "patch" in response(await running)
        assert response(await running)["auditAnnotations"]["policy"] == before.identity
        assert "patch" not in response(await waiting)

    world = run(story)
    assert [record.policy and record.policy.revision == shadow.revision for record in world.records] == [
        True,
        False,
        True,
    ]


def test_pods_that_wait_change_for_others_only_while_a_large_one_is_processed() -> None:
    info = NodeInfo.of(Node.of(make_node_object("node-1", labels={USAGE: "training"}, capacity={"cpu": "4"})))
    base = Snapshot.of([info])
    before = RunningPod.of(make_pod("before").requests(cpu="4").obj()).assumed_on("node-1", 0)
    assumed = AssumedPods(base, {"before": AssumedPod(before, 0)})

    async def story(site: Site) -> None:
        site.world.cluster = ClusterView(base, scheduler_for(POLICY), assumed=assumed)
        task = await site.post_and_wait_for_scorer(large())
        assumed.forget(("before",))
        site.gate.open.set()
        await task

    (record,) = run(story).records
    assert record.placement is not None
    assert (record.placement.verdict, record.placement.reserved) == ("Waiting", ReservedEntry(1))


def test_the_replicas_of_a_large_template_are_evaluated_once() -> None:
    async def story(site: Site) -> None:
        site.gate.open.set()
        answers = await asyncio.gather(*(site.post(large()) for _ in range(20)))
        assert len({orjson.dumps(response(answer)["patch"]) for answer in answers}) == 1
        assert site.gate.asked == 1

    world = run(story)
    assert len(world.records) == 20


def test_a_small_pod_of_an_address_that_exceeds_its_share_is_not_answered_at_once() -> None:
    async def story(site: Site) -> None:
        own, other = (arrival()._replace(connection=Connection(address)) for address in ("10.0.0.9", "10.0.0.1"))
        site.dispatcher._overruns.charge((b"address 10.0.0.9",), 1.0)
        assert site.dispatcher.answer_at_once(SMALL, own) is None
        assert site.dispatcher.answer_at_once(SMALL, other) is not None

    run(story)


@pytest.mark.parametrize("leaving", [0, 1, 2])
def test_a_batch_has_as_many_small_pods_as_take_its_time(leaving: int) -> None:
    """Each is assumed to take as long as the last one, which took half of the time of a batch.

    Those whose clients have just disconnected take none.
    """

    async def story(site: Site) -> None:
        site.dispatcher._is_busy, site.dispatcher._last_seconds = True, _BATCH_SECONDS / 2
        tasks = [site.post(SMALL, connection=Connection(f"10.0.0.{number}")) for number in range(5)]
        await asyncio.sleep(0)
        assert len(site.dispatcher._small_queue) == 5
        for task in tasks[:leaving]:
            task.cancel()
        site.dispatcher._begin_batch()
        assert (len(site.dispatcher._small_queue), site.dispatcher._is_busy) == (3 - leaving, leaving < 3)
        for task in tasks[leaving:]:
            assert "patch" in response(await task)
        assert len(site.dispatcher._small_queue) == 0

    run(story)


def test_one_thread_works_on_all_large_pods() -> None:
    def workers() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name == "large admissions"}

    async def story(site: Site) -> None:
        before = workers()
        site.gate.open.set()
        for number in range(3):
            assert "patch" in response(await site.post(large(number)))
        assert len(workers() - before) == 1

    run(story)


def test_a_decision_on_a_large_pod_expires() -> None:
    """A decision is reused for ten times its duration; the clock stands still, so that is zero here."""

    async def story(site: Site) -> None:
        site.gate.open.set()
        decider = WorkerDecider(lambda _: site.gate, monotonic_seconds=site.world.clock)
        dispatcher = Dispatcher(
            site.world.admissions().admissions,
            lambda: site.world.policy,
            lambda: site.world.cluster,
            DecisionCache(),
            decider,
            site.world.clock,
        )
        for _time in range(2):
            await dispatcher.answer(large(), arrival())
        dispatcher.close()
        assert site.gate.asked == 2

    run(story)


def test_a_client_that_disconnects_while_waiting_costs_no_work() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        leaving = [site.post(large(number)) for number in range(1, 4)]
        staying = site.post(large(4))
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
        await asyncio.wait(leaving)
        assert site.dispatcher.waiting == 2
        site.gate.open.set()
        await asyncio.gather(slow, staying)
        assert site.gate.asked == 2

    world = run(story)
    assert sorted(record.name for record in world.records) == ["large-0", "large-4"]
    assert world.count("http_refused_requests_total", code="499") == 3


def test_work_stops_when_the_client_disconnects() -> None:
    async def story(site: Site) -> None:
        leaving = await site.post_and_wait_for_scorer(large())
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        site.gate.open.set()
        assert "patch" in response(await site.post(large(1)))
        assert (site.gate.asked, site.gate.stopped) == (2, 1)

    world = run(story)
    assert [record.name for record in world.records] == ["large-1"]


def test_a_stopping_server_answers_waiting_reviews_without_the_check() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        waiting = [site.post(large(number)) for number in range(1, 20)]
        await asyncio.sleep(0)
        site.dispatcher.draining = True
        site.gate.open.set()
        for task in (slow, *waiting):
            assert "patch" in response(await task)

    world = run(story)
    assert [record.placement.verdict for record in world.records if record.placement] == ["Feasible"] + ["Unknown"] * 19


def test_small_pods_of_an_expensive_flow_wait_for_the_worker() -> None:
    """A few KiB can use the whole budget: after a first one in the loop, its flows go to the worker."""
    body = attack_review(1, {"nodeSelector": {f"k{number}": "" for number in range(20)}}, user="mallory")
    assert len(body) < SMALL_BYTES

    async def story(site: Site) -> None:
        site.dispatcher._overruns.charge((b"user mallory",), 1.0)
        his = await site.post_and_wait_for_scorer(body)
        hers = site.post(attack_review(2, {}, user="jane", namespace="team-j"))
        assert "patch" in response(await hers)
        assert not his.done()
        site.gate.open.set()
        assert "patch" in response(await his)

    run(story)


def test_small_pods_of_an_address_with_ever_other_expensive_users_wait_for_the_worker() -> None:
    def body(number: int) -> bytes:
        return attack_review(number, {}, user=f"user-{number}", namespace=f"team-{number}")

    async def story(site: Site) -> None:
        for number in range(11):
            site.dispatcher._overruns.add_slice(body(number), "10.0.0.9")
        his = site.post(body(100), connection=Connection("10.0.0.9"))
        hers = site.post(body(101), connection=Connection("10.0.0.1"))
        assert "patch" in response(await hers)
        assert not his.done()
        site.gate.open.set()
        assert "patch" in response(await his)

    run(story)


def test_a_small_pod_is_left_to_the_worker_if_its_flows_exceed_their_share_while_it_waits() -> None:
    body = attack_review(1, {}, user="mallory", namespace="team-m")

    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        his = site.post(body)
        hers = site.post(attack_review(2, {}, user="jane", namespace="team-j"))
        await asyncio.sleep(0)
        site.dispatcher._overruns.charge((b"user mallory",), 1.0)
        site.working.clear()
        site.dispatcher._begin_batch()
        assert "patch" in response(await hers)
        await site.working.wait()
        assert not his.done()
        site.gate.open.set()
        assert "patch" in response(await his)

    run(story)


def test_an_address_that_exceeds_its_share_while_many_wait_keeps_nobody_waiting() -> None:
    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        crowd = [
            site.post(attack_review(number, {}, user=f"u-{number}"), connection=Connection("10.0.0.9"))
            for number in range(200)
        ]
        hers = site.post(attack_review(1, {}, user="jane", namespace="team-j"), connection=Connection("10.0.0.1"))
        await asyncio.sleep(0)
        site.dispatcher._overruns.charge((b"address 10.0.0.9",), 1.0)
        site.dispatcher._begin_batch()
        assert "patch" in response(await hers)
        assert sum(each.done() for each in crowd) < 10
        for each in crowd:
            each.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)

    run(story)


def test_a_review_whose_slice_has_ended_gets_no_other_one() -> None:
    """It is not answered at once, and the handler asks for it again."""
    body, connection = attack_review(1, {}, user="mallory"), Connection()

    async def story(site: Site) -> None:
        limits: list[float | None] = []
        budget = site.dispatcher._work_budget

        def ended(arrival: Arrival, slice_seconds: float | None, policies: PolicyOrSet) -> WorkBudget:
            limits.append(slice_seconds)
            given = budget(arrival, slice_seconds, policies)
            given.abandoned = slice_seconds is not None
            return given

        site.dispatcher._work_budget = ended  # type: ignore[method-assign]
        site.gate.open.set()
        came = arrival(arrived_seconds=7.0)._replace(connection=connection)
        assert site.dispatcher.answer_at_once(body, came) is None
        arrived = [connection.sliced_seconds]
        assert "patch" in response(await site.post(body, connection=connection))
        arrived.append(connection.sliced_seconds)
        assert (limits, arrived) == ([0.01, None], [7.0, None])

    run(story)


def test_an_address_with_recent_overruns_has_a_shorter_slice_and_others_have_the_whole_one() -> None:
    async def story(site: Site) -> None:
        limits: list[float | None] = []
        budget = site.dispatcher._work_budget

        def noted(arrival: Arrival, slice_seconds: float | None, policies: PolicyOrSet) -> WorkBudget:
            limits.append(slice_seconds)
            return budget(arrival, 60.0, policies)

        site.dispatcher._work_budget = noted  # type: ignore[method-assign]
        for overrun_seconds in (0.0, 0.03):
            site.dispatcher._overruns.charge((b"address 10.0.0.9",), overrun_seconds)
            for address in ("10.0.0.9", "10.0.0.1"):
                await site.post(SMALL, connection=Connection(address))
        assert limits == [0.01, 0.01, 0.003, 0.01]

    run(story)


def test_the_flow_with_the_least_usage_is_next() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large(0, "mallory"))
        mallorys = [site.post(large(number, "mallory")) for number in range(1, 4)]
        await asyncio.sleep(0)
        site.dispatcher._usage.charge((b"user mallory",), 1.0)
        janes = site.post(large(10, "jane"))
        await asyncio.sleep(0)
        site.gate.open.set()
        await asyncio.gather(slow, *mallorys, janes)

    world = run(story)
    # All reviews are of one namespace, so only the usage of the users differs.
    assert [record.user for record in world.records].index("jane") == 1


@pytest.mark.parametrize("name", [name for name in WORST if "MiB" not in name])
def test_the_worst_pods_stop_at_the_budget_and_are_patched(name: str) -> None:
    policy = {"placementCheck": {"workBudgetMilliseconds": 1}}

    async def story(site: Site) -> None:
        site.gate.open.set()
        assert "patch" in response(await site.post(attack_review(1, WORST[name]())))

    world = run(story, policy, time.monotonic)
    (record,) = world.records
    assert record.placement is not None
    assert record.placement.verdict in ("Unknown", "Infeasible", "Waiting")


def test_a_review_of_too_many_values_is_rejected_before_parsing() -> None:
    async def story(site: Site) -> None:
        answer = await site.post(attack_review(1, WORST["3 MiB of empty tolerations"]()))
        assert (answer.status, answer.body) == (413, b"the review has more than 600000 JSON values\n")

    world = run(story)
    assert world.records == []
    assert world.count("http_refused_requests_total", code="413") == 1


@pytest.mark.parametrize(("values", "status"), [(600_000, 400), (600_001, 413)])
def test_a_body_of_600000_values_is_read(values: int, status: int) -> None:
    async def story(site: Site) -> None:
        answer = await site.post(b"[" + b"1," * (values - 2) + b"1]")
        assert answer.status == status

    run(story)


def test_only_the_creation_of_a_large_pod_is_cached() -> None:
    """An UPDATE of the same pod is bypassed, which must not become the answer to its CREATE."""

    def creation(operation: str) -> bytes:
        body = orjson.loads(large())
        body["request"]["operation"] = operation
        return orjson.dumps(body)

    async def story(site: Site) -> None:
        site.gate.open.set()
        for operation in ("UPDATE", "CREATE", "UPDATE", "CREATE"):
            answer = response(await site.post(creation(operation)))
            assert ("patch" in answer) == (operation == "CREATE")

    world = run(story)
    assert [record.outcome for record in world.records] == ["Bypassed", "Patched", "Bypassed", "Patched"]


def test_an_exception_before_or_after_the_work_is_raised_and_blocks_no_other_review() -> None:
    async def story(site: Site) -> None:
        site.gate.open.set()
        whole = site.world.cluster

        def broken() -> ClusterView | None:
            if site.world.records:
                return whole
            raise ZeroDivisionError("no view")

        admissions = site.world.admissions().admissions
        dispatcher = Dispatcher(
            admissions,
            lambda: site.world.policy,
            broken,
            DecisionCache(),
            WorkerDecider(lambda _: site.gate),
            site.world.clock,
        )
        with pytest.raises(ZeroDivisionError):
            await dispatcher.answer(large(1), arrival())
        site.world.cluster = None
        await site.post(large(2))
        assert "patch" in response(await dispatcher.answer(large(3), arrival()))
        dispatcher.close()

    run(story)


def test_one_address_has_64_reviews_in_the_queue_and_the_flow_with_the_most_work_gives_way() -> None:
    async def story(site: Site) -> None:
        running = await site.post_and_wait_for_scorer(large(0))
        of_mallory = [site.post(large(number), connection=Connection("10.0.0.1")) for number in range(1, 65)]
        await asyncio.sleep(0)
        assert site.dispatcher.waiting == 65
        site.dispatcher._usage.charge((b"user mallory",), 1.0)

        of_jane = site.post(large(100, user="jane"), connection=Connection("10.0.0.1"))
        of_another_address = site.post(large(101), connection=Connection("10.0.0.2"))
        with pytest.raises(QueueFullError, match="more than 64 costly requests of this address wait"):
            await of_mallory[-1]

        assert site.dispatcher.waiting == 66
        waiting = [running, *of_mallory[:-1], of_jane, of_another_address]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(story)


def test_a_review_that_waits_for_the_worker_is_queued_until_it_is_processed() -> None:
    async def story(site: Site) -> None:
        first, second = Connection(), Connection()
        site.working.clear()
        tasks = [site.post(large(1), connection=first), site.post(large(2), connection=second)]
        await site.working.wait()
        assert (first.stage, second.stage) == (Stage.PROCESSING, Stage.QUEUED)
        site.gate.open.set()
        await asyncio.gather(*tasks)
        assert second.stage == Stage.PROCESSING

    run(story)


def test_a_small_review_that_waits_for_its_turn_is_queued() -> None:
    async def story(site: Site) -> None:
        connection = Connection()
        task = site.post(SMALL, connection=connection)
        site.dispatcher._charge_small(SMALL, "", 1.0)
        await asyncio.sleep(0)
        stage = connection.stage
        await task
        assert (stage, connection.stage) == (Stage.QUEUED, Stage.PROCESSING)

    run(story)


def test_waiting_small_pods_are_ordered_by_the_usage_of_their_users() -> None:
    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        site.dispatcher._usage.charge((b"user mallory",), 1.0)
        mallorys = [site.post(attack_review(number, {}, user="mallory", namespace="m")) for number in range(3)]
        janes = site.post(attack_review(9, {}, user="jane", namespace="j"))
        leaving = site.post(attack_review(8, {}, user="tom", namespace="t"))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        site.dispatcher._begin_batch()
        await asyncio.gather(*mallorys, janes)
        assert not site.dispatcher._is_busy

    world = run(story)
    assert [record.user for record in world.records] == ["jane", "mallory", "mallory", "mallory"]


def test_a_client_that_disconnects_in_its_turn_passes_it_on() -> None:
    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        leaving, staying = site.post(SMALL), site.post(SMALL)
        await asyncio.sleep(0)
        site.dispatcher._begin_batch()
        leaving.cancel()
        assert "patch" in response(await staying)

    world = run(story)
    assert len(world.records) == 1


def test_a_review_one_byte_over_the_limit_waits_for_the_worker() -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        assert "patch" in response(await site.post(SMALL.ljust(SMALL_BYTES)))
        waiting = site.post(SMALL.ljust(SMALL_BYTES + 1))
        await asyncio.sleep(0)
        assert site.dispatcher.waiting == 2
        site.gate.open.set()
        await asyncio.gather(slow, waiting)

    run(story)


@pytest.mark.parametrize(("seconds", "overrun_seconds"), [(0.01, 0.0), (0.03, 0.02)])
def test_only_work_beyond_one_time_slice_counts_as_an_overrun(seconds: float, overrun_seconds: float) -> None:
    async def story(site: Site) -> None:
        slow = await site.post_and_wait_for_scorer(large())
        job = site.dispatcher._running
        assert job is not None
        site.dispatcher._complete(job, ZeroDivisionError(), seconds)
        with pytest.raises(ZeroDivisionError):
            await slow
        assert site.dispatcher._overruns.used_seconds(job.work.flows) == pytest.approx(overrun_seconds)
        assert site.dispatcher._usage.used_seconds(job.work.flows) == pytest.approx(seconds)

    run(story)


@pytest.mark.parametrize(("seconds", "charged_seconds"), [(0.0005, 0.0), (0.0006, 0.0006)])
def test_work_for_a_small_pod_is_charged_beyond_half_a_millisecond(seconds: float, charged_seconds: float) -> None:
    async def story(site: Site) -> None:
        site.dispatcher._charge_small(SMALL, "", seconds)
        assert site.dispatcher._usage.used_seconds((b"user jane",)) == pytest.approx(charged_seconds)

    run(story)


def test_a_batch_ends_after_ten_milliseconds_of_work() -> None:
    async def story(site: Site) -> None:
        busy = []
        for _time in range(3):
            site.dispatcher._charge_small(SMALL, "", 0.004)
            busy.append(site.dispatcher._is_busy)
        assert busy == [False, False, True]

    run(story)


@pytest.mark.parametrize("seconds", [1.0, 0.006])
def test_the_work_for_small_pods_is_counted_anew_in_each_turn_of_the_loop(seconds: float) -> None:
    async def story(site: Site) -> None:
        busy = []
        for each in (seconds, 0.006):
            site.dispatcher._charge_small(SMALL, "", each)
            busy.append(site.dispatcher._is_busy)
            await asyncio.sleep(0)
        assert busy == [seconds > 0.01, False]

    run(story)


def test_flow_that_exceeds_its_share_waits_for_the_worker_and_not_for_its_turn() -> None:
    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        site.dispatcher._overruns.charge((b"user mallory",), 1.0)
        his = await site.post_and_wait_for_scorer(attack_review(1, {}, user="mallory"))
        assert (site.dispatcher.waiting, len(site.dispatcher._small_queue)) == (1, 0)
        site.gate.open.set()
        assert "patch" in response(await his)

    run(story)


@pytest.mark.parametrize("charged", [b"user mallory", b"address 10.0.0.9"])
def test_work_is_charged_to_the_flows_that_exceeded_their_share(charged: bytes) -> None:
    async def story(site: Site) -> None:
        site.dispatcher._overruns.charge((charged,), 1.0)
        connection = Connection("10.0.0.9")
        site.working.clear()
        his = site.post(attack_review(1, {}, user="mallory", namespace="m"), connection=connection)
        await site.working.wait()
        job = site.dispatcher._running
        assert job is not None
        before = site.dispatcher._overruns.used_seconds((charged,))
        site.dispatcher._complete(job, ZeroDivisionError(), 0.03)
        with pytest.raises(ZeroDivisionError):
            await his
        assert site.dispatcher._overruns.used_seconds((charged,)) - before == pytest.approx(0.02)

    run(story)


def test_slice_that_has_ended_is_an_overrun_of_its_flows_and_address() -> None:
    async def story(site: Site) -> None:
        budget = site.dispatcher._work_budget

        def ended(arrival: Arrival, slice_seconds: float | None, policies: PolicyOrSet) -> WorkBudget:
            given = budget(arrival, slice_seconds, policies)
            given.abandoned = True
            return given

        site.dispatcher._work_budget = ended  # type: ignore[method-assign]
        body = attack_review(1, {}, user="mallory")
        assert site.dispatcher.answer_at_once(body, arrival()._replace(connection=Connection("10.0.0.9"))) is None
        for flow in (b"user mallory", b"address 10.0.0.9"):
            assert site.dispatcher._overruns.used_seconds((flow,)) == pytest.approx(0.01)

    run(story)


def test_address_with_the_least_work_has_its_turn_first() -> None:
    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        bodies = [attack_review(number, {}, user=f"user-{number}", namespace=f"n-{number}") for number in range(2)]
        site.dispatcher._is_batch_scheduled = True
        tasks = [
            site.post(body, connection=Connection(address))
            for body, address in zip(bodies, ("10.0.0.1", "10.0.0.2"), strict=True)
        ]
        await asyncio.sleep(0)
        site.dispatcher._charge_small(SMALL, "10.0.0.1", 1.0)
        site.dispatcher._begin_batch()
        await asyncio.gather(*tasks)

    world = run(story)
    assert [record.user for record in world.records] == ["user-1", "user-0"]


def test_review_whose_client_is_gone_has_no_turn_and_no_record() -> None:
    async def story(site: Site) -> None:
        site.dispatcher._is_busy = True
        leaving = site.post(SMALL)
        await asyncio.sleep(0)
        assert len(site.dispatcher._small_queue) == 1
        leaving.cancel()
        await asyncio.wait([leaving])
        assert len(site.dispatcher._small_queue) == 0

        working = await site.post_and_wait_for_scorer(large())
        job = site.dispatcher._running
        assert job is not None
        working.cancel()
        await asyncio.wait([working])
        finished: list[object] = []

        def finish(result: object) -> Answer:
            finished.append(result)
            return Answer(200, b"")

        job.work = job.work._replace(finish=finish)
        site.dispatcher._complete(job, object(), 0.0)
        assert finished == []

    assert run(story).records == []
