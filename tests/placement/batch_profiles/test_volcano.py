"""The profile of Volcano: what differs from kube-scheduler in filters, messages and scores."""

import pytest

from tests.placement.batch_profiles.batch_clusters import Object, running, sized_node, volcano
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.views import made_anew
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.scheduler import Scheduler

NOTE = " Predicted: node constraints; the queue decides when it starts."
_POOL = make_pod().requests(cpu="2").node_selector("pool", "x")


def test_volcano_has_one_missing_resource_a_node_before_any_other_reason() -> None:
    tainted = sized_node("c", taints=["k=v:NoSchedule"])
    placement = volcano(
        make_pod().requests(cpu="8", memory="64Gi").node_selector("pool", "x"),
        *(sized_node("a"), sized_node("b", "64"), tainted, sized_node("d", "64", labels={"pool": "x"})),
    )
    assert placement.message == "0/4 nodes are unavailable: 2 Insufficient cpu, 2 Insufficient memory."
    assert placement.verdict == "Infeasible"


def test_volcano_names_the_node_selector_before_the_taint() -> None:
    placement = volcano(_POOL, sized_node("a"), sized_node("b", taints=["k=v:NoSchedule"]))
    assert placement.message == "0/2 nodes are unavailable: 2 node(s) didn't match Pod's node affinity/selector."


def test_volcano_counts_a_node_for_several_reasons_that_can_pass() -> None:
    anti = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    other = make_pod("other").label("app", "web").host_port(80).node_name("a").status(phase="Running").obj()
    placement = volcano(
        make_pod().requests(cpu="1").host_port(80).affinity(anti),
        sized_node("a", labels={"kubernetes.io/hostname": "a"}),
        other,
    )
    assert placement.message == (
        "0/1 nodes are unavailable: 1 node(s) didn't have free ports for the requested pod ports, "
        "1 node(s) didn't match pod anti-affinity rules."
    )
    assert placement.verdict == "Waiting"


@pytest.mark.parametrize(
    ("requests", "reason"),
    [({"cpu": "1"}, "Insufficient pods"), ({}, "node(s) pod number exceeded")],
)
def test_volcano_names_a_full_node_by_the_action_that_places_the_pod(requests: dict[str, str], reason: str) -> None:
    pod = make_pod().requests(**requests)
    placement = volcano(pod, sized_node("a", pods=1), running("r", "a", cpu="1"))
    assert placement.message == f"0/1 nodes are unavailable: 1 {reason}."


def test_volcano_puts_no_pod_on_a_node_that_is_over_its_cpu() -> None:
    objects = sized_node("a", "1", 1), running("r", "a", cpu="2")
    assert volcano(make_pod().gpu(1), *objects).message == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert Scheduler(DEFAULT).place(make_pod().gpu(1).obj(), made_anew(objects)).verdict == "Feasible"


def test_volcano_holds_a_pod_while_the_cluster_is_overcommitted() -> None:
    """1.2 times 8 cores less 7 that are in use leave 2.6; node b has 4 of its own."""
    objects = sized_node("a"), sized_node("b"), running("r", "a", cpu="7")
    held = volcano(make_pod().requests(cpu="2700m"), *objects)
    overcommitted = "1 not enqueued: cpu of the cluster is overcommitted"
    assert held.message == f"0/2 nodes are unavailable: 1 Insufficient cpu, {overcommitted}."
    assert held.verdict == "Waiting"
    free = volcano(make_pod().requests(cpu="2600m"), *objects)
    assert (free.node, free.message) == ("b", f"1/2 nodes are available.{NOTE}")
    assert volcano(make_pod().requests(cpu="2700m").annotate("scheduling.k8s.io/group-name", "g"), *objects).node == "b"


def test_volcano_suggests_what_helps_a_pod_that_the_cluster_is_too_small_for() -> None:
    placement = volcano(make_pod().requests(cpu="40"), sized_node("a"))
    assert placement.message == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert placement.suggestions == ("ask for 4 cpu instead of 40: the largest free block is 4",)


