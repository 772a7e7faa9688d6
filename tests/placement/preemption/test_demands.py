"""Victims by host ports, topology spread and volumes."""

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import make_attachment, make_csi_node, make_pv, make_pvc, uses
from tests.support.plugins import node
from tests.support.preemption import ROOM, running, victims
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.scheduler import PodSignature, Scheduler

_ZONE = "topology.kubernetes.io/zone"


def _spread(skew: int, **fields: object) -> PodBuilder:
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": _ZONE}
    constraint = {**selector, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **fields}
    return make_pod().label("app", "web").spec(topologySpreadConstraints=[constraint])


def _web(name: str, priority: int = 1) -> PodBuilder:
    return running(name, priority).label("app", "web")


@pytest.mark.parametrize(
    ("skew", "evicted"),
    [
        pytest.param(1, ["b", "c", "d"], id="as many selected pods stay as in the other zone"),
        pytest.param(2, ["c", "d"], id="and one more"),
        pytest.param(4, [], id="it fits"),
    ],
)
def test_as_many_selected_pods_are_evicted_as_exceed_the_skew(skew: int, evicted: list[str]) -> None:
    here = node("n", *map(_web, "abcd", (5, 4, 3, 2)), running("z"), capacity=ROOM, labels={_ZONE: "a"})
    there = node("o", _web("there", 200), capacity=ROOM, labels={_ZONE: "b"}, taints=["no=no:NoSchedule"])
    assert victims(_spread(skew), here, there) == evicted


def test_a_pod_that_is_being_deleted_is_not_counted_but_taken_out_of_the_count() -> None:
    ending = _web("ending").deletion("2026-01-01T00:00:00Z")
    here = node("n", _web("a", 5), _web("b", 4), _web("c", 3), ending, capacity=ROOM, labels={_ZONE: "a"})
    there = node("o", capacity=ROOM, labels={_ZONE: "b"}, taints=["no=no:NoSchedule"])
    # Three count. Without all four, there are -1; two can be put back, and the two last cannot.
    assert victims(_spread(2), here, there) == ["c", "ending"]


def test_with_too_few_domains_the_pods_of_all_others_count_as_none() -> None:
    info = node("n", _web("a", 5), _web("b", 4), capacity=ROOM, labels={_ZONE: "a"})
    assert victims(_spread(2, minDomains=2), info) == ["b"]


@pytest.mark.parametrize(
    ("limit", "evicted"),
    [pytest.param(3, [], id="enough"), pytest.param(2, ["y"], id="one"), pytest.param(1, ["x", "y"], id="both")],
)
def test_pods_are_evicted_whose_volumes_exceed_the_limit(limit: int, evicted: list[str]) -> None:
    pods = running("x", 2).spec(volumes=uses("x"), nodeName="a"), running("y", 1).spec(volumes=uses("y"), nodeName="a")
    assert _evicted(make_pod().spec(volumes=uses("z")), *pods, limit=limit) == evicted


def test_an_attached_volume_without_a_pod_counts() -> None:
    pods = [running("x", 2).spec(volumes=uses("x"), nodeName="a")]
    assert _evicted(make_pod().spec(volumes=uses("z")), *pods, limit=2, attached="y") == ["x"]


def test_the_pod_is_evicted_that_uses_the_claim_for_one_pod() -> None:
    pods = running("x", 2).spec(volumes=uses("alone"), nodeName="a"), running("y", 1).spec(nodeName="a")
    assert _evicted(make_pod().spec(volumes=uses("alone")), *pods, limit=9) == ["x"]


def test_a_shared_volume_is_no_new_one_for_equal_pods_that_are_put_back_later() -> None:
    port = running("port").spec(nodeName="a").host_port(80)
    pods = [running(name, 1).spec(volumes=uses(name), nodeName="a") for name in "xz"]
    for each in (pods, pods[::-1]):
        found = _found(make_pod().spec(volumes=uses("x")).host_port(80), port, *each, limit=1)
        assert ({pod.name for pod in found.victims}, found.is_exact) == ({"z", "port"}, False)


