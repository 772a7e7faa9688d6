"""Names of a cluster file that is shared are replaced wherever placement reads them."""

from typing import Any

from tests.support.objects.builders import make_node_object, make_pod
from webhook.cli.inputs.anonymize import with_other_names

HOSTNAME = "kubernetes.io/hostname"
NAMESPACE = {
    "kind": "Namespace",
    "metadata": {"name": "payroll", "labels": {"kubernetes.io/metadata.name": "payroll"}, "annotations": {"a": "b"}},
}


def renamed(*objects: dict[str, Any]) -> list[dict[str, Any]]:
    return with_other_names(objects)


def test_names_are_numbered_in_their_order() -> None:
    nodes = renamed(*(make_node_object(name) for name in ("zebra", "ape")))

    assert [node["metadata"]["name"] for node in nodes] == ["node-2", "node-1"]


def test_numbers_of_one_kind_have_one_width() -> None:
    nodes = renamed(*(make_node_object(f"host-{letter}") for letter in "abcdefghij"))

    assert [node["metadata"]["name"] for node in (nodes[0], nodes[9])] == ["node-01", "node-10"]


def test_a_namespace_keeps_its_annotations_and_other_objects_do_not() -> None:
    pod = make_pod("web").namespace("payroll").annotate("secret", "value").obj()

    namespace, pod = renamed(NAMESPACE, pod)

    assert namespace["metadata"] == {
        "name": "namespace-1",
        "labels": {"kubernetes.io/metadata.name": "namespace-1"},
        "annotations": {"a": "b"},
    }
    assert "annotations" not in pod["metadata"]


def test_a_pod_keeps_its_node_its_owner_and_its_deletion_under_other_names() -> None:
    pod = make_pod("web-1").namespace("payroll").node_name("host").status(nominatedNodeName="host").obj()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "secret", "controller": True}
    pod["metadata"] |= {"ownerReferences": [owner], "deletionTimestamp": "2026-01-01T00:00:00Z"}

    _, shared = renamed(make_node_object("host"), pod)

    assert shared["metadata"] == {
        "name": "pod-1",
        "labels": {},
        "namespace": "namespace-1",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True, "name": "owner-1"}],
    }
    assert shared["spec"]["nodeName"] == "node-1"
    assert shared["status"] == {"nominatedNodeName": "node-1"}


def test_an_object_without_namespace_owner_or_node_gets_none() -> None:
    (pod,) = renamed({"kind": "Pod", "metadata": {"name": "web"}, "spec": {}, "status": {"phase": "Pending"}})

    assert pod == {
        "kind": "Pod",
        "metadata": {"name": "pod-1", "labels": {}},
        "spec": {},
        "status": {"phase": "Pending"},
    }


def test_selectors_follow_the_names_that_they_select() -> None:
    node_term = {
        "matchExpressions": [
            {"key": HOSTNAME, "operator": "In", "values": ["host", "other"]},
            {"key": "zone", "operator": "In", "values": ["host"]},
        ],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["host"]}],
    }
    pod_term = {
        "namespaces": ["payroll"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "payroll", "team": "host"}},
    }
    affinity = {"nodeAffinity": {"terms": [node_term]}, "podAffinity": {"terms": [pod_term]}}
    pod = make_pod("web").spec(nodeSelector={HOSTNAME: "host", "zone": "host"}, affinity=affinity).obj()

    *_, shared = renamed(make_node_object("host"), NAMESPACE, pod)

    (term,) = shared["spec"]["affinity"]["nodeAffinity"]["terms"]
    assert [each["values"] for each in term["matchExpressions"]] == [["node-1", "other"], ["host"]]
    assert term["matchFields"][0]["values"] == ["node-1"]
    assert shared["spec"]["affinity"]["podAffinity"]["terms"] == [
        {
            "namespaces": ["namespace-1"],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "namespace-1", "team": "host"}},
        }
    ]
    assert shared["spec"]["nodeSelector"] == {HOSTNAME: "node-1", "zone": "host"}
