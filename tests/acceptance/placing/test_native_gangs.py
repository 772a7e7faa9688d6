"""A gang of kube-scheduler's own, whose pods have our annotation alone, starts whole or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import registered_as_shipped
from tests.acceptance.placing.pools import inference_pod, pool_node
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.admission import DOMAIN, policy_with

_POD_GROUPS = "scheduling.k8s.io/v1beta1"
_WAITING = "minCount (4) cannot be satisfied: 3 scheduled, 0 remaining"


@pytest.fixture
def gang_cluster(control_plane_programs: dict[str, Path], tmp_path: Path) -> Iterator[Cluster]:
    """An empty cluster whose kube-scheduler schedules gangs."""
    features = ("GenericWorkload",)
    folder = tmp_path / "control-plane"
    folder.mkdir()
    with ControlPlane(control_plane_programs, folder, features=features, served=(_POD_GROUPS,)) as control_plane:
        yield Cluster(control_plane)


def make_pod_group(cluster: Cluster, name: str, size: int) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
    cluster.create({"apiVersion": _POD_GROUPS, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})


def test_a_gang_starts_once_all_its_pods_fit(gang_cluster: Cluster, tmp_path: Path) -> None:
    cluster = gang_cluster
    cluster.make_nodes(pool_node("three", "inference", gpus=3))
    make_pod_group(cluster, "ring", 4)

    with registered_as_shipped(cluster, tmp_path) as webhook:
        webhook.world.policy = policy_with(schedulers={"default-scheduler": {"backend": "native"}})
        members = [inference_pod(f"ring-{number}").annotate(f"{DOMAIN}/gang", "ring") for number in range(4)]
        pods = [cluster.create(member).object for member in members]

        refusals = [cluster.wait_unschedulable(pod) for pod in pods]
        assert [pod["spec"].get("nodeName") for pod in cluster.pods()] == [None] * 4
        assert sorted(_WAITING in refusal for refusal in refusals) == [False, True, True, True]

        cluster.make_nodes(pool_node("one", "inference", gpus=1))
        nodes = sorted(cluster.wait_bound(pod) for pod in pods)

    assert nodes == ["one", "three", "three", "three"]
