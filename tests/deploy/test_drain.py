"""A drain of nodes, one after the other, leaves a replica that serves: the budget on the real API server."""

import pytest

from tests.controlplane.client import ApiError, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object
from tests.support.objects.manifests import read_one
from webhook.kube.names import HOSTNAME_LABEL

NAMESPACE = "placement-webhook"
SERVERS = "app.kubernetes.io/component=server"
MANIFESTS = ("serviceaccount", "poddisruptionbudget", "deployment")


def test_the_next_node_is_drained_once_the_evicted_replica_is_replaced(cluster: Cluster) -> None:
    """Before that, the eviction of the other replica is refused."""
    cluster.make_nodes(*(make_node_object(name, labels={HOSTNAME_LABEL: name}) for name in ("a", "b", "c")))
    cluster.client.create(read_one("base/namespace.yaml"))
    for name in MANIFESTS:
        cluster.client.create(read_one(f"base/{name}.yaml"), namespace=NAMESPACE)
    cluster.control_plane.start_controller_manager("disruption-controller")
    first, second = cluster.wait_pods(2, SERVERS, namespace=NAMESPACE)
    nodes = [cluster.wait_bound(pod) for pod in (first, second)]
    for pod in (first, second):
        run(cluster, pod)
    wait_allowed(cluster, 1)

    drain(cluster, first, nodes[0])
    (replacement,) = [pod for pod in replicas(cluster, 2) if pod["metadata"]["uid"] != second["metadata"]["uid"]]
    with pytest.raises(ApiError, match="Cannot evict pod as it would violate the pod's disruption budget"):
        drain(cluster, second, nodes[1])

    # The third node takes it: it is the only one that is neither drained nor has a replica.
    assert cluster.wait_bound(replacement) not in nodes
    run(cluster, replacement)
    wait_allowed(cluster, 1)
    drain(cluster, second, nodes[1])
    assert replacement["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in replicas(cluster, 2)}


def drain(cluster: Cluster, pod: Object, node: str) -> None:
    """Do as `kubectl drain`: cordon the node, then evict its pod. No kubelet ends the pod, hence no grace period.

    Raises:
        ApiError: the eviction is refused.
    """
    cluster.client.patch("Node", node, {"spec": {"unschedulable": True}})
    metadata = {"name": pod["metadata"]["name"], "namespace": NAMESPACE}
    content = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{metadata['name']}/eviction"
    cluster.client.request("POST", path, body={**content, "deleteOptions": {"gracePeriodSeconds": 0}})


def replicas(cluster: Cluster, count: int) -> list[Object]:
    return cluster.wait_pods(count, SERVERS, namespace=NAMESPACE)


def run(cluster: Cluster, pod: Object) -> None:
    """Report the pod as its kubelet does: it runs and is ready."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    name = pod["metadata"]["name"]
    cluster.client.patch("Pod", name, {"status": status}, namespace=NAMESPACE, subresource="status")


def wait_allowed(cluster: Cluster, evictions: int) -> None:
    """Return once the budget allows so many evictions."""

    def allowed() -> bool:
        budget = cluster.client.get("PodDisruptionBudget", "placement-webhook", NAMESPACE, api_version="policy/v1")
        return bool(budget.get("status", {}).get("disruptionsAllowed") == evictions)

    wait_for(allowed, f"{evictions} evictions to be allowed")
