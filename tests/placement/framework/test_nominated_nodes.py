"""Nodes that are kept for pods which wait for them."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.scheduler import Placement, PodSignature, Scheduler

Object = dict[str, Any]

_HOST = "kubernetes.io/hostname"
_FULL = make_pod("full").requests(cpu="4")


def kept(name: str, node: str, pod: PodBuilder = _FULL, *, priority: int = 0) -> Object:
    """`pod` under that name, nominated to `node`."""
    found = pod.spec(priority=priority).status(phase="Pending", nominatedNodeName=node).obj()
    found["metadata"]["name"] = name
    return found


def snapshot_of(*pods: Object | PodBuilder, nodes: str = "ab") -> Snapshot:
    """Nodes of four cores, and `pods`."""
    made = [make_node_object(name, capacity={"cpu": 4, "nvidia.com/gpu": 8}) for name in nodes]
    raw = [each.obj() if isinstance(each, PodBuilder) else each for each in pods]
    return snapshot_from_documents(Document("cluster", each) for each in (*made, *raw))


def place(pod: PodBuilder, snapshot: Snapshot, **options: Any) -> Placement:
    return Scheduler(**options).place(pod.obj(), snapshot)


def away(app: str) -> Object:
    term = {"topologyKey": _HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_node_that_is_kept_for_a_pod_of_the_same_priority_is_full() -> None:
    placement = place(_FULL, snapshot_of(kept("x", "a"), kept("y", "b")))
    assert (placement.verdict, placement.message) == ("Waiting", "0/2 nodes are available: 2 Insufficient cpu.")


@pytest.mark.parametrize(("priority", "feasible"), [(9, 1), (10, 1), (11, 2)])
def test_a_pod_yields_to_its_own_priority_and_higher_ones(priority: int, feasible: int) -> None:
    snapshot = snapshot_of(kept("x", "a", priority=10))
    assert place(_FULL.spec(priority=priority), snapshot).feasible == feasible


def test_a_class_that_is_only_named_has_its_priority() -> None:
    snapshot = snapshot_of(kept("x", "a", priority=10))
    assert place(_FULL.spec(priorityClassName="system-node-critical"), snapshot).feasible == 2


def test_scores_count_only_what_runs() -> None:
    small = make_pod().requests(cpu="1")
    beside = place(small, snapshot_of(kept("x", "a", small)))
    assert beside.scores == place(small, snapshot_of()).scores


def test_labels_that_only_nominated_pods_ask_for_are_looked_at() -> None:
    runs = make_pod("runs").node_name("c").affinity(away("web"))
    pod = make_pod().label("app", "web").label("tier", "x")
    term = {"topologyKey": _HOST, "labelSelector": {"matchLabels": {"tier": "x"}}}
    by_tier = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    snapshot = snapshot_of(runs, kept("x", "a", make_pod().affinity(by_tier)), nodes="abc")
    assert list(place(pod, snapshot).scores) == ["b"]


def test_anti_affinity_of_nominated_pods_counts_only_where_that_of_a_running_pod_does() -> None:
    web = make_pod().label("app", "web")
    from_others = make_pod("runs").node_name("b").affinity(away("db"))
    snapshot = snapshot_of(from_others, kept("x", "a", make_pod().affinity(away("web"))))
    assert list(place(web, snapshot).scores) == ["a", "b"]


def _configuration(*names: str) -> str:
    profiles = "".join(f"- schedulerName: {name}\n" for name in names)
    return f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n{profiles}"


@pytest.mark.parametrize(
    ("own", "other", "yields"),
    [
        pytest.param("one", "two", True, id="profiles of one configuration"),
        pytest.param("one", "three", False, id="another scheduler"),
        pytest.param("three", "three", True, id="the pod's own scheduler"),
        pytest.param("three", "one", False, id="another than the pod's own"),
    ],
)
def test_a_pod_yields_to_pods_of_the_same_scheduler(own: str, other: str, yields: bool) -> None:
    profile = parse_profiles(_configuration("one", "two"), "file")["one"]
    snapshot = snapshot_of(kept("x", "a", _FULL.scheduler(other)))
    placement = place(_FULL.scheduler(own), snapshot, profile=profile)
    assert list(placement.scores) == (["b"] if yields else ["a", "b"])


def test_the_built_in_profiles_are_those_of_one_scheduler() -> None:
    snapshot = snapshot_of(kept("x", "a", _FULL.scheduler("binpack-scheduler")))
    assert list(place(_FULL, snapshot).scores) == ["b"]


def test_the_node_that_a_pod_is_nominated_to_comes_first() -> None:
    runs = make_pod("runs").node_name("b").requests(cpu="1")
    pod = make_pod("x").requests(cpu="1").status(nominatedNodeName="b")
    snapshot = snapshot_of(runs, kept("x", "b", make_pod().requests(cpu="1")))
    placement = place(pod, snapshot)
    assert (placement.node, placement.feasible, placement.total) == ("b", 1, 2)
    reasons = Scheduler().explain(PodSignature.of(pod.obj()), snapshot)
    assert reasons == {"a": ("not looked at: the pod is nominated to b",)}


def test_a_pod_does_not_yield_to_itself() -> None:
    pod = _FULL.status(nominatedNodeName="a")
    own = kept("full", "a")
    assert place(pod, snapshot_of(own)).node == "a"
    assert place(pod, snapshot_of(own, kept("y", "a"))).node == "b"


def test_reasons_are_those_of_the_message() -> None:
    snapshot = snapshot_of(kept("x", "a", make_pod().host_port(80)), make_pod("runs").node_name("b").requests(cpu="4"))
    pod = make_pod().host_port(80).requests(cpu="4")
    assert Scheduler().explain(PodSignature.of(pod.obj()), snapshot) == {
        "a": ("node(s) didn't have free ports for the requested pod ports",),
        "b": ("Insufficient cpu",),
    }


def test_suggestions_take_nothing_from_nominated_pods() -> None:
    runs = make_pod("runs").node_name("a").gpu(2)
    snapshot = snapshot_of(runs, kept("x", "a", make_pod().gpu(4), priority=10), nodes="a")
    assert place(make_pod().gpu(3), snapshot, suggestions=3).suggestions == (
        "ask for 2 nvidia.com/gpu instead of 3: the largest free block is 2",
        "a fits once 1 nvidia.com/gpu is freed",
    )
    assert place(make_pod().gpu(5), snapshot, suggestions=3).suggestions == (
        "ask for 2 nvidia.com/gpu instead of 5: the largest free block is 2",
    )


def test_pods_of_other_schedulers_are_one_question_where_no_pod_is_nominated() -> None:
    framework, snapshot = Scheduler(), snapshot_of()
    first = framework.place(_FULL.obj(), snapshot)
    assert framework.place(_FULL.scheduler("other").obj(), snapshot) is first


def test_many_kept_nodes_do_not_outlast_the_deadline() -> None:
    nodes = [f"n{number}" for number in range(10)]
    made = [make_node_object(name) for name in nodes]
    web = make_pod().label("app", "web").affinity(away("web"))
    pods = [kept(f"x-{name}", name, web) for name in nodes]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*made, *pods))
    asked = 0

    def expired() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    assert Scheduler().place(web.obj(), snapshot, expired).verdict == "Unknown"
    assert asked == 21


@pytest.mark.parametrize("status", [{"nominatedNodeName": 1}, ["a"]])
def test_a_malformed_nomination_is_reported(status: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place(make_pod().obj() | {"status": status}, snapshot_of())
    assert {error.path for error in caught.value.errors} <= {"status", "status.nominatedNodeName"}


def test_other_nodes_are_seen_without_their_nominated_pods() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [make_node_object(name, labels={"zone": "z"}, capacity={"cpu": 4}) for name in "ab"]
    small = make_pod("small").requests(cpu="1")
    pods = [kept("x", "a", small.label("app", "web")), kept("y", "b", small)]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *pods))

    placement = place(make_pod().requests(cpu="1").label("app", "none").affinity(apart).spec(priority=0), snapshot)
    runs = place(make_pod("r").label("app", "db").affinity(apart), snapshot_of(make_pod("w").node_name("a")))

    assert (placement.verdict, placement.node, placement.feasible) == ("Feasible", "b", 1)
    assert runs.feasible == 2
