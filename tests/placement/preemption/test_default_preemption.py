"""Which pods kube-scheduler evicts, and on which node, rule by rule."""

from dataclasses import replace

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Snapshot
from webhook.kube.selectors import exact_selector
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.profiles.profile import DEFAULT, UnmodelledStep
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

_ROOM = {"cpu": "8", "nvidia.com/gpu": "8", "pods": "10"}


def running(name: str, priority: int = 0, cards: int = 0, started: str = "") -> PodBuilder:
    pod = (make_pod(name).gpu(cards) if cards else make_pod(name)).spec(priority=priority, nodeName="n")
    return pod.status(startTime=started) if started else pod


def preempting(pod: PodBuilder, *nodes: NodeInfo, budgets: tuple[DisruptionBudget, ...] = ()) -> PredictedPreemption:
    """What is done for `pod`, of priority 100, on `nodes`."""
    signature = PodSignature.of(pod.spec(priority=100).obj())
    found = Scheduler().preemption(signature, Snapshot.of(nodes, disruption_budgets=budgets))
    assert found is not None
    return found


def victims(pod: PodBuilder, *nodes: NodeInfo, budgets: tuple[DisruptionBudget, ...] = ()) -> list[str]:
    """The names of the pods that are certainly evicted, the most important first."""
    found = preempting(pod, *nodes, budgets=budgets)
    assert found.is_exact, found.why
    return [each.name for each in found.victims]


def budget(allowed: int, *, disrupted: frozenset[str] = frozenset(), is_stale: bool = False) -> DisruptionBudget:
    """A PodDisruptionBudget of the pods with the label app=web."""
    return DisruptionBudget("default", "web", exact_selector({"app": "web"}), allowed, disrupted, is_stale)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        pytest.param(3, ["x"], id="one place is missing"),
        pytest.param(2, ["y", "x"], id="two are missing"),
        pytest.param(1, ["z", "y", "x"], id="three are missing"),
        pytest.param(0, [], id="no end of a pod is enough"),
    ],
)
def test_as_many_pods_are_evicted_as_places_are_missing(allowed: int, expected: list[str]) -> None:
    pods = running("z", 3), running("x", 1), running("y", 2)
    assert victims(make_pod(), node("n", *pods, capacity=_ROOM | {"pods": str(allowed)})) == expected


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        pytest.param(3, ["x"], id="one is missing"),
        pytest.param(5, ["y"], id="the important pod is kept only if it fits"),
        pytest.param(8, ["y", "x"], id="all"),
        pytest.param(9, [], id="more than the node has"),
    ],
)
def test_the_most_important_pods_stay_that_fit_beside_the_pod(cards: int, expected: list[str]) -> None:
    pods = running("y", 2, cards=4), running("x", 1, cards=2), running("idle", 3)
    assert victims(make_pod().gpu(cards), node("n", *pods, capacity=_ROOM)) == expected


def test_pods_of_no_lower_priority_stay() -> None:
    pods = running("same", 100, cards=4), running("higher", 101, cards=2), running("lower", 99, cards=2)
    info = node("n", *pods, capacity=_ROOM)
    assert victims(make_pod().gpu(2), info) == ["lower"]
    assert victims(make_pod().gpu(3), info) == []


def test_the_pod_that_takes_the_port_is_evicted_and_no_other() -> None:
    pods = running("a"), running("web").host_port(80).host_port(443), running("z").host_port(81)
    info = node("n", *pods, capacity=_ROOM)
    assert victims(make_pod().host_port(80), info) == ["web"]
    assert sorted(victims(make_pod().host_port(81).host_port(443), info)) == ["web", "z"]


def test_the_pod_that_started_last_is_evicted_of_equal_ones() -> None:
    old, new = running("a", started="2026-01-01T00:00:00Z"), running("b", started="2026-01-02T00:00:00Z")
    of_none = running("c")
    one_place = _ROOM | {"pods": "2"}
    assert victims(make_pod(), node("n", old, new, capacity=one_place)) == ["b"]
    assert victims(make_pod(), node("n", of_none, new, capacity=one_place)) == ["c"]


def test_of_equal_pods_only_the_number_is_known() -> None:
    found = preempting(make_pod().gpu(4), node("n", *(running(f"p{at}", 1, 2) for at in range(4)), capacity=_ROOM))
    assert (found.nodes, found.least, found.most, len(found.victims)) == (("n",), 2, 2, 4)
    assert not found.is_exact
    assert found.why == "2 of these 4: they are equal to kube-scheduler"
    assert found.message == "preemption: found a potential placement for pod on node n, preempting 2 victims"


def test_equal_pods_of_different_sizes_are_tried_in_every_order() -> None:
    pods = running("one", 1, 1), running("three", 1, 3), running("four", 1, 4)
    found = preempting(make_pod().gpu(4), node("n", *pods, capacity=_ROOM))
    assert (found.least, found.most, found.is_exact) == (1, 2, False)
    assert {each.name for each in found.victims} == {"one", "three", "four"}


ONE_CARD = {"cpu": "8", "nvidia.com/gpu": "2", "pods": "10"}


