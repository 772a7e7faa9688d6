"""Answers that a scheduler keeps."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.cache.caches import cache_of
from tests.support.objects.batch_objects import hyper_node, named, pod_group
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.optional_kinds import EVERY_OPTIONAL_KIND
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import VOLCANO_PLUGIN
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

    assert [kept.is_advised(answer, generation, None) for generation in (7, 8)] == generations


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


_GROUP = pod_group("g", group="scheduling.k8s.io")
_OF_GROUP = make_pod().gpu(5).spec(schedulingGroup={"podGroupName": "g"})
_KATA: dict[str, Any] = {"metadata": {"name": "kata"}, "handler": "kata", "scheduling": {"nodeSelector": {"x": "y"}}}


@pytest.mark.parametrize(
    ("kind", "content", "pod"),
    [
        ("PodGroup.scheduling.k8s.io", _GROUP, _OF_GROUP),
        ("RuntimeClass", _KATA, make_pod().spec(runtimeClassName="kata", nodeSelector={"x": "y"})),
        (
            "HyperNode.topology.volcano.sh",
            hyper_node("rack", 1, *named("a")),
            make_pod()
            .annotate("volcano.sh/network-topology-mode", "hard")
            .annotate("volcano.sh/network-topology-highest-tier", "1"),
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_answer_follows_the_objects_other_than_nodes_and_pods(
    kind: str, content: dict[str, Any], pod: PodBuilder
) -> None:
    cache, signature = cache_of(make_node_object("a")), PodSignature.of(pod.obj())
    for each in EVERY_OPTIONAL_KIND:
        cache.replace(each, [])
    cache.put_scheduler_evidence(
        SchedulerEvidence(frozenset(), "", volcano=VolcanoConfiguration(plugins=frozenset((VOLCANO_PLUGIN,))))
    )
    kept, assumed = Scheduler(suggestions=1), AssumedPods[int](cache.snapshot())
    answers = []
    for event in ("ADDED", "DELETED"):
        answers.append(kept.answer(signature, assumed.before(0)))
        cache.apply(kind, event, content)
        assumed.follow(cache.snapshot())
        anew = Scheduler(suggestions=1).answer(signature, assumed.copy().before(0))
        assert kept.answer(signature, assumed.before(0)) == anew
        assert anew != answers[-1]


def test_pods_of_two_namespaces_have_the_preemption_of_their_own_group() -> None:
    cache, scheduler = cache_of(make_node_object("a")), Scheduler(suggestions=1)
    cache.replace("PodGroup.scheduling.k8s.io", [_GROUP])
    pods = [_OF_GROUP.namespace(each).obj() for each in ("default", "other", "default")]

    answers = [scheduler.place(pod, cache.snapshot()) for pod in pods]

    assert answers == [Scheduler(suggestions=1).place(pod, cache.snapshot()) for pod in pods]
    assert answers[0] == answers[2] != answers[1]
