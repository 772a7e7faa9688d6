"""The view of a real API server is what that server has, whatever happens in between."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_node_object, make_pod
from tests.cluster.views import made_anew, said
from tests.controlplane.client import ApiError, Client
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.serving.running import connections_gone
from webhook.cluster.api_server import Source
from webhook.cluster.live import LiveCluster
from webhook.cluster.reflector import Timing

Object = dict[str, Any]

TIMING = Timing(first_pause_seconds=0.02, longest_pause_seconds=0.2, page_size=3)


@contextmanager
def following(
    kubeconfig: Path, on_bound: Callable[[Mapping[str, Any]], None] = lambda _: None
) -> Iterator[LiveCluster]:
    """A live view in a thread of its own, synced."""
    live = LiveCluster(Source(kubeconfig).connect, timing=TIMING, on_bound=on_bound)
    loop = asyncio.new_event_loop()
    task = loop.create_task(live.run())

    def run() -> None:
        asyncio.set_event_loop(loop)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(connections_gone())
        loop.close()

    thread = threading.Thread(target=run, name="live cluster")
    thread.start()
    try:
        wait_for(lambda: live.is_synced, "the first view")
        yield live
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def wait_same(live: LiveCluster, client: Client) -> dict[str, Any]:
    """What the view says, once it says what a fresh list does."""

    def is_same() -> dict[str, Any] | None:
        objects = [each for kind in ("Namespace", "Node", "Pod") for each in client.list(kind)]
        fresh, seen = said(made_anew(objects)), said(live.snapshot())
        return seen if seen == fresh else None

    return wait_for(is_same, "the view that a fresh list gives")


def churn(client: Client, namespace: str, turns: int, chance: random.Random) -> None:
    """Make, change and delete nodes and bound pods at random."""
    for _ in range(turns):
        name, node = f"p{chance.randrange(8)}", f"n{chance.randrange(5)}"
        step = chance.choice((_make_node, _change_node, _delete_node, _make_pod, _make_pod, _end_pod, _delete_pod))
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


def _end_pod(client: Client, namespace: str, pod: str, _: str) -> None:
    client.patch("Pod", pod, {"status": {"phase": "Succeeded"}}, namespace=namespace, subresource="status")


def _delete_pod(client: Client, namespace: str, pod: str, _: str) -> None:
    client.delete("Pod", pod, namespace=namespace)


@pytest.mark.parametrize("seed", [1, 2])
def test_view_after_random_churn_is_a_fresh_list(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    churn(cluster.client, cluster.namespace, 20, chance)
    with following(cluster.control_plane.kubeconfig) as live:
        churn(cluster.client, cluster.namespace, 80, chance)
        seen = wait_same(live, cluster.client)
        assert seen["namespaces"]


def test_cluster_without_nodes_is_a_view_too(cluster: Cluster) -> None:
    with following(cluster.control_plane.kubeconfig) as live:
        assert wait_same(live, cluster.client)["nodes"] == []


def test_view_comes_back_right_after_the_api_server_was_killed(cluster: Cluster) -> None:
    chance = random.Random(3)
    churn(cluster.client, cluster.namespace, 40, chance)
    with following(cluster.control_plane.kubeconfig) as live:
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


def test_annotations_of_a_namespace_are_seen_as_they_change(cluster: Cluster) -> None:
    with following(cluster.control_plane.kubeconfig) as live:
        cluster.client.patch("Namespace", cluster.namespace, {"metadata": {"annotations": {"a": "1"}}})
        wait_for(lambda: live.snapshot().namespace_annotations(cluster.namespace).get("a") == "1", "the annotation")


def test_bound_pods_are_told_as_they_are_bound(cluster: Cluster) -> None:
    bound: list[str] = []
    cluster.make_node("a")
    cluster.create(make_pod("before").node_name("a"))
    with following(cluster.control_plane.kubeconfig, lambda pod: bound.append(pod["metadata"]["name"])):
        cluster.wait_bound(cluster.create(make_pod("after")).object)
        wait_for(lambda: bound == ["after"], lambda: f"the bound pods: {bound}")
