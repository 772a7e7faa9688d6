"""A ranking that is brought up to date equals one that is made anew."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles import strategies, strategies_pods
from tests.placement.ranking.facts import facts
from tests.support.effort import examples
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.documents.documents import Document
from webhook.kube.deadline import Expired
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.profiles.profile import BINPACK, DEFAULT, PACK_GPUS, Profile
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods

Object = dict[str, Any]
Cluster = tuple[list[Object], list[Object], list[Object]]
_BASIC = strategies.clusters().map(lambda found: (*found, list[Object]()))
_STEPS = st.lists(st.tuples(st.sampled_from(("assume", "forget", "bind", "delete")), st.integers(0, 7)), max_size=8)


def _with(snapshot: Snapshot, pod: RunningPod) -> Snapshot:
    return updated(snapshot, [snapshot.nodes[snapshot.rows[pod.node_name]].with_pods((pod,))], snapshot.generation + 1)


def _without(snapshot: Snapshot, pod: RunningPod) -> Snapshot:
    info = snapshot.nodes[snapshot.rows[pod.node_name]]
    left = NodeInfo.of(info.node, [each for each in info.pods if each is not pod])
    return updated(snapshot, [left], snapshot.generation + 1)


def _follow(assumed: AssumedPods[int], step: str, number: int, pod: RunningPod) -> None:
    """Make one change of the pod `number`: as assumed, or as one that is bound."""
    bound = [each for info in assumed.base.nodes for each in info.pods if each is pod]
    if step == "assume" and number not in assumed.by_key and not bound:
        assumed.assume(number, AssumedPod(pod.assumed_on(pod.node_name, pod.priority), pod.priority))
    elif step == "forget":
        assumed.forget((number,))
    elif step == "bind" and not bound:
        assumed.follow(_with(assumed.base, pod), (number,))
    elif step == "delete" and bound:
        assumed.follow(_without(assumed.base, pod))


@pytest.mark.parametrize("profile", [DEFAULT, BINPACK, PACK_GPUS, VOLCANO, KAI], ids=lambda each: each.name)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cluster=_BASIC | strategies_pods.clusters(),
    pods=st.lists(strategies.pending_pods() | strategies_pods.pending_pods(), min_size=1, max_size=3),
    steps=_STEPS,
)
def test_each_change_gives_what_a_new_scheduler_finds(
    profile: Profile, cluster: Cluster, pods: list[Object], steps: list[tuple[str, int]]
) -> None:
    nodes, running, others = cluster
    base = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *others))
    every = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running, *others))
    coming = [pod for info in every.nodes for pod in info.pods]
    asked = [PodSignature.of(pod) for pod in pods]
    scheduler, assumed = Scheduler(profile, keeps_scores=False), AssumedPods[int](base)
    for step, number in (("look", 0), *steps):
        if number < len(coming):
            _follow(assumed, step, number, coming[number])
        for each in asked:
            before = assumed.before_pod(each.info.preemption)
            anew = assumed.copy().before_pod(each.info.preemption)
            fresh = Scheduler(profile, keeps_scores=False)
            assert facts(scheduler.answer(each, before)) == facts(fresh.answer(each, anew))


def _expired_after(checks: int) -> Expired:
    left = iter(range(checks))
    return lambda: next(left, None) is None


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cluster=_BASIC | strategies_pods.clusters(),
    pods=st.lists(strategies.pending_pods() | strategies_pods.pending_pods(), min_size=1, max_size=2),
    steps=_STEPS,
    checks=st.integers(0, 40),
)
def test_an_answer_that_the_deadline_ends_leaves_no_half_of_it(
    cluster: Cluster, pods: list[Object], steps: list[tuple[str, int]], checks: int
) -> None:
    nodes, running, others = cluster
    base = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *others))
    every = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running, *others))
    coming = [pod for info in every.nodes for pod in info.pods]
    scheduler, assumed = Scheduler(keeps_scores=False), AssumedPods[int](base)
    for step, number in (("look", 0), *steps):
        if number < len(coming):
            _follow(assumed, step, number, coming[number])
        for each in map(PodSignature.of, pods):
            before = assumed.before_pod(each.info.preemption)
            scheduler.answer(each, before, _expired_after(checks))
            anew = assumed.copy().before_pod(each.info.preemption)
            assert facts(scheduler.answer(each, before)) == facts(Scheduler(keeps_scores=False).answer(each, anew))


@pytest.mark.parametrize("checks", range(40))
def test_a_deadline_after_the_best_node_is_full_leaves_no_half_of_it(checks: int) -> None:
    preferred = {"weight": 10, "preference": {"matchExpressions": [{"key": "best", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    labels = [{"best": "yes"}, {}, {}]
    nodes = [node(f"n{at}", capacity={"nvidia.com/gpu": "1"}, labels=each) for at, each in enumerate(labels)]
    asked = PodSignature.of(make_pod().gpu(1).affinity(affinity).obj())
    scheduler, assumed = Scheduler(keeps_scores=False), AssumedPods[int](Snapshot.of(nodes))
    assert scheduler.answer(asked, assumed.before(0)).node == "n0"
    assumed.assume(0, AssumedPod(RunningPod.of(make_pod().gpu(1).obj()).assumed_on("n0", 0), 0))

    scheduler.answer(asked, assumed.before(0), _expired_after(checks))

    anew = Scheduler(keeps_scores=False).answer(asked, assumed.copy().before(0))
    assert facts(scheduler.answer(asked, assumed.before(0))) == facts(anew)


def test_a_burst_is_placed_by_the_rows_that_changed() -> None:
    snapshot = Snapshot.of(node(f"n{number}", capacity={"nvidia.com/gpu": "2", "cpu": "64"}) for number in range(4))
    pod, scheduler, assumed = make_pod().gpu(1), Scheduler(BINPACK), AssumedPods[int](snapshot)
    signature, running = PodSignature.of(pod.obj()), RunningPod.of(pod.obj())
    nodes = []
    for number in range(9):
        placement = scheduler.answer(signature, assumed.before(0))
        nodes.append(placement.node)
        if placement.node is not None:
            assumed.assume(number, AssumedPod(running.assumed_on(placement.node, 0), 0))
    assert nodes == ["n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3", None]


def test_scores_are_normalized_over_the_nodes_that_pass_the_filters_by_other_pods() -> None:
    """A running pod keeps this pod off the node with the best label; the next best label then outweighs a taint."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("best", 40), ("good", 10))
    ]
    nodes = [
        node("any"),
        node("best", make_pod("other").label("app", "a"), labels={"best": "yes"}),
        node("good", labels={"good": "yes"}, taints=["a:PreferNoSchedule"]),
        node("tainted", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"]),
    ]
    kinds = {"nodeAffinity": "preferred", "podAntiAffinity": "required"}
    terms = {"nodeAffinity": preferred, "podAntiAffinity": [term]}
    affinity = {kind: {f"{how}DuringSchedulingIgnoredDuringExecution": terms[kind]} for kind, how in kinds.items()}

    answer = Scheduler(keeps_scores=False).answer(
        PodSignature.of(make_pod().affinity(affinity).obj()), Snapshot.of(nodes)
    )

    assert answer.node == "good"


def test_a_new_pod_whose_preference_selects_this_one_counts() -> None:
    """Another term over the same label was there before, so that the ranking itself stays."""

    def attracting(app: str) -> RunningPod:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        weighted = [{"weight": 100, "podAffinityTerm": term}]
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
        return RunningPod.of(make_pod(f"draws-{app}").requests(cpu="1").affinity(affinity).obj())

    capacity = {"cpu": "64", "memory": "256Gi"}
    base = Snapshot.of(node(name, capacity=capacity) for name in ("a", "b", "c"))
    assumed, scheduler = AssumedPods[int](base), Scheduler(keeps_scores=False)
    asked = PodSignature.of(make_pod().label("app", "this").requests(cpu="1").obj())
    assumed.assume(0, AssumedPod(attracting("other").assumed_on("a", 0), 0))
    assert scheduler.answer(asked, assumed.before(0)).node != "a"

    assumed.assume(1, AssumedPod(attracting("this").assumed_on("c", 0), 0))

    assert scheduler.answer(asked, assumed.before(0)).node == "c"
