"""Replicas of one owner are kept apart by the real kube-scheduler, and the webhook predicts where they run."""

from collections import Counter
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import inference_pod, pool_node
from tests.controlplane.client import Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import policy_with

Object = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"


def spread_policy(**spread: Any) -> Any:
    usage = {"allow": ["inference"]}
    return policy_with(workloadTypes={"inference": {"nodeUsage": usage, "spread": spread}})


def zone_node(name: str, zone: str, gpus: int = 8) -> Object:
    made = pool_node(name, "inference", gpus=gpus)
    made["metadata"]["labels"][_ZONE] = zone
    return made


def deploy(cluster: Cluster, kind: str, replicas: int) -> None:
    template = inference_pod("").label("app", "llm").template()
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "llm"}}, "template": template}
    spec |= {"serviceName": "llm", "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    cluster.create({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "llm"}, "spec": spec})
    cluster.control_plane.start_controller_manager()


def test_replicas_without_a_common_owner_are_drawn_apart(cluster: Cluster, webhook: Webhook) -> None:
    """By default both would run on the empty node, which has more free."""
    cluster.make_nodes(zone_node("empty", "a"), zone_node("half-full", "a"))
    half = {"cpu": "32", "memory": "256Gi"}
    cluster.create(inference_pod("other", 4).requests(**half).limits(**half).node_name("half-full"))
    pods = [inference_pod(f"shard-{index}").label("maip.mxsf.io/spread-group", "a") for index in range(2)]

    nodes = []
    for pod in pods:
        webhook.look_at(cluster)
        nodes.append(cluster.wait_bound(cluster.create(pod).object))
        placement = webhook.world.records[-1].placement
        assert placement is not None
        assert placement.node == nodes[-1]

    assert nodes == ["empty", "half-full"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_one_replica_at_most_runs_on_a_host(cluster: Cluster, webhook: Webhook, kind: str) -> None:
    cluster.make_nodes(zone_node("node-1", "a"), zone_node("node-2", "a"))
    webhook.world.policy = spread_policy(topology="host", mode="required")

    deploy(cluster, kind, 3)

    settled = wait_for(lambda: settled_pods(cluster, 3), "every pod bound or without a node")
    assert sorted(nodes_of(settled)) == ["", "node-1", "node-2"]
    assert len({str(pod["spec"]["affinity"]["podAntiAffinity"]) for pod in settled}) == 1


def settled_pods(cluster: Cluster, count: int) -> Objects | None:
    """The pods, once the scheduler has looked at all of them."""
    pods = [pod for pod in cluster.pods() if pod["spec"].get("nodeName") or pod["status"].get("conditions")]
    return pods if len(pods) == count else None


def nodes_of(pods: Objects) -> list[str]:
    """The names of the nodes, empty for a pod without one."""
    return [pod["spec"].get("nodeName", "") for pod in pods]


def test_zones_have_equal_numbers_of_replicas(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(zone_node("a-1", "a"), zone_node("a-2", "a"), zone_node("a-3", "a"), zone_node("b-1", "b"))
    webhook.world.policy = spread_policy(topology="zone", mode="required", form="topologySpread")

    deploy(cluster, "Deployment", 4)

    nodes = [cluster.wait_bound(pod) for pod in cluster.wait_pods(4)]
    assert Counter(each[0] for each in nodes) == {"a": 2, "b": 2}