@pytest.mark.parametrize(
    ("of_a", "of_b", "chosen"),
    [
        pytest.param([running("x", 9, 2)], [running("y", 8, 2)], "b", id="the lower of the highest priorities"),
        pytest.param([running("x", 5, 1), running("y", 1, 1)], [running("z", 5, 2)], "b", id="fewer pods"),
        pytest.param(
            [running("x", 5, 1), running("y", 4, 1)], [running("z", 5, 1), running("w", 1, 1)], "b", id="the sum"
        ),
        pytest.param([running("x", -5, 2)], [running("y", -9, 1), running("z", -9, 1)], "b", id="negative priorities"),
        pytest.param(
            [running("x", 1, 2, "2026-01-01T00:00:00Z")],
            [running("y", 1, 2, "2026-01-02T00:00:00Z")],
            "b",
            id="the later",
        ),
        pytest.param([running("x", 1, 2, "2026-01-01T00:00:00Z")], [running("y", 1, 2)], "b", id="not started"),
    ],
)
def test_the_node_is_chosen_by_its_victims(of_a: list[PodBuilder], of_b: list[PodBuilder], chosen: str) -> None:
    found = preempting(make_pod().gpu(2), node("a", *of_a, capacity=ONE_CARD), node("b", *of_b, capacity=ONE_CARD))
    assert (found.nodes, found.is_exact) == ((chosen,), True)


def test_of_equal_nodes_each_may_be_chosen() -> None:
    nodes = [node(name, running(f"p-{name}", 1, 2), capacity=ONE_CARD) for name in "ab"]
    found = preempting(make_pod().gpu(2), *nodes)
    assert (found.nodes, found.is_exact, found.message) == (("a", "b"), False, "")
    assert found.why == "one of a, b; 1 victims each"


def test_a_node_without_violations_of_budgets_is_chosen() -> None:
    guarded, free = running("guarded", 1, 2).label("app", "web"), running("free", 9, 2)
    nodes = node("a", guarded, capacity=ONE_CARD), node("b", free, capacity=ONE_CARD)
    assert victims(make_pod().gpu(2), *nodes, budgets=(budget(0),)) == ["free"]
    assert victims(make_pod().gpu(2), *nodes, budgets=(budget(1),)) == ["guarded"]
    assert victims(make_pod().gpu(2), *nodes, budgets=(budget(0, disrupted=frozenset(("guarded",))),)) == ["guarded"]


def test_a_pod_of_a_spent_budget_stays_before_more_important_ones() -> None:
    guarded, free = running("guarded", 1, 1).label("app", "web"), running("free", 9, 1)
    found = preempting(make_pod().gpu(1), node("a", guarded, free, capacity=ONE_CARD), budgets=(budget(0),))
    assert [each.name for each in found.victims] == ["free"]
    assert found.violates == ()
    both = preempting(make_pod().gpu(2), node("a", guarded, free, capacity=ONE_CARD), budgets=(budget(0),))
    assert (both.violates, both.to_json()["victims"]) == (("default/web",), ["default/free", "default/guarded"])


def test_what_is_not_known_of_budgets_is_stated() -> None:
    info = node("a", running("x", 1, 2), capacity=ONE_CARD)
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    found = Scheduler().preemption(signature, Snapshot.of([info]))
    assert found is not None
    assert found.why == "PodDisruptionBudgets are not known"
    stale = preempting(make_pod().gpu(2), info, budgets=(budget(1, is_stale=True),))
    assert stale.why == "the status of PodDisruptionBudget default/web is older than its spec"


def test_nodes_that_no_eviction_helps_are_counted_in_the_message() -> None:
    nodes = [
        node("full", running("same", 100, 2), capacity=ONE_CARD),
        node("small", running("x", 1), capacity=ONE_CARD | {"nvidia.com/gpu": "1"}),
        node("mixed", running("low", 1, 1), running("high", 200, 1), capacity=ONE_CARD),
    ]
    found = preempting(make_pod().gpu(2), *nodes)
    assert not found.evicts
    assert found.message == (
        "preemption: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_never_preempts_evicts_nobody() -> None:
    pod = make_pod().gpu(2).spec(preemptionPolicy="Never")
    found = preempting(pod, node("a", running("x", 1, 2), capacity=ONE_CARD))
    assert (found.evicts, found.message) == (False, "preemption: not eligible due to preemptionPolicy=Never.")


def test_a_pod_waits_for_the_victims_on_its_nominated_node() -> None:
    ending = running("x", 1, 2).deletion("2026-01-01T00:00:00Z")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    info = node("a", ending.status(conditions=[condition]), capacity=ONE_CARD)
    found = preempting(make_pod().gpu(2).status(nominatedNodeName="a"), info)
    text = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (found.evicts, found.message) == (False, text)


def test_only_some_of_many_nodes_are_compared() -> None:
    nodes = [node(f"n{at:03}", running(f"p{at}", 1, 2), capacity=ONE_CARD) for at in range(101)]
    found = preempting(make_pod().gpu(2), *nodes)
    assert (found.nodes, found.victims, found.candidates, found.is_exact) == ((), (), 101, False)
    assert found.why == "kube-scheduler compares 100 of 101 nodes, from a random one"
    assert found.to_json() == {"victims": [], "violates": [], "isExact": False, "why": found.why}
    exact = preempting(make_pod().gpu(2), *nodes[:99], node("z", running("later", 0, 2), capacity=ONE_CARD))
    assert exact.nodes == ("z",)


def test_an_extender_can_choose_among_the_victims() -> None:
    profile = replace(DEFAULT, preempting_extenders=(UnmodelledStep("extender http://x"),))
    nodes = [node(name, running(f"p-{name}", priority, 2), capacity=ONE_CARD) for priority, name in enumerate("ab")]
    signature = PodSignature.of(make_pod().gpu(2).spec(priority=100).obj())
    found = Scheduler(profile).preemption(signature, Snapshot.of(nodes, disruption_budgets=()))
    assert found is not None
    assert (found.nodes, found.is_exact, found.why) == (("a", "b"), False, "extender http://x can choose among 2 nodes")
