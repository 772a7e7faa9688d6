"""The real kube-scheduler asks the webhook's scheduler extender, as the example configuration says."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.manifests import read_one
from tests.support.on_cluster.webhooks import sees
from tests.support.programs.programs import forked
from tests.support.servers.processes import await_port, certificate

_GPU = "nvidia.com/gpu"


def configuration(port: int, folder: Path) -> dict[str, Any]:
    """Return the example with the address and the CA of a webhook on loopback, more time, and default score plugins.

    With these, kube-scheduler alone spreads pods.
    """
    example = read_one("scheduler/kube-scheduler-extender.yaml")
    (extender,) = example["extenders"]
    extender["urlPrefix"] = f"https://127.0.0.1:{port}/extender"
    extender["tlsConfig"] = {"caFile": str(folder / "ca.crt"), "serverName": "localhost"}
    # On a busy machine, kube-scheduler would leave out the extender after the 200 ms of the example.
    extender["httpTimeout"] = "10s"
    example["profiles"] = [{"schedulerName": "default-scheduler"}]
    return example


@pytest.fixture
def port() -> Iterator[int]:
    """A port for the extender."""
    with HeldPort() as held:
        yield held.number


@contextmanager
def extending(cluster: Cluster, folder: Path, port: int, nodes: int) -> Iterator[int]:
    """Run the webhook with the extender, which sees so many nodes; yield its admin port."""
    certificate(folder)
    with HeldPort() as admin:
        flags = {
            "tls-dir": folder,
            "kubeconfig": cluster.control_plane.kubeconfig,
            "audit": folder / "audit.jsonl",
            "listen": f"127.0.0.1:{port}",
            "admin-listen": f"127.0.0.1:{admin.number}",
            "log-level": "warning",
            "extender-profile": "pack-gpus",
        }
        arguments = [f"--{flag}={value}" for flag, value in flags.items()]
        process = subprocess.Popen([forked(), "serve", "--no-events", "--extender-insecure", *arguments])
        try:
            await_port(admin.number, "the webhook")
            wait_for(lambda: sees(admin.number, nodes), f"{nodes} nodes in the view")
            yield admin.number
        finally:
            process.terminate()
            process.wait()


def gpu_nodes(cluster: Cluster, *names: str) -> None:
    cluster.make_nodes(*(make_node_object(name, capacity={_GPU: 8}) for name in names))


def pod(name: str, gpus: int) -> PodBuilder:
    return make_pod(name).requests(cpu="1", memory="1Gi").gpu(gpus)


def burst(cluster: Cluster) -> list[str]:
    """The nodes of four pods of two GPUs that are created before the first is bound."""
    made = [cluster.create(pod(f"small-{number}", 2)).object for number in range(4)]
    return [cluster.wait_bound(each) for each in made]


def test_extender_packs_pods_that_the_stock_scheduler_spreads(cluster: Cluster, tmp_path: Path, port: int) -> None:
    gpu_nodes(cluster, "gpu-1", "gpu-2")
    with extending(cluster, tmp_path, port, nodes=2):
        cluster.control_plane.start_scheduler(configuration(port, tmp_path))

        assert len({*burst(cluster)}) == 1
        assert cluster.wait_bound(cluster.create(pod("whole", 8)).object)


def test_nodes_made_again_have_all_of_their_cards(cluster: Cluster, tmp_path: Path, port: int) -> None:
    """The last pod, on a node of the same name, is gone: it attracts no pod to the new one."""
    gpu_nodes(cluster, "gpu-1", "gpu-2")
    with extending(cluster, tmp_path, port, nodes=2) as admin_port:
        cluster.control_plane.start_scheduler(configuration(port, tmp_path))
        last = cluster.create(pod("last", 2).node_selector("kubernetes.io/hostname", "gpu-2")).object
        assert cluster.wait_bound(last) == "gpu-2"
        cluster.delete_pod(last)
        for name in ("gpu-1", "gpu-2"):
            cluster.client.delete("Node", name)
        wait_for(lambda: sees(admin_port, 0), "no node in the view")
        gpu_nodes(cluster, "gpu-1", "gpu-2")
        wait_for(lambda: sees(admin_port, 2), "the new nodes in the view")

        assert cluster.wait_bound(cluster.create(pod("first", 2)).object) == "gpu-1"


def test_stock_scheduler_leaves_no_room_for_a_whole_node(cluster: Cluster) -> None:
    gpu_nodes(cluster, "gpu-1", "gpu-2")

    assert {*burst(cluster)} == {"gpu-1", "gpu-2"}
    assert "2 Insufficient nvidia.com/gpu" in cluster.wait_unschedulable(cluster.create(pod("whole", 8)).object)


def test_pods_are_bound_while_the_webhook_is_stopped(cluster: Cluster, tmp_path: Path, port: int) -> None:
    gpu_nodes(cluster, "gpu-1", "gpu-2")
    certificate(tmp_path)
    cluster.control_plane.start_scheduler(configuration(port, tmp_path))

    assert {*burst(cluster)} == {"gpu-1", "gpu-2"}


def test_pod_waits_for_no_more_than_a_pod_that_ends(cluster: Cluster, tmp_path: Path, port: int) -> None:
    """The filter does not reject a node whose pod has just ended, though the view may still show it."""
    gpu_nodes(cluster, "gpu-1")
    with extending(cluster, tmp_path, port, nodes=1):
        cluster.control_plane.start_scheduler(configuration(port, tmp_path))
        first = cluster.create(pod("first", 8)).object
        cluster.wait_bound(first)
        for number in range(2):
            waiting = cluster.create(pod(f"waiting-{number}", 8)).object
            cluster.wait_unschedulable(waiting)

            cluster.delete_pod(first)

            assert cluster.wait_bound(waiting) == "gpu-1"
            first = waiting


def test_nodes_that_only_the_profile_rejects_are_filtered(cluster: Cluster, tmp_path: Path, port: int) -> None:
    """kube-scheduler itself runs without the filter of taints; it sends names, then whole nodes."""
    cluster.make_nodes(
        make_node_object("tainted", capacity={_GPU: 8}, taints=["a=b:NoSchedule"]),
        make_node_object("free", capacity={_GPU: 8}),
    )
    chosen = configuration(port, tmp_path)
    chosen["profiles"][0]["plugins"] = {"filter": {"disabled": [{"name": "TaintToleration"}]}}
    with extending(cluster, tmp_path, port, nodes=2):
        cluster.control_plane.start_scheduler(chosen)
        assert cluster.wait_bound(cluster.create(pod("first", 5)).object) == "free"

        chosen["extenders"][0]["nodeCacheCapable"] = False
        cluster.control_plane.start_scheduler(chosen)
        assert cluster.wait_bound(cluster.create(pod("second", 3)).object) == "free"
        message = cluster.wait_unschedulable(cluster.create(pod("third", 8)).object)
    assert "1 Insufficient nvidia.com/gpu" in message
    assert "1 node(s) had untolerated taint(s)" in message
