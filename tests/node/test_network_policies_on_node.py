"""The NetworkPolicies, enforced by kube-router, let through what is needed and nothing else."""

from collections.abc import Iterator

import pytest

from tests.controlplane.polling import Stopwatch
from tests.node.installation import CERTS_NAMESPACE, NAMESPACE, TEAM, Installation, pod
from tests.node.running.configuration import API_SERVICE, DNS_SERVICE, NODE_NAME
from tests.node.running.namespaces import run
from tests.node.running.node import Node

IMAGE = "placement-webhook:0.1.0"
REMOVE_RULES = (
    "iptables-save -t filter | grep -v 'KUBE-ROUTER\\|KUBE-POD-FW\\|KUBE-NWPLCY' | iptables-restore -T filter"
)
# Python is the only program of the image that can connect.
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)"


@pytest.fixture
def enforced(real_node: Node) -> Iterator[None]:
    """kube-router enforces NetworkPolicies on the node; nothing else of it runs."""
    real_node.start(
        "kube-router",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--enable-cni=false",
        f"--kubeconfig={real_node.kubeconfig}",
        f"--hostname-override={NODE_NAME}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--iptables-sync-period=5s",
    )
    yield
    real_node.stop("kube-router")
    # Its rules stay in the kernel when it ends.
    run(real_node.namespaces.command("sh", "-c", REMOVE_RULES))


def reaches(installation: Installation, place: str, address: str, port: int) -> bool:
    """Return whether a container connects to a port. `place` are the arguments of `kubectl exec` that name it."""
    command = f"kubectl exec {place} -- /opt/placement-webhook/bin/python -c '{CONNECT}' {address} {port}"
    return installation.shell(command, check=False).returncode == 0


def client_pod(installation: Installation, namespace: str) -> str:
    """Run a pod that connects nowhere by itself; return the arguments that name it."""
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "client", "namespace": namespace},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": IMAGE,
                    "command": ["/opt/placement-webhook/bin/python", "-c", "import signal; signal.pause()"],
                }
            ],
        },
    }
    installation.create(made)
    installation.shell(f"kubectl -n {namespace} wait --for=condition=Ready pod/client --timeout=60s")
    return f"-n {namespace} client"


def test_only_what_is_needed_is_let_through(installation: Installation, enforced: None) -> None:
    installation.choose_default_scheduler()
    began = Stopwatch()
    installation.shell.run_block("deploy/README.md", "Self-managed certificates")
    # The probes of the kubelet, the calls of the certs controller and those to the API server pass.
    installation.wait_for_rollout(began, NAMESPACE, CERTS_NAMESPACE)
    installation.shell("kubectl create namespace monitoring")
    with installation.team():
        stranger, prometheus = client_pod(installation, TEAM), client_pod(installation, "monitoring")
        with installation.pool():
            installation.create(pod("trainer"))
            installation.wait_running("trainer")
        replica = installation.replicas()[0]
        server = f"-n {NAMESPACE} {replica}"
        address = installation.client.get("Pod", replica, NAMESPACE)["status"]["podIP"]
        dns = installation.client.list("Pod", "kube-system", label_selector="k8s-app=kube-dns")[0]["status"]["podIP"]
        reached = {
            "a pod, the webhook": reaches(installation, stranger, address, 8443),
            "a pod, the admin port": reaches(installation, stranger, address, 8080),
            "Prometheus, the admin port": reaches(installation, prometheus, address, 8080),
            "the webhook, the API server": reaches(installation, server, API_SERVICE, 443),
            "the webhook, DNS": reaches(installation, server, DNS_SERVICE, 53),
            "the webhook, another pod": reaches(installation, server, dns, 8181),
            "a pod, another pod": reaches(installation, stranger, dns, 8181),
        }
        assert reached == {
            "a pod, the webhook": True,
            "a pod, the admin port": False,
            "Prometheus, the admin port": True,
            "the webhook, the API server": True,
            "the webhook, DNS": False,
            "the webhook, another pod": False,
            "a pod, another pod": True,
        }
        installation.assert_no_call_is_denied()
    installation.shell("kubectl delete namespace monitoring")
    installation.shell.run_block("deploy/README.md", "Removal")
    installation.wait_removed()
