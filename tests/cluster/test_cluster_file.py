"""A cluster file becomes a snapshot."""

from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.left_out import POD_VOLUMES
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, parse
from webhook.documents.field import InvalidInput

Object = dict[str, Any]


def _snapshot(*objects: Object) -> Snapshot:
    return snapshot_from_documents(Document("cluster.yaml", each) for each in objects)


def _errors(*objects: Object) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        _snapshot(*objects)
    return [str(error) for error in caught.value.errors]


def _namespace(name: str, **annotations: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


def test_list_of_kubectl_is_read() -> None:
    text = """
    {"apiVersion": "v1", "kind": "List", "items": [
      {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"},
       "status": {"allocatable": {"cpu": "2", "pods": "9"}}},
      {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
      {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"},
       "spec": {"nodeName": "b", "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
       "status": {"phase": "Running"}},
      {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x", "labels": {"team": "x"}}}]}
    """
    snapshot = snapshot_from_documents(parse(text, "cluster.json"))
    assert [info.node.name for info in snapshot.nodes] == ["a", "b"]
    assert snapshot.allocatable("cpu").tolist() == [0, 2000]
    assert snapshot.allowed_pods.tolist() == [0, 9]
    assert snapshot.requested("cpu").tolist() == [0, 500]
    assert snapshot.load.pods.tolist() == [0, 1]
    assert snapshot.namespace_labels("x") == {"team": "x"}


def test_empty_cluster_is_legal() -> None:
    assert _snapshot().nodes == ()


def test_other_kinds_are_ignored() -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    other_node = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "a"}, "spec": "other"}
    assert _snapshot(config_map, other_node).nodes == ()


@pytest.mark.parametrize(
    ("phase", "counts"),
    [("Running", True), ("Pending", True), ("Unknown", True), ("Succeeded", False), ("Failed", False), (None, True)],
)
def test_bound_pod_counts_until_it_has_ended(phase: str | None, counts: bool) -> None:
    pod = make_pod().node_name("a").status(phase=phase).obj()
    assert len(_snapshot(make_node_object("a"), pod).nodes[0].pods) == counts


@pytest.mark.parametrize("node_name", ["", "nowhere"])
def test_pod_on_no_node_of_the_cluster_counts_nowhere(node_name: str) -> None:
    pod = make_pod().node_name(node_name).requests(cpu="1").obj()
    assert _snapshot(make_node_object("a"), pod).requested("cpu").tolist() == [0]


def test_annotations_of_namespaces_are_kept() -> None:
    snapshot = _snapshot(_namespace("team-a", greeting="hello"))
    assert snapshot.namespace_annotations("team-a") == {"greeting": "hello"}
    assert snapshot.namespace_annotations("team-b") == {}


def test_node_without_allocatable_has_its_capacity() -> None:
    node = make_node_object("a", capacity={"cpu": "7"})
    del node["status"]["allocatable"]
    assert _snapshot(node).allocatable("cpu").tolist() == [7000]


def test_malformed_objects_are_reported_with_place_and_name() -> None:
    node = make_node_object("a", capacity={"cpu": "many"})
    node["metadata"]["labels"]["zone"] = 5
    pod = make_pod("p").namespace("x").node_name("a").requests(memory="1GiB").obj()
    example = 'must be a quantity: a number with an optional suffix, as in "500m", "2", "1.5Gi" or "12e6"'
    assert _errors(node, pod, _namespace("y", flag=True)) == [
        f'cluster.yaml: Node a: status.allocatable[cpu]: Invalid value: "many"; {example}',
        "cluster.yaml: Node a: metadata.labels[zone]: Invalid value: 5; must be text; put it in quotes",
        f'cluster.yaml: Pod x/p: spec.containers[0].resources.requests[memory]: Invalid value: "1GiB"; {example}',
        "cluster.yaml: Namespace y: metadata.annotations[flag]: Invalid value: true; must be text; put it in quotes",
    ]


def test_node_without_a_name_is_an_error() -> None:
    assert _errors({"apiVersion": "v1", "kind": "Node", "metadata": {}}) == [
        'cluster.yaml: metadata.name: Invalid value: ""; a node must have a name'
    ]


def test_duplicate_node_is_an_error() -> None:
    assert _errors(make_node_object("a"), make_node_object("b"), make_node_object("a")) == [
        'cluster.yaml: Node a: metadata.name: Duplicate value: "a"; each Node must be given once'
    ]


def test_duplicate_pod_is_an_error() -> None:
    pod = make_pod("p").namespace("x").node_name("a").obj()
    assert _errors(pod, pod) == [
        'cluster.yaml: Pod x/p: metadata.name: Duplicate value: "p"; each Pod must be given once'
    ]


def test_what_is_left_out_of_a_large_pod_is_known_to_be_missing() -> None:
    volumes = [{"name": f"v{each}", "persistentVolumeClaim": {"claimName": f"c{each}"}} for each in range(300)]
    snapshot = _snapshot(make_node_object("a"), make_pod("p").node_name("a").spec(volumes=volumes).obj())
    assert snapshot.left_out.has_any(POD_VOLUMES)
