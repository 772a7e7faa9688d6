"""Replicas of the webhook as pods of the real API server, whose logs a fake kubelet has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import make_pod
from tests.support.programs.audit_records import chain_lines, make_record
from tests.support.programs.command import Outcome, Run
from tests.support.servers.fake_kubelet import Kubelet, serving_logs

LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "server"}
LOG_LINE = b'{"event":"serving","level":"info"}\n2026-05-01 08:00:00 [info] a line of another form\n'


@pytest.fixture
def kubelet(cluster: Cluster, tmp_path: Path) -> Iterator[Kubelet]:
    """The kubelet of the node `n1`."""
    with serving_logs(tmp_path) as kubelet:
        cluster.make_node("n1")
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        }
        cluster.client.patch("Node", "n1", {"status": status}, subresource="status")
        yield kubelet


def start_replica(
    cluster: Cluster,
    name: str,
    *,
    namespace: str | None = None,
    restarted: bool = False,
    started: bool = True,
    **spec: object,
) -> None:
    """Create a pod of the webhook on the node, whose container runs; `spec` is of the container."""
    namespace = namespace or cluster.namespace
    pod = make_pod(name).node_name("n1").obj()
    pod["metadata"]["labels"] = LABELS
    pod["spec"]["containers"][0] |= {"name": "webhook", **spec}
    cluster.client.create(pod, namespace=namespace)
    now = "2026-05-01T08:00:00Z"
    container: dict[str, Any] = {
        "name": "webhook",
        "image": "i",
        "imageID": "i",
        "ready": started,
        "restartCount": int(restarted),
        "state": {"running": {"startedAt": now}} if started else {"waiting": {"reason": "ContainerCreating"}},
    }
    if restarted:
        container["lastState"] = {"terminated": {"exitCode": 137, "startedAt": now, "finishedAt": now}}
    status = {"status": {"phase": "Running", "containerStatuses": [container]}}
    cluster.client.patch("Pod", name, status, namespace=namespace, subresource="status")


def log_of(*numbers: int, replica: str) -> bytes:
    """A container's log: the chain of these admissions, with lines of the server's own log around them."""
    lines = chain_lines([make_record(number, replica=replica) for number in numbers])
    return LOG_LINE + b"".join(line + b"\n" + LOG_LINE for line in lines)


def audit(run: Run, cluster: Cluster, command: str, *arguments: str) -> Outcome:
    """Run `audit COMMAND` on the replicas."""
    where = ("--kubeconfig", str(cluster.control_plane.kubeconfig), "--webhook-namespace", cluster.namespace)
    return run("audit", command, *arguments, *where)
