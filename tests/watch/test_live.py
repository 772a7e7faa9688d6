"""The view of a real API server equals the server's state, also after failures."""

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import ApiError, Client, NotFound
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.batch_objects import BATCH_OBJECTS, definition
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.manifests import read
from tests.support.objects.optional_objects import optional_objects
from tests.support.on_cluster.service_account import RBAC, limited_to
from tests.support.servers.live import following_in_thread, kinds_in_view
from tests.support.views import made_anew, said
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.resources import OPTIONAL_RESOURCES, REQUIRED_RESOURCES
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.scheduler import Scheduler
from webhook.watch.live import LiveCluster

Object = dict[str, Any]


def wait_same(live: LiveCluster, client: Client) -> dict[str, Any]:
    """Return the view once it equals a new list."""

    def is_same() -> dict[str, Any] | None:
        kinds = dict.fromkeys((of.kind, of.api_version) for of in (*REQUIRED_RESOURCES, *OPTIONAL_RESOURCES))
        objects = [each for kind, api_version in kinds for each in client.list(kind, api_version=api_version)]
        fresh, seen = said(made_anew(objects)), said(live.snapshot())
        return seen if seen == fresh else None

    return wait_for(is_same, "the view that a fresh list gives")


def churn(client: Client, namespace: str, turns: int, chance: random.Random) -> None:
    """Make, change and delete nodes and bound pods at random."""
    for _ in range(turns):
        name, node = f"p{chance.randrange(8)}", f"n{chance.randrange(5)}"
        of_nodes, of_waiting_pods = (_make_node, _change_node, _delete_node), (_nominate_pod, _nominate_pod, _bind_pod)
        step = chance.choice((*of_nodes, *of_waiting_pods, _make_pod, _end_pod, _delete_pod))
        with suppress(ApiError):
            step(client, namespace, name, node)


def _make_node(client: Client, _: str, __: str, node: str) -> None:
    client.create(make_node_object(node, labels={"zone": node[-1]}, capacity={"nvidia.com/gpu": 8}))


def _change_node(client: Client, _: str, pod: str, node: str) -> None:
    taints = [{"key": "k", "value": pod, "effect": "NoSchedule"}]
    client.patch("Node", node, {"metadata": {"labels": {"pool": pod}}, "spec": {"taints": taints}})


def _delete_node(client: Client, _: str, __: str, node: str) -> None:
    client.delete("Node", node)


def _make_pod(client: Client, namespace: str, pod: str, node: str) -> None:
    made = make_pod(pod).namespace(namespace).label("app", "web").node_name(node).requests(cpu="250m").gpu(1)
    client.create(made.obj())


def _nominate_pod(client: Client, namespace: str, pod: str, node: str) -> None:
    with suppress(ApiError):
        client.create(make_pod(pod).namespace(namespace).scheduler("nobody").requests(cpu="1").obj())
    status = {"status": {"nominatedNodeName": node}}
    client.patch("Pod", pod, status, namespace=namespace, subresource="status")


