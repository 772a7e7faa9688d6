"""What `reclaim` prints for a node that is down, and the pod garbage collector of the real kube-controller-manager."""

import os
import subprocess
from collections.abc import Iterator

import orjson
import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.on_cluster.held import make_down
from tests.support.programs.command import Run

COLLECTOR = "pod-garbage-collector-controller"


@pytest.fixture
def collecting(cluster: Cluster) -> Iterator[Cluster]:
    """Return a cluster whose pods are collected; other tests run other controllers."""
    cluster.control_plane.stop_controller_manager()
    cluster.control_plane.start_controller_manager(COLLECTOR)
    yield cluster
    cluster.control_plane.stop_controller_manager()


def delete(cluster: Cluster, name: str) -> None:
    """Delete a pod with its grace period, as a user does."""
    cluster.client.request("DELETE", f"/api/v1/namespaces/{cluster.namespace}/pods/{name}")


def rows(cluster: Cluster, run: Run) -> list[Object]:
    given = ("--kubeconfig", cluster.control_plane.kubeconfig, "-n", cluster.namespace, "-o", "json")
    found: list[Object] = orjson.loads(run("reclaim", *given).output)["held"]
    return found


def running(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.pods() if each["status"]["phase"] != "Failed"}


def names(cluster: Cluster) -> list[str]:
    return sorted(each["metadata"]["name"] for each in cluster.pods())


def test_the_printed_taint_ends_the_deleted_pods_of_its_node_only(collecting: Cluster, run: Run) -> None:
    """The collector looks at all pods every 20 seconds."""
    for node in ("off", "silent"):
        collecting.make_nodes(make_node_object(node, capacity={"nvidia.com/gpu": 8}))
    for name, node in (("ending", "off"), ("stays", "off"), ("untouched", "silent")):
        collecting.create(make_pod(name).gpu(1).node_name(node).spec(terminationGracePeriodSeconds=30))
    kept = make_pod("kept").gpu(1).node_name("off").obj()
    kept["metadata"]["finalizers"] = ["example.com/save"]
    collecting.create(kept)
    for name in ("ending", "untouched", "kept"):
        delete(collecting, name)
    for node in ("off", "silent"):
        make_down(collecting, node)

    found = rows(collecting, run)
    commands = {command["command"] for each in found for command in each["commands"]}
    (command,) = (each for each in commands if each.startswith("kubectl taint nodes off "))
    before = names(collecting)
    environment = {**os.environ, **collecting.control_plane.kubectl_environment}
    subprocess.run(["/bin/sh", "-c", command], env=environment, check=True, capture_output=True)
    wait_for(lambda: {"ending", "kept"}.isdisjoint(running(collecting)), "the collector", deadline_seconds=120)
    left = {each["name"]: each["class"] for each in rows(collecting, run)}

    assert [(each["class"], each["name"], each["nodeDown"]) for each in found] == [
        ("node-down", "ending", True),
        ("node-down", "kept", True),
        ("node-down", "stays", True),
        ("node-down", "untouched", True),
    ]
    assert len(commands) == 2
    assert command == "kubectl taint nodes off node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    assert before == ["ending", "kept", "stays", "untouched"]
    # A finalizer keeps the object, but not its cards.
    assert names(collecting) == ["kept", "stays", "untouched"]
    assert (left["untouched"], left.get("kept")) == ("node-down", None)