def test_volcano_words_a_failed_pre_filter_as_a_reason_of_every_node() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "none"}}
    listing = {"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "items": []}
    placement = volcano(make_pod().spec(volumes=[claim]), sized_node("a"), sized_node("b"), listing)
    assert placement.message == (
        "0/2 nodes are unavailable: 2 plugin VolumeBinding pre-predicates failed "
        'persistentvolumeclaim "none" not found.'
    )


def test_volcano_scores_with_fractions() -> None:
    placement = volcano(make_pod().requests(cpu="1"), sized_node("a", "3"), sized_node("b", "4"))
    assert {name: scores["binpack"] for name, scores in placement.scores.items()} == {"a": 33.33, "b": 25}
    assert all(
        scores["total"] == pytest.approx(sum(scores.values()) / 2, abs=0.01) for scores in placement.scores.values()
    )


def test_volcano_ignores_how_the_release_of_the_cluster_scores_balance() -> None:
    scores = volcano(make_pod().requests(cpu="1", memory="1Gi"), sized_node("a"), sized_node("b")).scores["a"]
    assert scores["NodeResourcesBalancedAllocation"] > 80


def ending(name: str, on: str, **requests: str) -> Object:
    pod = running(name, on, **requests)
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_volcano_suggests_what_helps_while_a_pod_on_another_node_is_being_deleted() -> None:
    placement = volcano(
        make_pod().requests(cpu="40"), sized_node("a"), sized_node("b", "1"), ending("old", "b", cpu="1")
    )

    assert placement.suggestions == ("ask for 4 cpu instead of 40: the largest free block is 4",)


@pytest.mark.parametrize(
    ("pods", "selector", "reason"),
    [
        (110, "x", "node(s) didn't match Pod's node affinity/selector"),
        (110, "", "node(s) without enough idle resources"),
        (1, "", "node(s) pod number exceeded"),
    ],
)
def test_volcano_reserves_what_pods_that_are_being_deleted_will_leave(pods: int, selector: str, reason: str) -> None:
    pod = make_pod().requests(cpu="2")
    placement = volcano(
        pod.node_selector("pool", selector) if selector else pod,
        sized_node("a", pods=pods),
        ending("old", "a", cpu="3" if pods > 1 else "1"),
    )
    assert placement.message == f"0/1 nodes are unavailable: 1 {reason}."
    assert placement.verdict == ("Infeasible" if selector else "Waiting")


def test_volcano_binds_no_pod_without_requests_to_a_node_that_is_over_its_cpu() -> None:
    placement = volcano(make_pod(), sized_node("a"), sized_node("b"), running("r", "a", cpu="5"))
    assert (placement.verdict, placement.node, placement.feasible) == ("Feasible", "b", 1)


def test_volcano_balances_the_requests_of_containers_alone() -> None:
    nodes = made_anew([sized_node("a"), sized_node("b", "64")])
    plain = make_pod().requests(cpu="1").obj()
    whole = {**plain, "spec": {**plain["spec"], "resources": {"requests": {"cpu": "2", "memory": "8Gi"}}}}

    def balance(pod: Object) -> list[float]:
        scores = Scheduler(VOLCANO).place(pod, nodes).scores
        return [scores[node]["NodeResourcesBalancedAllocation"] for node in ("a", "b")]

    assert balance(whole) == balance(plain) == [87, 99]


def test_a_soft_network_topology_of_volcano_excludes_nothing() -> None:
    view = made_anew([make_node_object("a", capacity={"cpu": "2"})])
    mode, tier = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"
    verdicts = {
        value: Scheduler(VOLCANO).place(make_pod().annotate(mode, value).annotate(tier, "1").obj(), view).verdict
        for value in ("soft", "Soft", "hard", "other")
    }

    assert verdicts == {"soft": "Feasible", "Soft": "Feasible", "hard": "Unknown", "other": "Unknown"}


@pytest.mark.parametrize(("pods", "reason"), [(1, "Insufficient pods"), (2, "node(s) pod number exceeded")])
def test_volcano_counts_pods_that_stay_against_the_most_pods_of_a_node(pods: int, reason: str) -> None:
    placement = volcano(
        make_pod().requests(cpu="1"), sized_node("a", pods=pods), running("r", "a", cpu="1"), ending("e", "a", cpu="1")
    )
    assert placement.message == f"0/1 nodes are unavailable: 1 {reason}."
