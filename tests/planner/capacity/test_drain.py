"""The pods of drained nodes: which stay, which fit elsewhere, which are lost."""

import pytest

from placement_planner.capacity.drain import Drain, DrainedPod, drain
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.moves import Object, budget, cards, drained, read, running, schedulers

_CORDON_TOLERATED = "node.kubernetes.io/unschedulable"


def outcomes(found: Drain) -> list[tuple[str, str, str | None]]:
    return [(each.pod.name, each.outcome, each.node) for each in found.pods]


def test_pods_are_placed_on_the_other_nodes_until_these_are_full() -> None:
    found = drained([cards("a", 8), cards("b", 4), *(running(f"p{n}", "a", 2) for n in range(3))], "a")

    assert outcomes(found) == [("p0", "Fits", "b"), ("p1", "Fits", "b"), ("p2", "Waiting", None)]
    assert found.pods[2].message == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    )
    assert found.text == "2 of 3 pods fit elsewhere"


def test_pods_of_higher_priority_are_placed_first_then_older_ones() -> None:
    young, old = running("a-young", "a", 2), running("b-old", "a", 2)
    pods = [
        young.creation("2026-03-02T00:00:00Z"),
        old.creation("2026-03-01T00:00:00Z"),
        running("c-high", "a", 2).spec(priority=5),
    ]

    assert outcomes(drained([cards("a", 8), cards("b", 4), *pods], "a")) == [
        ("c-high", "Fits", "b"),
        ("b-old", "Fits", "b"),
        ("a-young", "Waiting", None),
    ]


def test_pods_of_daemon_sets_and_mirror_pods_stay() -> None:
    mirror = make_pod("static").node_name("a").annotate("kubernetes.io/config.mirror", "x").status(phase="Running")
    objects = [cards("a", 0), cards("b", 0), running("agent", "a", kind="DaemonSet"), mirror, running("p", "a")]

    found = drained(objects, "a")

    assert [each.name for each in found.staying] == ["agent", "static"]
    assert outcomes(found) == [("p", "Fits", "b")]
    assert [pod.name for pod in found.snapshot.nodes[0].pods] == ["agent", "static"]


def test_a_pod_without_a_controller_is_lost_and_needs_no_room() -> None:
    bare = make_pod("bare").node_name("a").gpu(4).status(phase="Running")

    found = drained([cards("a", 8), cards("b", 4), bare, running("p", "a", 4)], "a")

    assert outcomes(found) == [("bare", "Lost", None), ("p", "Fits", "b")]
    assert found.text == "1 of 1 pod fits elsewhere"


def test_a_pod_that_is_being_deleted_is_not_placed_again() -> None:
    ending = running("ending", "a", 4).deletion("2026-03-01T00:00:00Z")

    found = drained([cards("a", 8), cards("b", 4), ending, running("p", "a", 4)], "a")

    assert [each.name for each in found.ending] == ["ending"]
    assert outcomes(found) == [("p", "Fits", "b")]


def test_several_nodes_are_drained_together() -> None:
    objects = [cards("a", 2), cards("b", 2), cards("c", 2), running("p", "a", 2), running("q", "b", 2)]

    assert outcomes(drained(objects, "a", "b")) == [("p", "Fits", "c"), ("q", "Waiting", None)]


def test_a_pod_that_tolerates_the_cordon_may_come_back() -> None:
    pod = running("p", "a", 2).toleration(_CORDON_TOLERATED, operator="Exists")

    found = drained([cards("a", 2), pod], "a")

    assert outcomes(found) == [("p", "Returns", "a")]
    assert found.text == "0 of 1 pod fits elsewhere"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_pods_that_tolerate_the_cordon_come_back_to_any_of_the_drained_nodes(order: str) -> None:
    """Each pod fits on one node only."""
    pods = running("large", "b", 8), running("small", "a", 4), running("plain", "a", 2)
    tolerant = [each.toleration(_CORDON_TOLERATED, operator="Exists") for each in pods[:2]]

    found = drained([cards("a", 6), cards("b", 8), cards("c", 2), *tolerant, pods[2]], *order)

    assert sorted(outcomes(found)) == [("large", "Returns", "b"), ("plain", "Fits", "c"), ("small", "Returns", "a")]
    assert (found.fitting, found.replaced) == (1, 3)


