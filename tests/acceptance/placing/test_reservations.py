"""Pods that wait keep their room, and only for as long as they wait: the real webhook process on the control plane.

The scheduler is stopped, so pods stay pending. Most tests ask by dry runs, which reserve nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certs.pki import issue_ca
from tests.acceptance.placing.pools import pool_node, training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.on_cluster.webhooks import serving
from tests.support.servers.recording import recording_webhook
from tests.support.servers.server import issued, utc_now

GPUS = 4


@contextmanager
def waiting_cluster(cluster: Cluster, folder: Path, **placement_check: Any) -> Iterator[None]:
    """A node of four GPUs, no scheduler, and the webhook."""
    cluster.control_plane.stop_scheduler()
    cluster.make_nodes(pool_node("train-1", "training", gpus=GPUS))
    with serving(cluster.control_plane, folder, **placement_check) as webhooks:
        webhooks.register(cluster, nodes=1)
        yield


def verdict(cluster: Cluster, gpus: int) -> str:
    """Return what a dry run says about a pod with so many GPUs; empty if it fits."""
    prefix = "placement check: "
    warnings = cluster.create(training_pod("probe", gpus), dry_run=True).warnings
    return next((each.removeprefix(prefix) for each in warnings if each.startswith(prefix)), "")


def wait_free(cluster: Cluster, gpus: int) -> None:
    """Wait until so many GPUs are free, and no more."""

    def verdicts() -> tuple[str, str]:
        return verdict(cluster, gpus), verdict(cluster, gpus + 1)

    wait_for(lambda: [bool(each) for each in verdicts()] == [False, True], lambda: f"{gpus} GPUs free: {verdicts()}")


def test_pod_that_waits_keeps_its_room_until_it_is_deleted(cluster: Cluster, tmp_path: Path) -> None:
    with waiting_cluster(cluster, tmp_path):
        for number in range(3):
            cluster.create(training_pod(f"waiting-{number}"))
        assert verdict(cluster, 1) == verdict(cluster, 1) == ""
        assert verdict(cluster, 2).endswith("It would fit, but 3 pods that wait before it need the room.")
        assert verdict(cluster, 5).startswith("Infeasible")

        cluster.client.delete("Pod", "waiting-0", namespace=cluster.namespace)

        wait_free(cluster, 2)


def test_pod_that_the_scheduler_cannot_place_loses_its_room(cluster: Cluster, tmp_path: Path) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    with waiting_cluster(cluster, tmp_path):
        cluster.create(training_pod("waiting", 3))
        assert verdict(cluster, 2)

        status = {"status": {"conditions": [condition]}}
        cluster.client.patch("Pod", "waiting", status, namespace=cluster.namespace, subresource="status")

        wait_free(cluster, 4)


def test_gated_pod_has_no_room_until_its_gate_opens(cluster: Cluster, tmp_path: Path) -> None:
    with waiting_cluster(cluster, tmp_path):
        cluster.create(training_pod("gated", 3).spec(schedulingGates=[{"name": "example.com/gate"}]))
        assert verdict(cluster, 4) == ""

        cluster.client.patch("Pod", "gated", {"spec": {"schedulingGates": None}}, namespace=cluster.namespace)

        wait_free(cluster, 1)


def test_new_replica_knows_the_pods_that_wait(cluster: Cluster, tmp_path: Path) -> None:
    """The webhook restarts during a burst: what it admitted before is pending, so it is in the first list."""
    with waiting_cluster(cluster, tmp_path):
        for number in range(3):
            cluster.create(training_pod(f"waiting-{number}"))
    cluster.client.delete_collection("MutatingWebhookConfiguration", api_version="admissionregistration.k8s.io/v1")
    cluster.settle_webhooks()
    again = tmp_path / "again"
    again.mkdir()
    with serving(cluster.control_plane, again) as webhooks:
        webhooks.register(cluster, nodes=1)
        assert verdict(cluster, 1) == ""
        assert verdict(cluster, 2).endswith("It would fit, but 3 pods that wait before it need the room.")


def test_stored_requests_count_when_another_webhook_changes_them(cluster: Cluster, tmp_path: Path) -> None:
    ca = issue_ca(now=utc_now())
    resources = "/spec/containers/0/resources"
    three = [
        {"op": "replace", "path": f"{resources}/{part}/nvidia.com~1gpu", "value": "3"}
        for part in ("requests", "limits")
    ]
    only = {"objectSelector": {"matchLabels": {"grows": "true"}}, "reinvocationPolicy": "Never"}
    with waiting_cluster(cluster, tmp_path), recording_webhook(issued(ca), *three) as other:
        cluster.register_webhook(other.url, ca.certificate.decode(), configuration="zz-other", **only)
        cluster.create(training_pod("waiting").label("grows", "true"))

        wait_free(cluster, 1)


def test_room_of_a_pod_that_a_quota_refuses_is_free_again_in_time(cluster: Cluster, tmp_path: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    with waiting_cluster(cluster, tmp_path, reservationSeconds=1):
        other = cluster.make_namespace()
        cluster.client.create(quota, namespace=other)
        status = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
        cluster.client.patch("ResourceQuota", "none", status, namespace=other, subresource="status")
        wait_for(lambda: is_refused(cluster, other), "the quota")

        assert is_refused(cluster, other, dry_run=False)
        assert verdict(cluster, 2)

        wait_free(cluster, 4)


def is_refused(cluster: Cluster, namespace: str, *, dry_run: bool = True) -> bool:
    """Return whether the quota refuses a pod of three GPUs, after it passed the webhook."""
    try:
        cluster.client.create(training_pod("refused", 3).obj(), namespace=namespace, dry_run=dry_run)
    except ApiError as error:
        return "exceeded quota" in error.message
    return False
