"""Answers that a scheduler keeps."""

from dataclasses import replace

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import Placement
from webhook.placement.ranking.ranking_cache import KeptAnswer
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods

_SMALL = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "3"}


def test_remembered_answer_needs_no_time() -> None:
    framework, snapshot = Scheduler(), Snapshot.of([node("a")])
    first = framework.place(make_pod().obj(), snapshot)
    assert framework.place(make_pod().obj(), snapshot, lambda: True) is first


def test_another_snapshot_is_another_question() -> None:
    framework, pod = Scheduler(), make_pod().gpu(1).obj()
    assert framework.place(pod, Snapshot.of([node("a")])).verdict == "Infeasible"
    assert framework.place(pod, Snapshot.of([node("a", capacity=_SMALL)])).verdict == "Feasible"


def test_answers_are_forgotten_the_oldest_first_once_they_take_more_than_the_budget() -> None:
    measuring, snapshot = Scheduler(), Snapshot.of([node("a")])
    ask = [make_pod().requests(cpu=count).obj() for count in range(10, 50)]
    measuring.place(ask[0], snapshot)
    # Five eighths of the budget are for answers.
    framework = Scheduler(cache_bytes=-(-10 * measuring.caches[0].used_bytes * 8 // 5))
    first, second, *_ = [framework.place(pod, snapshot) for pod in ask[:10]]
    assert framework.place(ask[0], snapshot) is first

    for pod in ask[10:]:
        framework.place(pod, snapshot)
        assert framework.place(ask[0], snapshot) is first

    assert framework.place(ask[1], snapshot) is not second
    assert all(
        cache.used_bytes <= max(cache.budget_bytes, 8 * cache.used_bytes // len(cache))
        for cache in framework.caches[:3]
    )


@pytest.mark.parametrize(("candidates", "generations"), [(0, [True, True]), (1, [True, False])])
def test_an_answer_that_predicts_evictions_holds_for_one_generation(candidates: int, generations: list[bool]) -> None:
    signature, answer = PodSignature.of(make_pod().obj()), Placement.unknown("")
    kept = KeptAnswer(
        signature, Snapshot.of([node("a")]).log, frozenset(), has_terms=False, class_count=0, info=signature.info
    )
    kept.advised = answer, replace(answer, preemption=PredictedPreemption(candidates=candidates)), 7

    assert [kept.is_advised(answer, generation) for generation in (7, 8)] == generations


def test_what_is_kept_of_a_pod_holds_while_running_pods_have_the_same_terms() -> None:
    snapshot, signature = Snapshot.of([node("a", make_pod())]), PodSignature.of(make_pod().obj())
    pods = snapshot.pods
    found = [
        KeptAnswer(
            signature,
            snapshot.log,
            keys,
            has_terms=pods.has_terms,
            class_count=pods.class_count - 1,
            info=signature.info,
        ).is_on(snapshot)
        for keys in (pods.term_keys, pods.term_keys | {"zone"})
    ]

    assert found == [True, False]


def test_nodes_of_an_earlier_answer_stay_when_a_pod_takes_room() -> None:
    base = Snapshot.of([node(name, capacity=_SMALL) for name in "ab"])
    framework, assumed, pod = Scheduler(), AssumedPods[int](base), make_pod().gpu(8).obj()
    first = framework.place(pod, assumed.before(0))
    assumed.assume(1, AssumedPod(RunningPod.of(pod).assumed_on("a", 0), 0))
    second = framework.place(pod, assumed.before(0))

    masks = [each.feasible_mask for each in (first, second)]
    assert [None if each is None else each.tolist() for each in masks] == [[True, True], [False, True]]
