"""The pods that objects are predicted to create are those that the real controllers create, and as many are bound."""

from collections import Counter
from typing import Any

import pytest

from tests.controlplane.client import Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]

_POD = make_pod().label("app", "web").annotate("team", "a")
_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
_SELECTED = {"selector": {"matchLabels": {"app": "web"}}}


def _object(api_version: str, kind: str, **spec: Any) -> Object:
    template = _POD.spec(restartPolicy="Never" if kind == "Job" else "Always").template()
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": template, **spec},
    }


OBJECTS = {
    "Deployment": _object("apps/v1", "Deployment", replicas=2, **_SELECTED),
    "ReplicaSet": _object("apps/v1", "ReplicaSet", replicas=2, **_SELECTED),
    "StatefulSet": _object(
        "apps/v1",
        "StatefulSet",
        replicas=2,
        serviceName="web",
        podManagementPolicy="Parallel",
        ordinals={"start": 3},
        volumeClaimTemplates=[_CLAIM],
        **_SELECTED,
    ),
    "ReplicationController": _object("v1", "ReplicationController", replicas=2, selector={"app": "web"}),
    "Job": _object("batch/v1", "Job", parallelism=3, completions=2),
    "Indexed Job": _object("batch/v1", "Job", parallelism=2, completions=2, completionMode="Indexed"),
}


def _predicted(cluster: Cluster, content: Object) -> PodSet:
    (found,) = pod_sets(content | {"metadata": {"name": "web", "namespace": cluster.namespace}}, kinds_by_name())
    return found


def _by_name(pods: Objects) -> Objects:
    return sorted(pods, key=lambda pod: str(pod["metadata"].get("generateName") or pod["metadata"]["name"]))


@pytest.mark.parametrize("content", OBJECTS.values(), ids=OBJECTS.keys())
def test_the_controller_creates_the_pods_that_are_predicted(cluster: Cluster, content: Object) -> None:
    predicted = _predicted(cluster, content)
    assert predicted.replicas == 2
    cluster.control_plane.start_controller_manager()
    cluster.create(content)

    created = _by_name(cluster.wait_pods(2, "app=web"))

    for pod, wanted in zip(created, map(predicted.pod_at, range(2)), strict=True):
        actual, expected = pod["metadata"], wanted["metadata"]
        if "name" in expected:
            assert actual["name"] == expected["name"]
        else:
            # A Deployment's ReplicaSet adds the hash of the template.
            assert actual["generateName"].startswith(expected["generateName"])
        assert expected["labels"].items() <= actual["labels"].items()
        assert expected["annotations"].items() <= actual["annotations"].items()
        (owner,), (expected_owner,) = actual["ownerReferences"], expected["ownerReferences"]
        assert owner["kind"] == expected_owner["kind"]
        assert owner["name"].startswith(expected_owner["name"])
        named = [each["persistentVolumeClaim"] for each in wanted["spec"].get("volumes", [])]
        volumes = pod["spec"].get("volumes", [])
        assert named == [each["persistentVolumeClaim"] for each in volumes if "projected" not in each]


def test_the_controller_creates_the_claims_that_are_predicted(cluster: Cluster) -> None:
    predicted = _predicted(cluster, OBJECTS["StatefulSet"])
    cluster.control_plane.start_controller_manager()
    cluster.create(OBJECTS["StatefulSet"])
    cluster.wait_pods(2, "app=web")

    created = cluster.client.list("PersistentVolumeClaim", cluster.namespace)

    wanted = [claim for index in range(2) for claim in predicted.claims_at(index)]
    assert [each["metadata"]["name"] for each in created] == [each["metadata"]["name"] for each in wanted]
    assert [each["spec"]["storageClassName"] for each in created] == ["none", "none"]


def test_as_many_pods_of_a_deployment_are_bound_as_are_predicted_to_fit(cluster: Cluster) -> None:
    cards = {"nvidia.com/gpu": "4"}
    cluster.make_nodes(make_node_object("a", capacity=cards), make_node_object("b", capacity=cards))
    content = _object("apps/v1", "Deployment", replicas=5, **_SELECTED)
    content["spec"]["template"] = _POD.gpu(2).template()
    documents = [
        Document("cluster", {"apiVersion": "v1", "kind": kind} | each)
        for kind in ("Node", "Namespace", "Pod")
        for each in cluster.client.list(kind)
    ]
    predicted = _predicted(cluster, content)
    each_pod = map(predicted.pod_at, range(5))
    found = place_replicas(Scheduler(), snapshot_from_documents(documents), each_pod, 5)
    assert (found.placed, found.asked) == (4, 5)
    cluster.control_plane.start_controller_manager()
    cluster.create(content)

    def attempted() -> Objects | None:
        pods = [
            pod for pod in cluster.pods("app=web") if pod["status"].get("conditions") or pod["spec"].get("nodeName")
        ]
        return pods if len(pods) == 5 else None

    pods = wait_for(attempted, "an attempt at each pod")

    bound = Counter(pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"])
    assert bound == found.nodes == {"a": 2, "b": 2}
