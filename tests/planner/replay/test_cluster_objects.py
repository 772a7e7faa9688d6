"""Pods and templates of a cluster as if they were created now; one of two that stand for the same pods is read."""

from collections import Counter
from typing import Any

import pytest

from placement_planner.replay.admission import Admission
from placement_planner.replay.cluster_objects import admissions_of_objects
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.missed import Scope
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.names import DEFAULT_NAMESPACE

Object = dict[str, Any]
POD = make_pod("web-1").namespace("lab").owner("ReplicaSet", "web-5d9", api_version="apps/v1")
POD = POD.label("pod-template-hash", "5d9")
BOUND_BY_CREATOR = [{"operation": "Update", "fieldsV1": {"f:spec": {"f:nodeName": {}}}}]


def workload(kind: str, name: str, namespace: str = "lab", owner: tuple[str, str] | None = None) -> Object:
    metadata: Object = {"name": name, "namespace": namespace}
    if owner is not None:
        metadata["ownerReferences"] = [
            {"kind": "StatefulSet", "name": "x"},
            {"kind": owner[0], "name": owner[1], "controller": True},
        ]
    template = make_pod("t").label("app", name).template()
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"template": template}}


def read(*objects: Object | PodBuilder) -> tuple[list[Admission], Counter[str]]:
    left_out = Counter[str]()
    contents = [each.obj() if isinstance(each, PodBuilder) else each for each in objects]
    documents = [Document(f"f:{number}", each) for number, each in enumerate(contents)]
    return [*admissions_of_objects(documents, policy_with().kinds, left_out)], left_out


DEPLOYMENT, REPLICA_SET = workload("Deployment", "web"), workload("ReplicaSet", "web-5d9", owner=("Deployment", "web"))


@pytest.mark.parametrize(
    ("objects", "owners", "left_out"),
    [
        ([POD], ["Deployment/web"], 0),
        ([POD, DEPLOYMENT], ["Deployment/web"], 1),
        ([DEPLOYMENT, REPLICA_SET, POD], ["Deployment/web"], 1),
        ([REPLICA_SET], ["ReplicaSet/web-5d9"], 0),
        # Only the controller counts, not another owner that is there.
        ([REPLICA_SET, workload("StatefulSet", "x")], ["ReplicaSet/web-5d9", "StatefulSet/x"], 0),
        ([REPLICA_SET, POD], ["ReplicaSet/web-5d9", "Deployment/web"], 0),
        # Objects of the same name in another namespace, or of another kind.
        ([POD, workload("Deployment", "web", "other")], ["Deployment/web", "Deployment/web"], 0),
        ([POD, workload("StatefulSet", "web")], ["Deployment/web", "StatefulSet/web"], 0),
        ([REPLICA_SET, workload("Deployment", "web", "other")], ["ReplicaSet/web-5d9", "Deployment/web"], 0),
        ([make_pod("bare")], [""], 0),
        ([{"kind": "Pod", "metadata": None}], [], 0),
        ([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}], [], 0),
    ],
)
def test_a_template_stands_for_the_pods_of_its_object(objects: list[Any], owners: list[str], left_out: int) -> None:
    found, others = read(*objects)

    assert [each.owner for each in found] == owners
    assert others.total() == left_out


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        (make_pod("a"), None),
        (make_pod("a").node_name("n"), None),
        (make_pod("a").node_name(""), ""),
    ],
)
def test_the_node_that_a_scheduler_chose_is_taken_away(pod: PodBuilder, node: str | None) -> None:
    ((found,), _) = read(pod.spec(priority=5))
    spec = found.read().pod["spec"]

    assert spec.get("nodeName") == node
    assert spec["priority"] == 5
    created_on_node = pod.spec(nodeName="n").obj()
    created_on_node["metadata"]["managedFields"] = BOUND_BY_CREATOR
    ((kept,), _) = read(created_on_node)
    assert kept.read().pod["spec"]["nodeName"] == "n"
    ((malformed,), _) = read({"kind": "Pod", "metadata": {"name": "x"}, "spec": 1})
    assert malformed.read().pod["spec"] == 1


@pytest.mark.parametrize("order", [1, -1])
def test_annotations_and_labels_are_those_of_the_namespace_wherever_it_stands(order: int) -> None:
    lab: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": {"a": "b"}}}
    lab["metadata"] |= {"labels": {"c": "d"}}
    objects: list[Object | PodBuilder] = [lab, DEPLOYMENT, POD.owner("Job", "x"), make_pod("p")]
    found, _ = read(*objects[::order])

    scopes = {each.namespace: each.read().scope for each in found}
    assert scopes.keys() == {"lab", DEFAULT_NAMESPACE}
    assert scopes["lab"] is not None
    assert scopes["lab"].annotations == {"a": "b"}
    assert scopes["lab"].labels["c"] == "d"
    assert scopes[DEFAULT_NAMESPACE] is None
    assert isinstance(scopes["lab"], Scope)


def test_names_and_places_are_those_of_the_objects_and_errors_name_them() -> None:
    found, _ = read(make_pod("a"), make_pod().generate_name("web-"), {"kind": "Pod", "metadata": {}, "spec": {}})

    assert [(each.name, each.place) for each in found] == [("a", "f:0"), ("web-", "f:1"), ("", "f:2")]
    with pytest.raises(InvalidInput, match=r"^f:1: "):
        read(make_pod("a"), {**DEPLOYMENT, "spec": {"template": 1}})
    with pytest.raises(InvalidInput, match=r"^f:0: "):
        read({"kind": "Namespace", "metadata": {"name": "x", "labels": 1}})
