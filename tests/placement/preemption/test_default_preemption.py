"""What kube-scheduler does for a pod that no node can take, and what is not certain."""

from dataclasses import replace

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from tests.support.preemption import TWO_CARDS, budget, preempting, running
from webhook.cluster.snapshot import Snapshot
from webhook.placement.profiles.profile import DEFAULT, UnmodelledStep
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature


def test_of_equal_nodes_each_may_be_chosen() -> None:
    nodes = [node(name, running(f"p-{name}", 1, 2), capacity=TWO_CARDS) for name in "ab"]
    found = preempting(make_pod().gpu(2), *nodes)
    assert (found.nodes, found.is_exact, found.message) == (("a", "b"), False, "")
    assert found.why == "one of a, b; 1 victim each"


def test_what_is_not_known_of_budgets_is_stated() -> None:
    info = node("a", running("x", 1, 2), capacity=TWO_CARDS)
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    found = Scheduler().preemption(signature, Snapshot.of([info]))
    assert found is not None
    assert found.why == "PodDisruptionBudgets are not known"
    stale = preempting(make_pod().gpu(2), info, budgets=(budget(1, is_stale=True),))
    assert stale.why == "the status of PodDisruptionBudget default/web is older than its spec"


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
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    info = node("a", ending.status(conditions=[condition]), capacity=TWO_CARDS)
    found = preempting(make_pod().gpu(2).status(nominatedNodeName="a"), info)
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (found.evicts, found.message) == (False, text)


def test_only_some_of_many_nodes_are_compared() -> None:
    nodes = [node(f"n{at:03}", running(f"p{at}", 1, 2), capacity=TWO_CARDS) for at in range(101)]
    found = preempting(make_pod().gpu(2), *nodes)
    assert (found.nodes, found.victims, found.candidates, found.is_exact) == ((), (), 101, False)
    assert found.why == "kube-scheduler compares 100, from a random one"
    assert found.to_json() == {"victims": [], "violates": [], "isExact": False, "why": found.why}
    exact = preempting(make_pod().gpu(2), *nodes[:99], node("z", running("later", 0, 2), capacity=TWO_CARDS))
    assert exact.nodes == ("z",)


def test_an_extender_can_choose_among_the_victims() -> None:
    profile = replace(DEFAULT, preempting_extenders=(UnmodelledStep("extender http://x"),))
    nodes = [node(name, running(f"p-{name}", priority, 2), capacity=TWO_CARDS) for priority, name in enumerate("ab")]
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    found = Scheduler(profile).preemption(signature, Snapshot.of(nodes, disruption_budgets=()))
    assert found is not None
    assert (found.nodes, found.is_exact, found.why) == (("a", "b"), False, "extender http://x can choose among 2 nodes")


def test_later_budgets_change_an_answer_that_is_kept() -> None:
    nodes = [
        node("a", running("guarded", 1, 2).label("app", "web"), capacity=TWO_CARDS),
        node("b", running("free", 9, 2), capacity=TWO_CARDS),
    ]
    scheduler, signature = Scheduler(suggestions=1), PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    snapshot = Snapshot.of(nodes, disruption_budgets=())
    before = scheduler.answer(signature, snapshot).preemption
    later = replace(snapshot, disruption_budgets=(budget(0),), generation=snapshot.generation + 1)
    later.take_log(snapshot)
    after = scheduler.answer(signature, later).preemption
    assert before is not None
    assert after is not None
    assert (before.nodes, after.nodes) == (("a",), ("b",))
