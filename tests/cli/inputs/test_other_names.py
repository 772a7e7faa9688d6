"""Names of a cluster file that is shared are replaced, and every pod has the same placement."""

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import pending_pods, random_world
from tests.support.objects.builders import make_node_object, make_pod
from webhook.cli.inputs.other_names import with_other_names
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]

NAMESPACE: Object = {
    "kind": "Namespace",
    "metadata": {"name": "payroll", "labels": {"kubernetes.io/metadata.name": "payroll"}, "annotations": {"a": "b c"}},
}
_SMALL = ((4, 8),)


@pytest.mark.parametrize("seed", range(10))
def test_other_names_change_no_placement(seed: int) -> None:
    dice = Dice(seed)
    world = random_world(dice, _SMALL)
    for pod in pending_pods(dice, world, 10):
        results = []
        for cluster in ([*world.objects, pod], with_other_names(deepcopy([*world.objects, pod]))):
            asked = cluster[-1]
            snapshot = snapshot_from_documents(Document("cluster", each) for each in cluster)
            placement = Scheduler().place(asked, snapshot)
            # A message with a name in quotes is about this object.
            message = placement.message.partition('"')[0]
            results.append((placement.verdict, message, placement.feasible, [*map(dict, placement.scores.values())]))
        assert results[0] == results[1]


@pytest.mark.parametrize("seed", range(10))
def test_no_name_of_any_kind_is_left(seed: int) -> None:
    objects = random_world(Dice(seed), _SMALL).objects
    kept = {"default", *(each["metadata"]["name"] for each in objects if each["kind"].endswith(("Class", "CSIDriver")))}
    names = {each["metadata"]["name"] for each in objects} - kept
    # Those of random nodes look like the new ones.
    names = {name for name in names if not name.startswith("node-")}

    text = json.dumps(with_other_names(deepcopy([*objects])))

    assert {name for name in names if f'"{name}"' in text} == set()


def test_names_are_numbered_in_their_order_with_one_width() -> None:
    nodes = with_other_names([make_node_object(f"host-{letter}") for letter in "jihgfedcba"])

    assert [node["metadata"]["name"] for node in (nodes[-1], nodes[0])] == ["node-01", "node-10"]


def test_a_pod_keeps_its_node_owner_and_labels_under_other_names() -> None:
    pod = make_pod("web-1").namespace("payroll").node_name("host").status(nominatedNodeName="host", hostIP="10.0.0.1")
    content = pod.owner("Job", "train-jane").label("job-name", "train-jane").label("app", "web").obj()

    _, shared = with_other_names([make_node_object("host"), content])

    assert (shared["metadata"]["name"], shared["metadata"]["namespace"]) == ("pod-1", "namespace-1")
    assert shared["metadata"]["ownerReferences"][0]["name"] == "job-1"
    assert shared["metadata"]["labels"] == {"job-name": "job-1", "app": "web"}
    assert shared["spec"]["nodeName"] == shared["status"]["nominatedNodeName"] == "node-1"
    assert "hostIP" not in shared["status"]


def test_references_of_all_kinds_follow_the_names() -> None:
    claim: Object = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "salaries", "namespace": "payroll"},
        "spec": {"volumeName": "disk", "storageClassName": "fast"},
    }
    volume: Object = {
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {"claimRef": {"name": "salaries", "namespace": "payroll"}},
    }
    storage_class: Object = {"kind": "StorageClass", "metadata": {"name": "fast"}}
    pod = (
        make_pod("web")
        .namespace("payroll")
        .spec(
            volumes=[
                {"name": "data", "persistentVolumeClaim": {"claimName": "salaries"}},
                {"name": "key", "secret": {"secretName": "jane"}},
            ]
        )
    )

    claim, volume, shared_class, shared = with_other_names([claim, volume, storage_class, pod.obj()])

    assert claim["metadata"] == {"name": "persistentvolumeclaim-1", "namespace": "namespace-1"}
    assert claim["spec"] == {"volumeName": "persistentvolume-1", "storageClassName": "fast"}
    assert volume["spec"]["claimRef"] == {"name": "persistentvolumeclaim-1", "namespace": "namespace-1"}
    (kept,) = shared["spec"]["volumes"]
    assert kept["persistentVolumeClaim"] == {"claimName": "persistentvolumeclaim-1"}
    assert shared_class == storage_class


def test_a_gang_and_its_pod_group_have_one_other_name() -> None:
    group: Object = {"kind": "PodGroup", "metadata": {"name": "bert", "namespace": "payroll"}}
    pod = make_pod("web").annotate("maip.mxsf.io/gang", "bert").annotate("note", '{"by": "jane"}').obj()

    group, shared = with_other_names([group, pod])

    assert shared["metadata"]["annotations"] == {"maip.mxsf.io/gang": group["metadata"]["name"]}


def test_a_name_stays_that_placement_reads_as_something_else() -> None:
    node = make_node_object("host", labels={"maip.mxsf.io/node.usage": "training"}, taints=["a=jane:NoSchedule"])
    names = ("training", "volcano", "default", "jane")
    pods = [make_pod(name).namespace(name).scheduler("volcano").obj() for name in names]

    _, *shared = with_other_names([node, *pods])

    assert [each["metadata"]["namespace"] for each in shared] == [*names]
    assert shared[0]["spec"]["schedulerName"] == "volcano"


def test_a_namespace_keeps_its_annotations() -> None:
    (namespace,) = with_other_names([NAMESPACE])

    assert namespace["metadata"] == {
        "name": "namespace-1",
        "labels": {"kubernetes.io/metadata.name": "namespace-1"},
        "annotations": {"a": "b c"},
    }


def test_a_host_of_another_name_than_its_node_is_replaced_where_pods_select_it() -> None:
    node = make_node_object("node-of-jane", labels={"kubernetes.io/hostname": "jane.example.com", "zone": "a"})
    pod = make_pod("web").node_selector("kubernetes.io/hostname", "jane.example.com").node_selector("zone", "a").obj()

    shared_node, shared = with_other_names([node, pod])

    assert shared_node["metadata"]["labels"] == {"kubernetes.io/hostname": "host-1", "zone": "a"}
    assert shared["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "host-1", "zone": "a"}
    assert shared_node["metadata"]["name"] == "node-1"


def test_an_object_without_a_namespace_adds_no_name() -> None:
    (pod,) = with_other_names([make_pod("p").scheduler("volcano").obj() | {"metadata": {"name": "z"}}])
    assert pod["metadata"]["name"] == "pod-1"


def test_a_name_of_two_kinds_becomes_that_of_the_pod_and_a_generated_one_goes() -> None:
    claim: Object = {"kind": "PersistentVolumeClaim", "metadata": {"name": "web", "namespace": "payroll"}}
    pod = make_pod("web").namespace("payroll").obj()
    pod["metadata"]["generateName"] = "jane-"

    claim, shared = with_other_names([claim, pod])

    assert (claim["metadata"]["name"], shared["metadata"]["name"]) == ("pod-1", "pod-1")
    assert "generateName" not in shared["metadata"]
