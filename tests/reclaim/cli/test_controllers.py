"""What `reclaim` predicts, and what the controllers of the real kube-controller-manager and kube-scheduler then do."""

import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import exactly, make_resource_claim
from tests.support.objects.held import HOUR
from tests.support.on_cluster.held import UNREACHABLE, ago, make_down
from tests.support.programs.command import Run

Object = dict[str, Any]
DRIVER = "gpu.nvidia.com"


@pytest.fixture
def with_controllers(cluster: Cluster) -> Iterator[Callable[..., Cluster]]:
    """Return a function that starts controllers besides the usual ones; other tests run other controllers."""

    def start(*controllers: str) -> Cluster:
        cluster.control_plane.stop_controller_manager()
        cluster.control_plane.start_controller_manager(*controllers)
        return cluster

    yield start
    cluster.control_plane.stop_controller_manager()


def report(cluster: Cluster, run: Run, *options: str) -> Object:
    given = ("--kubeconfig", cluster.control_plane.kubeconfig, "-n", cluster.namespace, "-o", "json", *options)
    found: Object = orjson.loads(run("reclaim", *given).output)
    return found


def is_ending(cluster: Cluster, name: str) -> bool:
    return "deletionTimestamp" in cluster.client.get("Pod", name, cluster.namespace)["metadata"]


def test_taint_eviction_takes_the_pods_whose_toleration_ends(
    cluster: Cluster, run: Run, with_controllers: Callable[..., Cluster]
) -> None:
    # If all nodes are down, the node lifecycle controller removes their taints.
    cluster.make_nodes(make_node_object("off", capacity={"nvidia.com/gpu": 8}), make_node_object("on"))
    limits: dict[str, Object] = {"short": {"tolerationSeconds": 1}, "long": {"tolerationSeconds": 3600}, "endless": {}}
    for name, limit in limits.items():
        toleration = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", **limit}
        cluster.create(make_pod(name).gpu(1).node_name("off").spec(tolerations=[toleration]))
    make_down(cluster, "off")

    found = {each["name"]: (each["class"], each["freedBy"]) for each in report(cluster, run)["held"]}
    # The node lifecycle controller makes the index by which taint eviction finds the pods of a node.
    with_controllers("node-lifecycle-controller", "taint-eviction-controller")
    wait_for(lambda: is_ending(cluster, "short"), "the taint eviction of the pod whose toleration has ended")

    assert found == {
        "short": ("node-down", "node off back, or taint eviction after 1 s, then as Terminating"),
        "long": ("node-down", "node off back, or taint eviction after 3600 s, then as Terminating"),
        "endless": ("node-down", "node off back: the pod tolerates its taint without an end"),
    }
    assert [name for name in limits if is_ending(cluster, name)] == ["short"]


def test_no_pod_is_evicted_while_all_nodes_are_down(
    cluster: Cluster, run: Run, with_controllers: Callable[..., Cluster]
) -> None:
    """The node lifecycle controller removes the NoExecute taints, and the report says so."""
    cluster.make_nodes(*(make_node_object(name, capacity={"nvidia.com/gpu": 8}) for name in ("off", "out")))
    toleration = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    cluster.create(make_pod("long").gpu(1).node_name("off").spec(tolerations=[toleration]))
    for name in ("off", "out"):
        make_down(cluster, name)

    with_controllers("node-lifecycle-controller", "taint-eviction-controller")
    wait_for(lambda: not evicting_taints(cluster, "off") or None, "the removal of the taint that evicts")

    row = wait_for(lambda: without_late_taint(cluster, report(cluster, run)["held"]), "a report without the taint")
    assert (row["class"], row["freedBy"]) == (
        "node-down",
        "node off back: it has no NoExecute taint that evicts the pod",
    )
    assert not is_ending(cluster, "long")


def without_late_taint(cluster: Cluster, rows: list[Object]) -> Object | None:
    """Return the only row if no taint on its node evicts; else remove these taints.

    The controller stops its tainting only after it has removed the taints, so that it can add one once more.
    Source: k8s.io/kubernetes/pkg/controller/nodelifecycle/node_lifecycle_controller.go, handleDisruption
    """
    (row,) = rows
    if late := evicting_taints(cluster, "off"):
        taints = cluster.client.get("Node", "off")["spec"]["taints"]
        cluster.client.patch("Node", "off", {"spec": {"taints": [each for each in taints if each not in late]}})
        return None
    return row