def _bind_pod(client: Client, namespace: str, pod: str, node: str) -> None:
    target = {"kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    client.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body=binding)


def _end_pod(client: Client, namespace: str, pod: str, _: str) -> None:
    client.patch("Pod", pod, {"status": {"phase": "Succeeded"}}, namespace=namespace, subresource="status")


def _delete_pod(client: Client, namespace: str, pod: str, _: str) -> None:
    client.delete("Pod", pod, namespace=namespace)


@pytest.mark.parametrize("seed", [1, 2])
def test_view_after_random_changes_equals_a_new_list(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    churn(cluster.client, cluster.namespace, 20, chance)
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        churn(cluster.client, cluster.namespace, 80, chance)
        seen = wait_same(live, cluster.client)
        assert seen["namespaces"]


def test_cluster_without_nodes_has_a_view(cluster: Cluster) -> None:
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        assert wait_same(live, cluster.client)["nodes"] == []


def test_view_recovers_after_the_api_server_was_killed(cluster: Cluster) -> None:
    # kube-scheduler ends itself ("cache is corrupted") if it lists again while a pod of one name comes back elsewhere.
    cluster.control_plane.stop_scheduler()
    chance = random.Random(3)
    churn(cluster.client, cluster.namespace, 40, chance)
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        before = wait_same(live, cluster.client)
        cluster.control_plane.stop_api_server()
        try:
            wait_for(lambda: live.age_seconds() > 0.5, "a view that grows old")
            assert said(live.snapshot()) == before
        finally:
            cluster.control_plane.restart_api_server()
        churn(cluster.client, cluster.namespace, 40, chance)
        wait_same(live, cluster.client)
        cluster.make_nodes(make_node_object("fresh"))
        wait_for(lambda: "fresh" in live.snapshot().rows, "a watch that goes on")


def test_changed_annotations_of_a_namespace_are_seen(cluster: Cluster) -> None:
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        cluster.client.patch("Namespace", cluster.namespace, {"metadata": {"annotations": {"a": "1"}}})
        wait_for(lambda: live.snapshot().namespace_annotations(cluster.namespace).get("a") == "1", "the annotation")


def test_bound_pods_are_reported(cluster: Cluster) -> None:
    bound: list[str] = []

    class Follower(ClusterFollower):
        def pod_bound(self, pod: Binding, _: int) -> None:
            bound.append(pod.identity.name)

    cluster.make_node("a")
    cluster.create(make_pod("before").node_name("a"))
    with following_in_thread(cluster.control_plane.kubeconfig, Follower()):
        cluster.wait_bound(cluster.create(make_pod("after")).object)
        wait_for(lambda: bound == ["after"], lambda: f"the bound pods: {bound}")


def test_nominated_pod_always_counts_once_while_it_is_bound(cluster: Cluster) -> None:
    cluster.make_node("a")
    with following_in_thread(cluster.control_plane.kubeconfig) as live:

        def places() -> tuple[int, int]:
            snapshot = live.snapshot()
            return sum(len(each) for each in snapshot.nominated.by_node.values()), int(snapshot.load.pods.sum())

        def until(wanted: tuple[int, int]) -> set[tuple[int, int]]:
            """Return the observed values up to `wanted`."""
            seen: list[tuple[int, int]] = []

            def is_seen() -> bool:
                seen.append(places())
                return seen[-1] == wanted

            wait_for(is_seen, lambda: f"{wanted}: {seen}")
            return set(seen)

        for number in range(5):
            name = f"p{number}"
            _nominate_pod(cluster.client, cluster.namespace, name, "a")
            until((1, number))
            _bind_pod(cluster.client, cluster.namespace, name, "a")
            while_it_is_bound = until((0, number + 1))
            assert while_it_is_bound <= {(1, number), (0, number + 1)}


KINDS = {resource.kind for resource in (*REQUIRED_RESOURCES, *OPTIONAL_RESOURCES)}
REQUIRED_KINDS = {resource.kind for resource in REQUIRED_RESOURCES}


@pytest.fixture
def optional(cluster: Cluster) -> Iterator[None]:
    """An object of each optional kind, until the test ends."""
    objects = optional_objects(cluster.namespace)
    for content in objects:
        cluster.create(content)
    yield
    for content in objects:
        with suppress(NotFound):
            kind, api_version = content["kind"], content["apiVersion"]
            name, namespace = content["metadata"]["name"], content["metadata"].get("namespace")
            cluster.client.delete(kind, name, namespace=namespace, api_version=api_version)


@pytest.mark.usefixtures("optional")
def test_optional_kinds_are_watched(cluster: Cluster) -> None:
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        wait_for(lambda: kinds_in_view(live) == KINDS, "every kind")
        seen = wait_same(live, cluster.client)
        kinds = ("storage", "csi", "devices", "workloads")
        assert [name for name in kinds if not seen[name] or not all(seen[name])] == []
        before = live.snapshot()
        cluster.client.delete("DeviceClass", "optional-deviceclass", api_version="resource.k8s.io/v1")
        labels = {"spec": {"selector": {"app": "other"}}}
        cluster.client.patch("Service", "optional-service", labels, namespace=cluster.namespace)
        wait_for(lambda: live.snapshot().devices.classes == {}, "the view without the class")
        assert wait_same(live, cluster.client)["workloads"] != seen["workloads"]
        assert said(before) == seen


(SHIPPED,) = [each for each in read("base/rbac.yaml") if each["kind"] == "ClusterRole"]


@pytest.mark.usefixtures("optional")
def test_shipped_role_can_read_every_kind(cluster: Cluster, tmp_path: Path) -> None:
    with limited_to(cluster, tmp_path, SHIPPED["rules"]) as kubeconfig, following_in_thread(kubeconfig) as live:
        wait_for(lambda: kinds_in_view(live) == KINDS, lambda: f"every kind: {kinds_in_view(live)}")
        wait_same(live, cluster.client)


@pytest.mark.usefixtures("optional")
def test_kinds_that_rbac_forbids_do_not_affect_the_others(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make_node("a")
    with limited_to(cluster, tmp_path, SHIPPED["rules"][:1]) as kubeconfig, following_in_thread(kubeconfig) as live:
        pod = cluster.create(make_pod("bound").node_name("a").requests(cpu="1"))
        wait_for(lambda: live.snapshot().requested("cpu").tolist() == [1000], "the pod")
        assert pod.object["spec"]["nodeName"] == "a"
        assert kinds_in_view(live) == REQUIRED_KINDS
        assert live.snapshot().storage.claims is None
        assert live.age_seconds() < 60
        role = {"rules": SHIPPED["rules"]}
        cluster.client.patch("ClusterRole", "limited", role, api_version=RBAC)
        wait_for(lambda: kinds_in_view(live) == KINDS, "the kinds that may be read now")
        wait_same(live, cluster.client)


def test_pod_with_thousands_of_tolerations_is_watched_and_evaluated(cluster: Cluster) -> None:
    cluster.make_node("a", taints=["key-1999=v:NoSchedule"])
    cluster.make_node("b")
    tolerations = [{"key": f"key-{number}", "value": "v", "effect": "NoSchedule"} for number in range(2000)]
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        waiting = cluster.create(make_pod("waiting").scheduler("nobody").spec(tolerations=tolerations)).object
        cluster.create(make_pod("bound").node_name("a").spec(tolerations=tolerations))
        wait_for(lambda: live.snapshot().load.pods.tolist() == [1, 0], "the bound pod")
        wait_same(live, cluster.client)
        assert Scheduler().place(waiting, live.snapshot()).feasible == 2


def test_kind_is_watched_once_its_definition_exists(cluster: Cluster) -> None:
    name = "Queue.scheduling.volcano.sh"
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        wait_for(lambda: kinds_in_view(live) >= KINDS, "the kinds that every cluster serves")
        assert live.snapshot().volcano.queues is None
        cluster.create(definition(name))
        wait_for(lambda: live.snapshot().volcano.queues == {}, "the kind without an object")
        cluster.create(BATCH_OBJECTS[name])
        wait_for(lambda: [*(live.snapshot().volcano.queues or {})] == ["optional"], "the queue")
        crd = definition(name)
        cluster.client.delete(crd["kind"], crd["metadata"]["name"], api_version=crd["apiVersion"])
        wait_for(lambda: live.snapshot().volcano.queues is None, "the kind that is not served any more")
