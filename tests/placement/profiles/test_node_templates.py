"""Node templates: what an autoscaler can add makes Infeasible into Waiting."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.objects.storage import make_pvc
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.framework.result import Placement
from webhook.placement.profiles.node_templates import TemplateNode, template_nodes
from webhook.placement.scheduler import Scheduler

_TAINT = {"key": "nvidia.com/gpu.product", "value": "NVIDIA-H20", "effect": "NoSchedule"}
_H20 = {
    "name": "gpu-h20",
    "labels": {"nvidia.com/gpu.product": "NVIDIA-H20"},
    "taints": [_TAINT],
    "capacity": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": 8},
}
_CPU = {"name": "cpu", "capacity": {"cpu": "16", "memory": "64Gi", "pods": 2}}
_ON_H20 = make_pod().gpu(8).toleration("nvidia.com/gpu.product", operator="Exists")


def templates(*specs: dict[str, Any]) -> Sequence[TemplateNode]:
    return template_nodes(policy_with(nodeTemplates=list(specs)).spec.node_templates)


def place(pod: PodBuilder, *nodes: NodeInfo, specs: Sequence[dict[str, Any]] = (_H20, _CPU)) -> Placement:
    return Scheduler(templates=templates(*specs)).place(pod.obj(), Snapshot.of(nodes))


def test_a_pod_that_a_new_node_could_take_waits() -> None:
    placement = place(_ON_H20, node("a"))

    assert (placement.verdict, placement.node, placement.total, placement.feasible) == ("Waiting", None, 1, 0)
    assert placement.message == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Node template gpu-h20 could take it."
    )


def test_it_waits_in_a_cluster_without_nodes_too() -> None:
    placement = place(make_pod().requests(cpu="1").toleration(operator="Exists"))

    assert placement.verdict == "Waiting"
    assert placement.message == "no nodes available to schedule pods. Node templates gpu-h20, cpu could take it."


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(_ON_H20.gpu(9), id="more than its capacity"),
        pytest.param(make_pod().gpu(8), id="a taint that is not tolerated"),
        pytest.param(_ON_H20.node_selector("nvidia.com/gpu.product", "NVIDIA-L40S"), id="another label"),
        pytest.param(_ON_H20.node_selector("kubernetes.io/hostname", "gpu-h20"), id="a host name, it has its own"),
        pytest.param(_ON_H20.gpu(1, "amd.com/gpu"), id="a resource that it has not"),
    ],
)  # fmt: skip
def test_a_pod_that_no_new_node_could_take_is_infeasible_still(pod: PodBuilder) -> None:
    placement = place(pod, node("a"))

    assert placement.verdict == "Infeasible"
    assert "template" not in placement.message


@pytest.mark.parametrize(
    "required",
    [
        pytest.param(("kubernetes.io/hostname", "Exists", []), id="has a host name"),
        pytest.param(("kubernetes.io/os", "In", ["linux"]), id="runs Linux"),
        pytest.param(("kubernetes.io/arch", "In", ["amd64"]), id="is an amd64"),
    ],
)
def test_a_new_node_has_the_labels_that_every_node_has(required: tuple[str, str, list[str]]) -> None:
    assert place(_ON_H20.require_node(match_expressions(required)), node("a")).verdict == "Waiting"


def test_a_template_can_say_otherwise() -> None:
    arm = _CPU | {"labels": {"kubernetes.io/arch": "arm64"}}
    pod = make_pod().requests(cpu="1").node_selector("kubernetes.io/arch", "arm64")

    assert place(pod, node("a"), specs=[arm]).verdict == "Waiting"
    assert place(pod, node("a"), specs=[_CPU]).verdict == "Infeasible"


def test_a_node_that_there_is_comes_before_one_that_could_be() -> None:
    busy = node("a", make_pod("other").requests(cpu="60"))

    placement = place(make_pod().requests(cpu="10"), busy)

    assert placement.verdict == "Waiting"
    assert placement.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert place(make_pod().requests(cpu="1"), busy).verdict == "Feasible"


def test_pods_may_run_there_up_to_its_number_of_pods() -> None:
    none = _CPU | {"capacity": {"cpu": "16", "pods": 0}}
    unsaid = _CPU | {"capacity": {"cpu": "16"}}
    pod = make_pod().requests(cpu="16").node_selector("pool", "x")

    verdicts = [place(pod, specs=[spec | {"labels": {"pool": "x"}}]).verdict for spec in (none, unsaid)]

    assert verdicts == ["Infeasible", "Waiting"]


def test_answers_are_remembered_with_the_templates() -> None:
    snapshot, framework = Snapshot.of([node("a")]), Scheduler(templates=templates(_H20))

    first = framework.place(_ON_H20.obj(), snapshot)

    assert framework.place(_ON_H20.obj(), snapshot) is first


def test_a_new_node_is_one_of_the_same_cluster() -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"a": "b"}}}
    snapshot = snapshot_from_documents(
        Document("cluster", each) for each in (make_node_object("a"), make_pvc("data"), space)
    )

    other = snapshot.with_other_nodes([node("b"), node("c")])

    derived = {"nodes", "rows", "labels", "taints", "unschedulable", "allowed_pods", "load", "images", "pods"}
    derived |= {"nominated", "is_without_pods", "allocatable_columns", "_zeros", "devices"}
    kept = {field.name for field in fields(Snapshot) if getattr(other, field.name) is getattr(snapshot, field.name)}
    assert kept | derived == {field.name for field in fields(Snapshot)}
    assert (list(other.rows), other.is_without_pods) == (["b", "c"], True)