def test_the_eviction_of_a_pod_whose_budget_is_spent_is_refused_but_its_place_is_named() -> None:
    objects = [cards("a", 2), cards("b", 2), running("p", "a", 2)]

    (refused,) = drained([*objects, budget("web", 0)], "a").pods
    (allowed,) = drained([*objects, budget("web", 1)], "a").pods

    assert (refused.outcome, refused.node) == ("Fits", "b")
    assert refused.refusal == (
        "the PodDisruptionBudget team-a/web allows no disruption (2 pods are healthy, 2 must be)"
    )
    assert allowed.refusal == ""


def test_without_budgets_in_the_file_they_are_not_known() -> None:
    assert not drained([cards("a", 2)], "a").knows_budgets
    empty = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": []}
    assert drained([cards("a", 2), empty], "a").knows_budgets


def test_pods_with_devices_of_claims_are_unknown() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "shared"}]

    found = drained([cards("a", 2), cards("b", 2), running("p", "a").spec(resourceClaims=claims)], "a")

    assert outcomes(found) == [("p", "Unknown", None)]
    assert (
        found.pods[0].message
        == "its devices are allocated by ResourceClaims, which a drain frees; this is not modelled"
    )


def test_a_pod_whose_nodes_cannot_be_judged_is_unknown_and_does_not_wait() -> None:
    """A file without PersistentVolumeClaims does not say where the volume is."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pods = [running("p", "a").spec(volumes=volumes), running("q", "a", 4)]

    found = drained([cards("a", 4), cards("b", 2), *pods], "a")

    assert outcomes(found) == [("p", "Unknown", None), ("q", "Waiting", None)]


def test_progress_has_the_number_of_placed_pods_and_all() -> None:
    shown = []
    snapshot, disruptions = read([cards("a", 4), cards("b", 4), running("p", "a", 1), running("q", "a", 1)])

    drain(snapshot, disruptions.bound, None, ["a"], schedulers(), lambda *of: shown.append(of))

    assert shown == [(1, 2), (2, 2)]


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_a_budget_counts_pods_whose_new_pods_find_no_node(allowed: int) -> None:
    """Of three pods, one fits elsewhere, and two leave the budget one short each."""
    waiting = [running(f"w{number}", "a", 2) for number in range(2)]
    objects = [cards("a", 8), cards("b", 1), running("fits", "a", 1), *waiting, budget("web", allowed)]
    pods = {each.pod.name: each for each in drained(objects, "a").pods}
    found = {name: (each.outcome, bool(each.refusal), each.is_refused_later) for name, each in pods.items()}

    assert found["fits"] == ("Fits", allowed == 0, False)
    for number in range(2):
        assert found[f"w{number}"] == ("Waiting", number >= allowed, 0 < allowed <= number)


def low(name: str, node: str, priority: int, gpus: int = 2) -> PodBuilder:
    return running(name, node, gpus).spec(priority=priority)


def preempted(pod: DrainedPod) -> list[str]:
    return [*pod.preemption.names()] if pod.preemption else []


def test_pod_of_higher_priority_names_the_pods_that_it_preempts() -> None:
    """kube-scheduler keeps the highest priorities, and takes the node whose victims have the lowest ones."""
    objects = [cards("a", 4), cards("b", 4), cards("c", 4), running("high", "a", 2).spec(priority=9)]
    objects += [low("b-5", "b", 5), low("b-1", "b", 1), low("c-5", "c", 5), low("c-4", "c", 4)]

    (high,) = drained(objects, "a").pods

    assert (high.outcome, preempted(high)) == ("Waiting", ["team-a/b-1"])
    assert high.message.endswith("Waiting; kube-scheduler would evict 1 pod on b: team-a/b-1.")


def test_violated_budgets_are_named_with_the_preempted_pods() -> None:
    objects = [cards("a", 4), cards("b", 4), running("high", "a", 2).spec(priority=9), low("low", "b", 1, gpus=4)]

    (high,) = drained([*objects, budget("web", 0, app="app")], "a").pods

    assert high.message.endswith("1 pod on b: team-a/low; violates PodDisruptionBudget team-a/web.")


@pytest.mark.parametrize(
    "spec", [{"priority": 1}, {"priority": 9, "preemptionPolicy": "Never"}], ids=["no lower priority", "never"]
)
def test_pod_that_cannot_preempt_waits(spec: Object) -> None:
    (pod,) = drained([cards("a", 2), cards("b", 2), running("p", "a", 2).spec(**spec), low("q", "b", 1)], "a").pods

    assert (pod.outcome, preempted(pod)) == ("Waiting", [])


def test_pods_of_drained_nodes_are_not_preempted() -> None:
    objects = [cards("a", 4), cards("b", 1), running("high", "a", 2).spec(priority=9), low("daemon", "a", 0)]

    assert [preempted(each) for each in drained(objects, "a").pods] == [[], []]


def test_budget_that_lets_one_eviction_pass_and_then_none_is_reported() -> None:
    objects = [cards("a", 6), cards("b", 0), *(running(f"p{number}", "a", 2) for number in range(3))]

    found = drained([*objects, budget("web", 1)], "a").pods

    spent = (
        "the PodDisruptionBudget team-a/web allows 1 of these evictions: the new pods find no node, so it allows no "
        "other"
    )
    assert [each.refusal for each in found] == ["", spent, spent]
    assert [each.is_refused_later for each in found] == [False, True, True]


def test_budget_that_new_pods_restore_lets_the_drain_go_in_steps() -> None:
    objects = [cards("a", 6), cards("b", 6), *(running(f"p{number}", "a", 2) for number in range(3))]

    assert [each.refusal for each in drained([*objects, budget("web", 1)], "a").pods] == ["", "", ""]


def test_old_pod_of_low_priority_is_placed_after_a_young_one_of_high_priority() -> None:
    old = running("old", "a", 2).creation("2026-03-01T00:00:00Z").spec(priority=-1)
    young = running("young", "a", 2).creation("2026-03-02T00:00:00Z").spec(priority=0)

    assert outcomes(drained([cards("a", 4), cards("b", 2), old, young], "a")) == [
        ("young", "Fits", "b"),
        ("old", "Waiting", None),
    ]


def test_pods_that_end_leave_their_room_and_those_of_daemon_sets_stay_though_they_end() -> None:
    tolerates = running("p", "a", 4).toleration(_CORDON_TOLERATED, operator="Exists")
    ending = running("ending", "a", 4).deletion("2026-03-01T00:00:00Z")
    agent = running("agent", "a", kind="DaemonSet").deletion("2026-03-01T00:00:00Z")

    found = drained([cards("a", 8), tolerates.gpu(8), ending, agent], "a")

    assert outcomes(found) == [("p", "Returns", "a")]
    assert ([each.name for each in found.ending], [each.name for each in found.staying]) == (["ending"], ["agent"])
    assert [pod.name for pod in found.snapshot.nodes[0].pods if pod.name in ("ending", "agent")] == ["agent"]


def test_pods_that_return_restore_their_budget() -> None:
    pods = [running(f"p{number}", "a", 2).toleration(_CORDON_TOLERATED, operator="Exists") for number in range(3)]

    found = drained([cards("a", 6), *pods, budget("web", 1)], "a").pods

    assert [(each.outcome, each.refusal) for each in found] == [("Returns", "")] * 3


def test_pods_that_are_not_ready_use_up_no_budget() -> None:
    unready = [
        running(f"p{number}", "a", 2).status(phase="Running", conditions=[{"type": "Ready", "status": "False"}])
        for number in range(2)
    ]
    ready = [running(f"q{number}", "a", 2) for number in range(2)]
    objects = [cards("a", 8), cards("b", 0), *unready, *ready, budget("web", 1)]

    found = {each.pod.name: bool(each.refusal) for each in drained(objects, "a").pods}

    assert found == {"p0": False, "p1": False, "q0": False, "q1": True}


@pytest.mark.parametrize(
    ("room", "pods", "text"),
    [
        (0, 1, "0 of 1 pod fits elsewhere"),
        (2, 1, "1 of 1 pod fits elsewhere"),
        (2, 3, "1 of 3 pods fits elsewhere"),
        (4, 3, "2 of 3 pods fit elsewhere"),
        (0, 3, "0 of 3 pods fit elsewhere"),
    ],
)
def test_text_of_a_drain_has_the_numbers(room: int, pods: int, text: str) -> None:
    leaving = [running(f"p{number}", "a", 2) for number in range(pods)]

    assert drained([cards("a", 8), cards("b", room), *leaving], "a").text == text
