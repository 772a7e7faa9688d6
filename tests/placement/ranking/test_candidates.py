"""The candidate nodes of another scheduler."""

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.objects.storage import make_storage_class
from tests.support.plugins import node
from tests.support.views import made_anew
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import DeadlineNearError, never
from webhook.placement.profiles.profile import BINPACK, DEFAULT, PACK_GPUS
from webhook.placement.ranking.candidates import permanent_rejections, priorities
from webhook.placement.scorer import PodSignature

_GPUS = {"nvidia.com/gpu": 8}


def rejections(pod: PodBuilder, *nodes: NodeInfo) -> dict[str, str]:
    snapshot = Snapshot.of(nodes)
    rows = np.arange(len(nodes))
    found = permanent_rejections(DEFAULT, PodSignature.of(pod.obj()), snapshot, rows, never)
    return {snapshot.nodes[row].node.name: reason for row, reason in found.items()}


def test_nodes_that_could_never_take_the_pod_are_rejected_by_reason() -> None:
    nodes = [
        node("fits", capacity=_GPUS),
        node("small", capacity={"nvidia.com/gpu": 4}),
        node("tainted", capacity=_GPUS, taints=["a=b:NoSchedule"]),
    ]

    assert rejections(make_pod().gpu(8), *nodes) == {
        "small": "Insufficient nvidia.com/gpu",
        "tainted": "node(s) had untolerated taint(s)",
    }


@pytest.mark.parametrize(
    "running",
    [
        pytest.param(make_pod("other").gpu(8), id="that use all cards"),
        pytest.param(make_pod("other").host_port(80), id="with the same port"),
        pytest.param(make_pod("other").label("app", "a"), id="that the pod avoids"),
    ],
)
def test_running_pods_reject_no_node(running: PodBuilder) -> None:
    """They may be gone by the time of the view of kube-scheduler, which has filtered by its own."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    avoids = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pending = make_pod("p").gpu(8).host_port(80).affinity(avoids)

    assert rejections(pending, node("a", running, capacity=_GPUS)) == {}


def test_node_that_another_pod_is_nominated_to_is_not_the_only_one() -> None:
    pending = make_pod("p").obj() | {"status": {"nominatedNodeName": "a"}}
    snapshot = Snapshot.of([node("a"), node("b")])

    assert permanent_rejections(DEFAULT, PodSignature.of(pending), snapshot, np.arange(2), never) == {}


def test_nodes_that_the_pod_does_not_name_are_rejected() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}

    assert rejections(make_pod().require_node(named), node("a"), node("b")) == {
        "b": "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    }


def test_conflicting_terms_reject_every_node() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]}

    assert rejections(make_pod().require_node(named), node("a"), node("b")).keys() == {"a", "b"}


def test_one_of_the_best_nodes_has_the_highest_priority() -> None:
    """So that it is known which one kube-scheduler picks."""
    nodes = [node(name, capacity=_GPUS) for name in ("a", "b")]
    used = node("c", make_pod().gpu(4), capacity=_GPUS)
    pod = PodSignature.of(make_pod().gpu(4).obj())

    def found(*nodes: NodeInfo) -> list[int]:
        return list(priorities(BINPACK, pod, Snapshot.of(nodes), np.arange(len(nodes)), never))

    assert found(*nodes) == [10, 0]
    assert found(*nodes, used) == [0, 0, 10]
    assert found(used) == [10]


def test_priorities_below_the_best_are_in_proportion_to_the_scores() -> None:
    pools = [node(name, labels={"pool": name}, capacity=_GPUS) for name in "abc"]
    pod = make_pod().gpu(1)
    for weight, name in ((50, "b"), (100, "c")):
        pod = pod.prefer_node(weight, match_expressions(("pool", "In", [name])))

    found = priorities(PACK_GPUS, PodSignature.of(pod.obj()), Snapshot.of(pools), np.arange(3), never)

    assert list(found) == [0, 4, 10]


def test_only_the_candidates_are_compared() -> None:
    nodes = [node("a", capacity=_GPUS), node("b", make_pod().gpu(7), capacity=_GPUS), node("c", capacity=_GPUS)]

    assert list(
        priorities(BINPACK, PodSignature.of(make_pod().gpu(1).obj()), Snapshot.of(nodes), np.array([0, 2]), never)
    ) == [10, 0]


@pytest.mark.parametrize("judge", [permanent_rejections, priorities])
def test_deadline_ends_the_work(judge: object) -> None:
    snapshot = Snapshot.of([node("a"), node("b")])
    assert callable(judge)

    with pytest.raises(DeadlineNearError):
        judge(PACK_GPUS, PodSignature.of(make_pod().obj()), snapshot, np.arange(2), lambda: True)


def test_claim_that_is_missing_now_rejects_no_node() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    snapshot = made_anew([make_node_object("a"), make_storage_class("fast")])
    signature = PodSignature.of(make_pod().spec(volumes=volumes).obj())

    assert permanent_rejections(DEFAULT, signature, snapshot, np.arange(1), never) == {}
