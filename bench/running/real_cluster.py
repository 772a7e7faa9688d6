"""The control plane of a benchmark, and pods that are created on it."""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import orjson

from bench.running.writers import NAMESPACE, created, objects
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.support.objects.clusters import DOMAIN

_LONGEST_SECONDS = 300.0
_STOCK_SCHEDULER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
# What the tests read in the scheduler's log, it spends processor time on.
_USUAL_VERBOSITY = 2


@contextmanager
def control_plane_and_folder() -> Iterator[tuple[ControlPlane, Path]]:
    """Yield a control plane, and a folder that is removed with it; print to standard error what has to be built."""
    programs = find_or_build(os.environ, lambda line: click.echo(f"control plane: {line}", err=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "control-plane").mkdir()
        with ControlPlane(programs, folder / "control-plane") as control_plane:
            yield control_plane, folder


def fill(control_plane: ControlPlane, nodes: int, namespaces: int) -> None:
    """Make empty nodes, the namespaces of so many bursts, and a kube-scheduler as users have it."""
    control_plane.start_scheduler(_STOCK_SCHEDULER, verbosity=_USUAL_VERBOSITY)
    deadline = time.monotonic() + _LONGEST_SECONDS
    of_bursts = [NAMESPACE | {"metadata": {"name": f"team-{number}"}} for number in range(namespaces)]
    created(control_plane.kubeconfig, "namespaces", iter(of_bursts), deadline)
    created(control_plane.kubeconfig, "nodes", objects("Node", nodes, 0), deadline)


@contextmanager
def registered(control_plane: ControlPlane, port: int, ca_pem: str) -> Iterator[None]:
    """Send created pods to the webhook at this port until the block ends, and delete the pods then."""
    cluster = Cluster(control_plane)
    cluster.register_webhook(f"https://127.0.0.1:{port}/mutate", ca_pem)
    try:
        yield
    finally:
        cluster.remove_registrations()
        for namespace in {pod["metadata"]["namespace"] for pod in cluster.client.list("Pod")}:
            cluster.client.delete_collection("Pod", namespace)


def create_until_bound(control_plane: ControlPlane, reviews: Iterable[bytes]) -> float:
    """Create the pods of `reviews` and return once all are bound; return how many were created in a second."""
    began = time.monotonic()
    pods = created(control_plane.kubeconfig, "pods", map(_created, reviews), began + _LONGEST_SECONDS)
    per_second = pods / (time.monotonic() - began)
    wait_for(
        lambda: not control_plane.client.list("Pod", field_selector="spec.nodeName="),
        "a node for each pod",
        deadline_seconds=_LONGEST_SECONDS,
    )
    return per_second


def _created(review: bytes) -> dict[str, Any]:
    """Return the pod of a review as a user creates it, for the kube-scheduler that runs."""
    pod: dict[str, Any] = orjson.loads(review)["request"]["object"]
    kept = ("generateName", "namespace", "labels", "annotations")
    pod["metadata"] = {key: pod["metadata"][key] for key in kept}
    pod["metadata"]["annotations"][f"{DOMAIN}/scheduler"] = "default-scheduler"
    # No service account exists here.
    pod["spec"]["volumes"] = [{"name": each["name"], "emptyDir": {}} for each in pod["spec"]["volumes"]]
    return pod
