"""The profiles of Volcano and KAI: what differs from kube-scheduler in filters, words and scores."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.views import made_anew
from webhook.cluster.snapshot import Snapshot
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.profiles.profile import DEFAULT, Profile
from webhook.placement.scheduler import Placement, Scheduler
from webhook.placement.scorer import PodSignature
from webhook.policy.spec.schedulers import SchedulerSettings

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
NOTE = " Predicted: node constraints; the queue decides when it starts."


def sized_node(name: str, cpu: str = "4", gpus: int = 0, *, pods: int = 110, **facts: Any) -> Object:
    return make_node_object(name, capacity={"cpu": cpu, "memory": "16Gi", "pods": pods, GPU: gpus}, **facts)


def running(name: str, on: str, **requests: str) -> Object:
    return make_pod(name).node_name(on).requests(**requests).status(phase="Running").obj()


def volcano(pod: PodBuilder, *objects: Object) -> Placement:
    return Scheduler(VOLCANO, suggestions=1).place(pod.obj(), made_anew(objects))


def kai(pod: PodBuilder, *objects: Object) -> Placement:
    return Scheduler(KAI, suggestions=1).place(pod.obj(), made_anew(objects))


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


@pytest.mark.parametrize("profile", [VOLCANO, KAI], ids=lambda profile: str(profile.name))
def test_a_selector_that_requires_no_label_selects_every_namespace_before_1_37(profile: Profile) -> None:
    """Volcano 1.15.1 and KAI 0.12.0 are linked with these releases, whatever the release of the cluster is."""
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": match_expressions(("team", "NotIn", ["blue"])),
        "topologyKey": "zone",
    }
    pod = (
        make_pod()
        .affinity({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
        .requests(cpu="1")
    )
    blue = {"name": "blue", "labels": {"team": "blue"}}
    view = made_anew(
        [
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": each} for each in (blue, {"name": "default"})),
            sized_node("a", labels={"zone": "z"}),
            make_pod("db").namespace("blue").label("app", "db").node_name("a").status(phase="Running").obj(),
        ]
    )
    assert Scheduler(profile).place(pod.obj(), view).verdict == "Feasible"
    assert Scheduler(DEFAULT).place(pod.obj(), view).message == (
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
    )


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


def test_kai_reports_the_largest_node() -> None:
    placement = kai(make_pod().gpu(9), sized_node("a", gpus=8), sized_node("b"))
    assert placement.message == "Max GPU resources available in a single node is topped at 8."
    assert placement.verdict == "Infeasible"
    assert kai(make_pod().gpu(1), sized_node("b")).message == "No node has GPU resources."


def test_kai_counts_every_missing_resource_in_its_own_words() -> None:
    objects = (
        sized_node("a", gpus=1),
        running("r", "a", **{"cpu": "4", GPU: "1"}),
        sized_node("b", taints=["k=v:NoSchedule"], gpus=8),
    )
    placement = kai(make_pod().requests(cpu="1").gpu(1), *objects)
    assert placement.message == (
        "no nodes with enough resources were found: 1 node(s) didn't have enough resources: CPU cores, "
        "1 node(s) didn't have enough resources: GPUs, 1 node(s) had untolerated taint(s)."
    )


def test_kai_reads_the_requests_of_containers_alone() -> None:
    plain = make_pod().requests(cpu="1").obj()
    whole = {**plain, "spec": {**plain["spec"], "resources": {"requests": {"cpu": "5"}}}}
    nodes = made_anew([sized_node("a")])
    assert Scheduler(KAI).place(whole, nodes).verdict == "Feasible"
    assert Scheduler(DEFAULT).place(whole, nodes).verdict == "Infeasible"


def test_kai_puts_no_pod_on_a_node_that_is_over_its_gpus_or_cordoned() -> None:
    over_gpus = make_pod("r").node_name("a").gpu(1).status(phase="Running").obj()
    objects = sized_node("a"), sized_node("b", unschedulable=True), over_gpus
    placement = kai(make_pod().requests(cpu="1"), *objects)
    over = "1 node(s) didn't have enough resources: GPUs"
    assert placement.message == f"no nodes with enough resources were found: 1 node is unschedulable, {over}."


def test_kai_counts_a_node_without_cards_once_for_a_share() -> None:
    over_gpus = make_pod("r").node_name("a").gpu(1).status(phase="Running").obj()
    half = make_pod().annotate("gpu-fraction", "0.5").requests(cpu="2")
    placement = kai(half, sized_node("a"), sized_node("b", "2", 1), over_gpus, running("s", "b", cpu="1"))
    assert "1 node(s) didn't have enough resources: GPUs" in placement.message


def test_kai_packs_and_keeps_pods_without_gpus_off_gpu_nodes() -> None:
    objects = sized_node("a", gpus=8), sized_node("b", gpus=8), sized_node("c"), running("r", "b", **{GPU: "4"})
    assert kai(make_pod().gpu(1), *objects).node == "b"
    assert kai(make_pod().requests(cpu="1"), *objects).node == "c"


def test_kai_ignores_spreading_and_preferred_node_affinity() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pod = make_pod().label("app", "web").gpu(1).spec(topologySpreadConstraints=[spread])
    pod = pod.prefer_node(100, {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]})
    web = make_pod("web").label("app", "web").gpu(1).node_name("a").status(phase="Running").obj()
    objects = sized_node("a", gpus=8, labels={"zone": "x"}), sized_node("b", gpus=8, labels={"zone": "y"}), web
    assert kai(pod, *objects).node == "a"
    assert Scheduler(DEFAULT).place(pod.obj(), made_anew(objects)).node == "b"


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
def test_kai_needs_a_node_with_cards_for_a_share_of_one_and_which_will_do_is_unknown(key: str) -> None:
    pod = make_pod().requests(cpu="1").annotate(key, "0.5")
    some = kai(pod, sized_node("a", gpus=8), sized_node("b"))
    assert (some.verdict, some.node, some.unmodelled) == ("Unknown", None, ("GPU sharing",))
    assert some.message == (
        f"1/2 nodes are available.{NOTE} Whether one of them will do depends on GPU sharing, which is not modelled."
    )
    none = kai(pod, sized_node("b"))
    assert (none.verdict, none.message) == ("Infeasible", "No node has GPU resources.")


def test_a_share_of_a_card_is_for_kai_alone() -> None:
    pod = make_pod().requests(cpu="1").annotate("gpu-fraction", "0.5")
    assert volcano(pod, sized_node("b")).verdict == "Feasible"
    assert Scheduler(DEFAULT).place(pod.obj(), made_anew([sized_node("b")])).verdict == "Feasible"


def test_kai_names_nodes_without_cards_beside_other_reasons() -> None:
    placement = kai(
        make_pod().requests(cpu="1").annotate("gpu-fraction", "0.5"),
        *(sized_node("a", gpus=8, taints=["k=v:NoSchedule"]), sized_node("b")),
    )
    assert (placement.verdict, placement.suggestions) == (
        "Infeasible",
        ("1 node would fit if the pod tolerated k=v",),
    )
    assert placement.message == (
        "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs, "
        "1 node(s) had untolerated taint(s)."
    )


def test_scheduler_of_a_pod_is_that_of_the_backend_of_its_name() -> None:
    settings = {"mine": SchedulerSettings(backend="volcano"), "volcano": SchedulerSettings(backend="default")}
    schedulers = BackendSchedulers.of(Scheduler(), Scheduler, settings)
    snapshot = made_anew([sized_node("a")])

    def words(scheduler: str) -> str:
        pod = make_pod().requests(cpu="1").node_selector("pool", "x").scheduler(scheduler).obj()
        return schedulers.answer(PodSignature.of(pod), snapshot).message.partition(": 1")[0]

    available = "0/1 nodes are available"
    assert [words("mine"), words("volcano"), words("default-scheduler"), words("other")] == [
        "0/1 nodes are unavailable",
        available,
        available,
        available,
    ]
    assert words("kai-scheduler") == "no nodes with enough resources were found"


def test_names_of_one_backend_share_a_scheduler_and_its_cache() -> None:
    settings = {name: SchedulerSettings(backend="volcano") for name in ("x", "y")}
    schedulers = BackendSchedulers.of(Scheduler(), Scheduler, settings)
    assert schedulers.by_name["x"] is schedulers.by_name["y"] is schedulers.by_name["volcano"]
    assert len(schedulers.caches) == 3 * len(Scheduler().caches)
    assert len({id(cache) for cache in schedulers.caches}) == len(schedulers.caches)


def test_empty_cluster_scores_nothing() -> None:
    assert Scheduler(VOLCANO).place(make_pod().obj(), Snapshot.of(())).verdict == "Infeasible"
    assert Scheduler(KAI).place(make_pod().obj(), Snapshot.of(())).verdict == "Infeasible"


def test_kai_names_a_mig_profile_that_is_short() -> None:
    mig = "nvidia.com/mig-1g.5gb"
    nodes = [make_node_object("a", capacity={mig: "1"}), make_node_object("b", capacity={mig: "2"})]
    running = make_pod("r").requests(**{mig: 1}).node_name("b").obj()

    placement = Scheduler(KAI).place(make_pod().requests(**{mig: 2}).obj(), made_anew([*nodes, running]))

    assert f": 2 node(s) didn't have enough of mig profile: {mig}." in placement.message


@pytest.mark.parametrize(
    "key",
    [
        "kueue.x-k8s.io/podset-required-topology",
        "kueue.x-k8s.io/podset-slice-required-topology",
        "kai.scheduler/topology-required-placement",
        "volcano.sh/network-topology-mode",
        "volcano.sh/network-topology-highest-tier",
    ],
)
def test_topology_that_another_component_requires_leaves_a_pod_that_fits_unknown(key: str) -> None:
    view = made_anew([make_node_object("a", capacity={"cpu": "2"})])
    fitting, other = (make_pod().requests(cpu=amount).annotate(key, "rack").obj() for amount in (1, 3))
    preferred = make_pod().requests(cpu=1).annotate("kueue.x-k8s.io/podset-preferred-topology", "rack").obj()

    for profile in (KAI, VOLCANO):
        placement = Scheduler(profile).place(fitting, view)
        assert (placement.verdict, key in placement.message) == ("Unknown", True)
        assert Scheduler(profile).place(other, view).verdict == "Infeasible"
        assert Scheduler(profile).place(preferred, view).verdict == "Feasible"


def test_a_soft_network_topology_of_volcano_excludes_nothing() -> None:
    view = made_anew([make_node_object("a", capacity={"cpu": "2"})])
    mode, tier = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"
    verdicts = {
        value: Scheduler(VOLCANO).place(make_pod().annotate(mode, value).annotate(tier, "1").obj(), view).verdict
        for value in ("soft", "Soft", "hard", "other")
    }

    assert verdicts == {"soft": "Feasible", "Soft": "Feasible", "hard": "Unknown", "other": "Unknown"}
