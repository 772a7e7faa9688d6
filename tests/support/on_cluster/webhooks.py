"""Replicas of the webhook in processes of their own, which follow a real cluster."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import orjson

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.support.programs.programs import forked
from tests.support.servers.processes import await_port, certificate
from webhook.policy.loader import built_in_policy
from webhook.policy.spec.document import API_VERSION, KIND

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Running replicas: the address that the API server calls, and the folder of each replica."""

    port: int
    ca_pem: str
    folders: Sequence[Path]
    admin_ports: Sequence[int]

    def register(self, cluster: Cluster, nodes: int) -> None:
        """Send created pods here once each replica has the nodes in its view."""
        wait_for(lambda: all(sees(port, nodes) for port in self.admin_ports), "the view of each replica")
        cluster.register_webhook(f"https://127.0.0.1:{self.port}/mutate", self.ca_pem)


@contextmanager
def serving(
    control_plane: ControlPlane,
    folder: Path,
    replicas: int = 1,
    *,
    extender_profile: str = "none",
    scheduler: str | None = None,
    **placement_check: Any,
) -> Iterator[Webhooks]:
    """Replicas that follow the cluster, behind a proxy if there is more than one.

    The policy is the built-in one with `scheduler` for training: without one, kube-scheduler places all pods. Fields of
    its `placementCheck` by keyword: the work budget is the largest, so that verdicts are known on a busy machine, too.
    Unless it is `none`, the scheduler extender judges nodes by `extender_profile`.
    """
    placement_check = {"workBudgetMilliseconds": 10_000} | placement_check
    certificate(folder)
    (folder / "policy.yaml").write_bytes(orjson.dumps(_policy(scheduler, placement_check)))
    folders = [folder / f"replica-{number}" for number in range(replicas)]
    with ExitStack() as stack:
        ports = [stack.enter_context(HeldPort()).number for _ in folders]
        admin_ports = [stack.enter_context(HeldPort()).number for _ in folders]
        for port, admin_port, own in zip(ports, admin_ports, folders, strict=True):
            own.mkdir()
            flags = {
                "tls-dir": folder,
                "policy": folder / "policy.yaml",
                "kubeconfig": control_plane.kubeconfig,
                "audit": own / "audit.jsonl",
                "listen": f"127.0.0.1:{port}",
                "admin-listen": f"127.0.0.1:{admin_port}",
                "log-level": "warning",
            }
            if extender_profile != "none":
                flags["extender-profile"] = extender_profile
            arguments = ["--extender-insecure", *(f"--{flag}={value}" for flag, value in flags.items())]
            stack.enter_context(_process("webhook", str(own / "best.json"), "serve", *arguments))
        port = ports[0]
        if replicas > 1:
            port = stack.enter_context(HeldPort()).number
            stack.enter_context(_process("proxy", str(port), *map(str, ports)))
        for each in (*ports, *admin_ports, port):
            await_port(each, "the webhook")
        yield Webhooks(port, (folder / "ca.crt").read_text(), folders, admin_ports)


@contextmanager
def _process(*arguments: str) -> Iterator[None]:
    process = subprocess.Popen([forked("tests.support.programs.burst_servers:main"), *arguments])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _policy(scheduler: str | None, placement_check: Object) -> Object:
    spec = built_in_policy().spec.model_dump(mode="json", by_alias=True)
    spec["workloadTypes"]["training"]["schedulerName"] = scheduler
    spec["placementCheck"] |= placement_check
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "burst"}, "spec": spec}


def sees(admin_port: int, nodes: int) -> bool:
    """Return whether the webhook with these metrics has so many nodes in its view."""
    try:
        return gauges(admin_port).get("placement_webhook_cluster_nodes") == nodes
    except URLError:
        return False


def gauges(admin_port: int) -> dict[str, float]:
    """Return the metrics without labels.

    Raises:
        URLError: the webhook does not answer.
    """
    with urlopen(f"http://127.0.0.1:{admin_port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    named = (line.split() for line in lines if not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in named}
