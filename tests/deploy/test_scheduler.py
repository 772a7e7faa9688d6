"""The scheduler configuration, as the real kube-scheduler reads it."""

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.builders import make_node_object, make_pod
from tests.support.manifests import read_one
from webhook.kube.wellknown import HOSTNAME_LABEL


@pytest.fixture
def configured(cluster: Cluster) -> Cluster:
    """A cluster whose scheduler runs with the file, and two empty GPU nodes."""
    cluster.control_plane.start_scheduler(read_one("scheduler/kube-scheduler-configuration.yaml"))
    for name in ("gpu-1", "gpu-2"):
        cluster.make_nodes(make_node_object(name, labels={HOSTNAME_LABEL: name}, capacity={"nvidia.com/gpu": 8}))
    return cluster


def nodes_of(cluster: Cluster, scheduler: str) -> list[str]:
    """Where four pods of one ReplicaSet go, one after the other, each with a quarter of a node's GPUs."""
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}
    cluster.create({"apiVersion": "v1", "kind": "Service", **service})
    pods = [make_pod(f"p{i}").label("app", "a").gpu(2).scheduler(scheduler) for i in range(4)]
    return [cluster.wait_bound(cluster.create(pod).object) for pod in pods]


def test_binpack_scheduler_fills_a_node_before_it_opens_the_next(configured: Cluster) -> None:
    assert len(set(nodes_of(configured, "binpack-scheduler"))) == 1


def test_default_scheduler_goes_on_as_before(configured: Cluster) -> None:
    assert len(set(nodes_of(configured, "default-scheduler"))) == 2