@pytest.mark.parametrize(
    ("priority", "limit", "evicted"),
    [
        pytest.param(100, 1, [], id="that of a pod of its own priority is too much"),
        pytest.param(101, 1, [], id="so is that of a more important one"),
        pytest.param(100, 2, ["y"], id="there is room beside it"),
        pytest.param(99, 1, ["x", "y"], id="a less important pod does not keep its volume"),
    ],
)
def test_volumes_of_pods_of_no_lower_priority_stay(priority: int, limit: int, evicted: list[str]) -> None:
    pods = [running(name, at).spec(volumes=uses(name), nodeName="a") for name, at in (("x", priority), ("y", 1))]
    assert _evicted(make_pod().spec(volumes=uses("z")), *pods, limit=limit) == evicted


@pytest.mark.parametrize(
    ("app", "nominated_to", "reason"),
    [
        pytest.param("db", "a", "didn't satisfy existing pods anti-affinity rules", id="it is near the nominated pod"),
        pytest.param("web", "a", "didn't match pod affinity rules", id="the nominated pod has another label"),
        pytest.param("db", "b", "didn't match pod affinity rules", id="it is nominated to another node"),
    ],
)
def test_a_pod_that_only_a_nominated_pod_attracts_meets_the_later_rules_but_never_fits(
    app: str, nominated_to: str, reason: str
) -> None:
    """kube-scheduler filters with the nominated pods, then without them."""

    def affinity(kind: str, of: str) -> dict[str, object]:
        term = {"labelSelector": {"matchLabels": {"app": of}}, "topologyKey": _ZONE}
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    waits = make_pod("waits").label("app", app).spec(priority=200).status(nominatedNodeName=nominated_to)
    repels = running("repels", 200).spec(nodeName="a").affinity(affinity("podAntiAffinity", "web"))
    low = running("low", 1, 2).spec(nodeName="a").label("app", "db")
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": 2}, labels={_ZONE: name}) for name in "ab"]
    pending = make_pod().label("app", "web").gpu(1).affinity(affinity("podAffinity", "db")).spec(priority=100)
    objects = *nodes, *(each.namespace("default").obj() for each in (waits, repels, low))

    found = Scheduler().preemption(
        PodSignature.of(pending.namespace("default").obj()),
        snapshot_from_documents(Document("cluster", each) for each in objects),
    )

    assert found is not None
    assert (found.evicts, f"1 node(s) {reason}" in found.message) == (False, True), found.message


@pytest.mark.parametrize(("nominated", "evicted"), [(False, ["y"]), (True, ["x", "y"])])
def test_a_nominated_pod_takes_one_of_the_places_for_pods(nominated: bool, evicted: list[str]) -> None:
    running_pods = [running(name, priority).spec(nodeName="a") for name, priority in (("x", 2), ("y", 1))]
    waiting = make_pod("waits").spec(priority=200).status(nominatedNodeName="a") if nominated else None
    pods = [each.namespace("default").obj() for each in (*running_pods, *([waiting] if waiting else []))]
    objects = make_node_object("a", capacity={"pods": 2}), *pods
    signature = PodSignature.of(make_pod().namespace("default").spec(priority=100).obj())

    found = Scheduler().preemption(signature, snapshot_from_documents(Document("cluster", each) for each in objects))

    assert found is not None
    assert [each.name for each in found.victims] == evicted


def _evicted(pod: PodBuilder, *running_pods: PodBuilder, limit: int, attached: str = "") -> list[str]:
    """The certain victims on a node that can have `limit` volumes attached."""
    found = _found(pod, *running_pods, limit=limit, attached=attached)
    assert found.is_exact
    return [each.name for each in found.victims]


def _found(pod: PodBuilder, *running_pods: PodBuilder, limit: int, attached: str = "") -> PredictedPreemption:
    objects = [make_node_object("a"), make_csi_node("a", disk=limit)]
    objects += [each.namespace("default").obj() for each in running_pods]
    for name in ("x", "y", "z", "alone"):
        modes = ["ReadWriteOncePod" if name == "alone" else "ReadWriteOnce"]
        objects += [make_pvc(name, volume=name, accessModes=modes), make_pv(name)]
    objects += [make_attachment("a", attached)] if attached else []
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    found = Scheduler().preemption(PodSignature.of(pod.namespace("default").spec(priority=100).obj()), snapshot)
    assert found is not None
    return found