def evicting_taints(cluster: Cluster, node: str) -> list[Object]:
    taints = cluster.client.get("Node", node)["spec"].get("taints", [])
    return [each for each in taints if each["effect"] == "NoExecute"]


def test_the_resource_claim_controller_frees_a_claim_of_a_pod_that_is_gone(
    cluster: Cluster, run: Run, with_controllers: Callable[..., Cluster]
) -> None:
    cluster.make_nodes(make_node_object("n1"))
    claim = make_resource_claim("cards", exactly(device_class=DRIVER))
    finalizers = ["resource.kubernetes.io/delete-protection"]
    claim["metadata"] = {"name": "cards", "namespace": cluster.namespace, "finalizers": finalizers}
    cluster.client.create(claim)
    result = {"request": "cards", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    gone = {"resource": "pods", "name": "gone", "uid": "6a5ce8a4-4ad5-4c7e-ae3c-000000000000"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [gone]}
    given: dict[str, Any] = {"namespace": cluster.namespace, "api_version": "resource.k8s.io/v1"}
    cluster.client.patch("ResourceClaim", "cards", {"status": status}, subresource="status", **given)
    options = ("--older-than", "0s", "--class", "unused-claim")

    (row,) = report(cluster, run, *options)["held"]
    with_controllers("resourceclaim-controller")
    wait_for(
        lambda: "allocation" not in cluster.client.get("ResourceClaim", "cards", **given).get("status", {}),
        "the resource claim controller freeing the claim",
    )

    assert (row["name"], row["cards"], row["nodes"]) == ("cards", 1, ["n1"])
    assert (row["why"], row["freedBy"]) == (
        "reserved for pod gone, which has ended or is gone",
        "resource claim controller",
    )
    assert report(cluster, run, *options)["held"] == []


def test_the_printed_command_starts_the_pod_that_is_predicted_to_start(
    cluster: Cluster, run: Run, with_controllers: Callable[..., Cluster]
) -> None:
    """Two pods wait for cards of the node, and the Deployment frees those of one."""
    with_controllers()
    cluster.make_nodes(make_node_object("n1", capacity={"nvidia.com/gpu": 8}))
    template = make_pod().label("app", "srv").gpu(6).spec(terminationGracePeriodSeconds=0).template()
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "srv"}}, "template": template}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "srv"}, "spec": spec})
    (made,) = cluster.wait_pods(1, "app=srv")
    cluster.wait_bound(made)
    wait_for_image(cluster, made["metadata"]["name"])
    waits = [cluster.create(make_pod(name).gpu(cards)).object for name, cards in (("fits", 8), ("larger", 9))]
    for each in waits:
        cluster.wait_unschedulable(each)

    found = report(cluster, run, "--context", "tests")
    (row,) = found["held"]
    (command,) = row["commands"]
    environment = {**os.environ, **cluster.control_plane.kubectl_environment}
    subprocess.run(["/bin/sh", "-c", command["command"]], env=environment, check=True, capture_output=True)

    assert command["command"].startswith("kubectl --context tests scale deployment srv")
    assert (row["class"], row["cards"], row["returns"]) == ("image-pull", 6, True)
    assert found["starts"] == [f"{cluster.namespace}/fits"]
    assert cluster.wait_bound(waits[0]) == "n1"
    assert cluster.client.get("Pod", "larger", cluster.namespace)["spec"].get("nodeName") is None
    assert report(cluster, run)["held"] == []


def wait_for_image(cluster: Cluster, name: str) -> None:
    """Let a pod wait for its image since an hour, as its kubelet reports it."""
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    container = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    status = {
        "phase": "Pending",
        "startTime": ago(2 * HOUR),
        "conditions": [{"type": "ContainersReady", "status": "False", "lastTransitionTime": ago(HOUR)}],
        "containerStatuses": [{**container, "state": {"waiting": waiting}}],
    }
    cluster.client.patch("Pod", name, {"status": status}, namespace=cluster.namespace, subresource="status")
