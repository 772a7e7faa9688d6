"""The real kube-scheduler binds a pod to which the first suggestion was made."""

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.placement.suggest.applying import World, applied
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.suggest.pod_changes import ReduceRequest, TolerateTaint, WithoutRequirement

Object = dict[str, Any]

_GPUS = {"nvidia.com/gpu": 8}
_H20 = match_expressions(("product", "In", ["H20"]))
_TOLERANT = make_pod("waiting").toleration("product", operator="Exists")


def _pools(cluster: Cluster) -> None:
    cluster.make_nodes(
        make_node_object("a100", labels={"product": "A100"}, taints=["product=A100:NoSchedule"], capacity=_GPUS),
        make_node_object("h20", labels={"product": "H20"}, capacity=_GPUS),
        make_node_object("control", taints=["node-role.kubernetes.io/control-plane:NoSchedule"], capacity=_GPUS),
    )
    cluster.create(make_pod("running").node_name("h20").gpu(5))


@pytest.mark.parametrize(
    ("pod", "kinds", "wanted"),
    [
        pytest.param(
            make_pod("waiting").gpu(8).node_selector("product", "A100"), [TolerateTaint], "a100", id="a taint"
        ),
        pytest.param(make_pod("waiting").gpu(5), [ReduceRequest], "h20", id="fewer"),
        pytest.param(
            _TOLERANT.gpu(4).require_node(match_expressions(("product", "In", ["L40S"]))),
            [WithoutRequirement],
            "a100",
            id="a requirement",
        ),
        pytest.param(
            make_pod("waiting").gpu(8).require_node(match_expressions(("product", "NotIn", ["A100", "H20"]))),
            [TolerateTaint, WithoutRequirement],
            "a100",
            id="a taint and a requirement",
        ),
    ],
)
def test_kube_scheduler_binds_the_pod_after_the_first_suggestion(
    cluster: Cluster, pod: PodBuilder, kinds: list[type], wanted: str
) -> None:
    _pools(cluster)
    objects = [
        {"apiVersion": "v1", "kind": kind} | each for kind in ("Node", "Pod") for each in cluster.client.list(kind)
    ]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    framework, question = Scheduler(), PodSignature.of(cluster.create(pod, dry_run=True).object)
    placement = framework.answer(question, snapshot)
    first, *_ = framework.suggest(question, snapshot, placement.verdict, 1)
    cluster.wait_unschedulable(cluster.create(pod).object)

    changed = applied(first.changes, World(pod.obj(), [], [])).pod
    changed["metadata"]["name"] = "changed"
    bound = cluster.wait_bound(cluster.create(changed).object)

    assert [type(change) for change in first.changes] == kinds
    assert bound == wanted
