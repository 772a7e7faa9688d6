"""The pods of drained nodes: which stay, which fit elsewhere, which are lost."""

from tests.support.builders import make_pod
from tests.support.moves import budget, cards, drained, running
from webhook.placement.capacity.drain import Drain

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
