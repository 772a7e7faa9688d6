"""What kube-scheduler does for a pod that no node can take, and what is not certain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.cache.caches import cache_of
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import (
    allocated,
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from tests.support.objects.moves import budget as moved_budget
from tests.support.plugins import node, pod_info
from tests.support.preemption import TWO_CARDS, budget, preempting, running
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND
from webhook.cluster.pods.nominated_pods import NominatedPods
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.working_snapshot import WorkingSnapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.kube.release import Release
from webhook.kube.selectors import exact_selector
from webhook.placement.framework.interface import PreFilterResult
from webhook.placement.preemption import default_preemption
from webhook.placement.preemption.default_preemption import best_on, chosen_by
from webhook.placement.preemption.lower_pods import LowerPods
from webhook.placement.profiles.plugin_registry import PluginArgs
from webhook.placement.profiles.profile import DEFAULT, Profile, UnmodelledStep
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def test_of_equal_nodes_each_may_be_chosen() -> None:
    nodes = [node(name, running(f"p-{name}", 1, 2), capacity=TWO_CARDS) for name in "ab"]
    found = preempting(make_pod().gpu(2), *nodes)
    assert (found.nodes, found.is_exact, found.message) == (("a", "b"), False, "")
    assert found.why == "one of a, b; 1 victim each"


@pytest.mark.parametrize(("allowed", "chosen"), [(0, "b"), (1, "a")])
def test_the_search_goes_on_until_an_eviction_violates_no_budget(allowed: int, chosen: str) -> None:
    """It ends after one candidate otherwise, from the node on which `randrange` falls."""
    profile = Profile.of("few", PluginArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1))
    guarded = node("a", running("guarded", 1, 2).label("app", "web"), capacity=TWO_CARDS)
    snapshot = Snapshot.of(
        [guarded, node("b", running("free", 9, 2), capacity=TWO_CARDS)], disruption_budgets=(budget(allowed),)
    )
    pod = pod_info(make_pod().gpu(2).spec(priority=100)).normalized_for(snapshot)

    found = chosen_by(_Even(), profile, pod, snapshot, never)

    assert found is not None
    assert found.node == chosen


class _Even:
    """Dice that change nothing."""

    def randrange(self, start: int, /) -> int:
        return min(start - 1, 0)

    def shuffle(self, x: list[Any], /) -> None:
        """Leave the items in their order."""


def test_what_is_not_known_of_budgets_is_stated() -> None:
    info = node("a", running("x", 1, 2), capacity=TWO_CARDS)
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    found = Scheduler().preemption(signature, Snapshot.of([info]))
    assert found is not None
    assert found.why == "PodDisruptionBudgets are not known"
    stale = preempting(make_pod().gpu(2), info, budgets=(budget(1, is_stale=True),))
    assert stale.why == "the status of PodDisruptionBudget default/web is older than its spec"


def test_a_budget_whose_status_counts_more_pods_than_there_are_is_named() -> None:
    low, ends = running("low", 1, 1).label("app", "web"), running("ends", 2, 1).label("app", "web")
    info = node("n", low, ends.deletion("2026-12-01T00:00:00Z"), capacity=TWO_CARDS)
    counting = [preempting(make_pod().gpu(1), info, budgets=(replace(budget(1), healthy=each),)).why for each in (1, 2)]
    counted = "it counts 2 healthy pods, but there are 1"
    assert counting == ["", f"the status of PodDisruptionBudget default/web is older than its pods: {counted}"]
    unrelated = replace(budget(1), name="other", selector=exact_selector({"app": "db"}), healthy=9)
    assert not preempting(make_pod().gpu(1), info, budgets=(unrelated,)).why


def test_pods_that_are_nominated_to_a_node_where_pods_can_be_evicted_are_named() -> None:
    nodes = [node(each, running(f"low-{each}", 1, 2), capacity=TWO_CARDS) for each in "ab"]
    waits = running("waits", 200, 2).spec(nodeName="a")
    nominated = NominatedPods.of([RunningPod.of(waits.obj())])
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())

    snapshot = Snapshot.of(nodes, disruption_budgets=(), nominated=nominated)
    found = Scheduler().preemption(signature, snapshot)

    assert found is not None
    assert (found.nodes, found.is_exact) == (("b",), True)
    assert found.why == "room is kept for nominated pods: default/waits on a"


def test_nodes_that_no_eviction_helps_are_counted_in_the_message() -> None:
    nodes = [
        node("full", running("same", 100, 2), capacity=TWO_CARDS),
        node("small", running("x", 1), capacity=TWO_CARDS | {"nvidia.com/gpu": "1"}),
        node("mixed", running("low", 1, 1), running("high", 200, 1), capacity=TWO_CARDS),
    ]
    found = preempting(make_pod().gpu(2), *nodes)
    assert not found.evicts
    assert found.message == (
        "preemption: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_never_preempts_evicts_nobody() -> None:
    pod = make_pod().gpu(2).spec(preemptionPolicy="Never")
    found = preempting(pod, node("a", running("x", 1, 2), capacity=TWO_CARDS))
    assert (found.evicts, found.message) == (False, "preemption: not eligible due to preemptionPolicy=Never.")


def test_a_pod_waits_for_the_victims_on_its_nominated_node() -> None:
    ending = running("x", 1, 2).deletion("2026-01-01T00:00:00Z")
    info = node("a", ending.status(conditions=[PREEMPTED]), capacity=TWO_CARDS)
    found = preempting(make_pod().gpu(2).status(nominatedNodeName="a"), info)
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (found.evicts, found.message) == (False, text)


@pytest.mark.parametrize(
    ("priority", "conditions", "is_terminating", "nominated"),
    [
        pytest.param(100, [PREEMPTED], True, "a", id="a pod of its own priority was evicted for another one"),
        pytest.param(1, [], True, "a", id="a pod ends that a user has deleted"),
        pytest.param(1, [PREEMPTED | {"reason": "EvictionByEvictionAPI"}], True, "a", id="a drain evicted the pod"),
        pytest.param(1, [PREEMPTED | {"status": "False"}], True, "a", id="the condition does not hold"),
        pytest.param(1, [PREEMPTED], False, "a", id="the pod does not end"),
        pytest.param(1, [PREEMPTED], True, "b", id="it ends on another node"),
        pytest.param(1, [PREEMPTED], True, "gone", id="the nominated node is gone"),
    ],
)
def test_a_pod_does_not_wait_for_other_pods_that_end(
    priority: int, conditions: list[dict[str, str]], *, is_terminating: bool, nominated: str
) -> None:
    pod = running("x", priority, 2).status(conditions=conditions)
    pod = pod.deletion("2026-01-01T00:00:00Z") if is_terminating else pod
    nodes = [node("a", pod, capacity=TWO_CARDS), node("b", running("y", 1, 2), capacity=TWO_CARDS)]
    found = preempting(make_pod().gpu(2).status(nominatedNodeName=nominated), *nodes)
    assert "terminating" not in found.message
    assert found.evicts


def test_only_some_of_many_nodes_are_compared() -> None:
    nodes = [node(f"n{at:03}", running(f"p{at}", 1, 2), capacity=TWO_CARDS) for at in range(101)]
    found = preempting(make_pod().gpu(2), *nodes)
    assert (found.nodes, found.victims, found.candidates, found.is_exact) == ((), (), 101, False)
    assert found.why == "kube-scheduler compares 100, from a random one"
    why = f"1 victim on one of at least 101 nodes; {found.why}"
    assert found.to_json() == {"victims": [], "violates": [], "isExact": False, "why": why}
    exact = preempting(make_pod().gpu(2), *nodes[:99], node("z", running("later", 0, 2), capacity=TWO_CARDS))
    assert exact.nodes == ("z",)


def test_an_extender_can_choose_among_the_victims() -> None:
    profile = replace(DEFAULT, preempting_extenders=(UnmodelledStep("extender http://x"),))
    nodes = [node(name, running(f"p-{name}", priority, 2), capacity=TWO_CARDS) for priority, name in enumerate("ab")]
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    found = Scheduler(profile).preemption(signature, Snapshot.of(nodes, disruption_budgets=()))
    assert found is not None
    assert (found.nodes, found.is_exact, found.why) == (("a", "b"), False, "extender http://x can choose among 2 nodes")


def test_an_answer_is_kept_until_a_budget_changes() -> None:
    cards = {"nvidia.com/gpu": 2}
    guarded = make_pod("guarded").namespace("team-a").label("app", "app").node_name("a").gpu(2).spec(priority=1)
    cache = cache_of(
        make_node_object("a", capacity=cards),
        make_node_object("b", capacity=cards),
        guarded.obj(),
        make_pod("free").node_name("b").gpu(2).spec(priority=9).obj(),
    )
    cache.replace(DISRUPTION_BUDGET_KIND, [])
    scheduler, signature = Scheduler(suggestions=1), PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    shown = WorkingSnapshot(cache.snapshot(), ())

    def chosen() -> tuple[str, ...]:
        assert shown.follow(cache.snapshot(), lambda _: [])
        found = scheduler.answer(signature, shown.snapshot)
        assert found is scheduler.answer(signature, shown.snapshot)
        assert found.preemption is not None
        return found.preemption.nodes

    assert chosen() == ("a",)
    for allowed, expected in ((0, "b"), (1, "a")):
        cache.apply(DISRUPTION_BUDGET_KIND, "MODIFIED", moved_budget("web", allowed))
        assert chosen() == (expected,)


def test_the_message_depends_on_the_claims_of_the_pod() -> None:
    cluster = (
        make_node_object("a", capacity={"nvidia.com/gpu": 2}),
        make_node_object("b", capacity={"nvidia.com/gpu": 2}),
        *(make_pod(f"of-{name}").node_name(name).gpu(2).spec(priority=200).obj() for name in "ab"),
        make_device_class(),
        make_slice("a", *make_cards(2)),
        make_resource_claim("free", exactly()),
        allocated(make_resource_claim("taken", exactly()), "a", "card-0"),
    )
    snapshot = snapshot_from_documents(Document("cluster", each) for each in cluster)
    nobody = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."

    def message(release: int, *claims: str) -> str:
        pod = make_pod().namespace("default").gpu(2).spec(priority=100, resourceClaims=claiming(*claims))
        found = Scheduler().preemption(PodSignature.of(pod.obj()), replace(snapshot, release=Release(release)))
        assert found is not None
        return found.message

    assert [message(37, "free"), message(37, "taken"), message(37)] == [nobody, "", nobody]
    before = [f"still not schedulable, {nobody}", "", f"no new claims to deallocate, {nobody}"]
    assert [message(36, "free"), message(36, "taken"), message(36)] == before


@pytest.mark.parametrize(("uid", "begin"), [("u", ""), ("other", "still not schedulable, ")])
def test_the_message_is_not_certain_for_a_pod_with_a_claim_of_an_earlier_attempt(uid: str, begin: str) -> None:
    pod = make_pod("p").namespace("default").requests(**{"example.com/card": 1}).uid("u").spec(priority=100)
    earlier = make_resource_claim("earlier", exactly())
    earlier["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"kind": "Pod", "name": "p", "uid": uid, "controller": True}],
    }
    cards = make_device_class(extended_resource="example.com/card"), make_slice("a", *make_cards(1))
    objects = make_node_object("a"), *cards, earlier, allocated(make_resource_claim("taken", exactly()), "a", "card-0")
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)

    found = Scheduler().preemption(PodSignature.of(pod.obj()), replace(snapshot, release=Release(36)))

    assert found is not None
    assert found.message.partition("preemption: ")[0] == begin
    assert bool(found.message) is bool(begin)


def test_no_more_nodes_are_evaluated_than_show_that_the_choice_is_random(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(f"n{at:03}", running(f"p{at}", 1, 2), capacity=TWO_CARDS) for at in range(300)]
    evaluated: list[int] = []
    evaluate = LowerPods.__init__

    def counted(lower: LowerPods, snapshot: Snapshot, rows: Sequence[int], *rest: Any) -> None:
        evaluated.extend(rows)
        evaluate(lower, snapshot, rows, *rest)

    monkeypatch.setattr(LowerPods, "__init__", counted)
    assert preempting(make_pod().gpu(2), *nodes).candidates == 101
    assert len(evaluated) == 101


class NamesNodeB:
    """A pre-filter that names one node, as a volume that only this node can reach."""

    name = "VolumeBinding"

    def pre_filter(self, *_: object) -> PreFilterResult:
        """Return the node b."""
        return PreFilterResult(frozenset("b"))


@pytest.mark.parametrize(("nominated", "potential"), [("", [False, True, False]), ("a", [True, True, False])])
def test_the_nominated_node_is_evaluated_whatever_the_pre_filters_name(nominated: str, potential: list[bool]) -> None:
    nodes = Snapshot.of([node(name, running(f"p-{name}", 1, 2), capacity=TWO_CARDS) for name in "abc"])
    pod = make_pod().gpu(2).spec(priority=100).status(nominatedNodeName=nominated)
    info = pod_info(pod).normalized_for(nodes)
    profile = replace(DEFAULT, pre_filters=(NamesNodeB(),))

    assert default_preemption.potential_nodes(profile, info, nodes, never).tolist() == potential


@pytest.mark.parametrize(
    ("nodes", "best"),
    [
        pytest.param({"a": [(5, 2)], "b": [(1, 1), (1, 1)]}, "b", id="the lowest priority, though two pods end"),
        pytest.param({"a": [(1, 1), (1, 1)], "b": [(1, 2)]}, "b", id="the fewest pods of equal priority"),
        pytest.param({"b": [(1, 2)], "a": [(1, 2)]}, "a", id="the first of equal nodes"),
        pytest.param({"a": [(200, 2)], "b": [(99, 2)]}, "b", id="the only one with lower pods"),
        pytest.param({"a": [(200, 2)], "b": [(100, 2)]}, None, id="none"),
    ],
)
def test_best_of_some_nodes_is_the_one_that_kube_scheduler_chooses(
    nodes: dict[str, list[tuple[int, int]]], best: str | None
) -> None:
    infos = [
        node(name, *(running(f"{name}-{at}", *each) for at, each in enumerate(pods)), capacity=TWO_CARDS)
        for name, pods in nodes.items()
    ]
    snapshot = Snapshot.of(
        [*infos, node("free-of-cards", running("x", 0)), node("z", running("z", 0, 2), capacity=TWO_CARDS)]
    )
    pod = pod_info(make_pod().gpu(2).spec(priority=100)).normalized_for(snapshot)
    rows = [snapshot.rows[name] for name in sorted([*nodes, "free-of-cards"])]

    found = best_on(DEFAULT, pod, snapshot, rows, never)
    never_preempts = pod._replace(preemption=pod.preemption._replace(is_never=True))

    assert (found and found.node) == best
    assert best_on(DEFAULT, never_preempts, snapshot, rows, never) is None
