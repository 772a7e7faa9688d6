"""A healthy installation on the real control plane, made of the manifests of deploy/ and a real `serve`."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from certs.registration import Target, manifest, with_ca_bundle
from tests.acceptance.placing.pools import pool_node
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import ADMISSION
from tests.doctor.healthy import commands_of
from tests.support.objects.batch_objects import definition
from tests.support.objects.manifests import DEPLOY, ROOT, Object, read, read_one
from tests.support.on_cluster.service_account import RBAC
from tests.support.programs.command import run_here
from tests.support.programs.programs import forked
from tests.support.servers.server import write_certificate

NAMESPACE, CONFIGURATION, POLICY = "placement-webhook", "00-placement-webhook", "placement-policy"
CERTS_NAMESPACE = "placement-webhook-certs"
USAGE, PRODUCT = "maip.mxsf.io/node.usage", "nvidia.com/gpu.product"
QUEUE = "Queue.scheduling.volcano.sh"
EXPORTED = "exported.json"
MANIFESTS = ("serviceaccount", "rbac", "deployment", "poddisruptionbudget", "service", "networkpolicy")


class Installed:
    """The installation: plant a fault, ask doctor, mend it."""

    def __init__(self, cluster: Cluster, address: str, folder: Path) -> None:
        self.cluster = cluster
        self.address = address
        self.folder = folder
        self.client = cluster.client

    def doctor(self, *arguments: object, kubeconfig: Path | None = None) -> dict[str, Any]:
        """Return what `doctor -o json` prints; its exit code is that of its findings."""
        config = kubeconfig or self.cluster.control_plane.kubeconfig
        done = run_here("doctor", "--kubeconfig", config, "-o", "json", *arguments)
        assert done.code in (0, 3, 4), done.errors
        printed: dict[str, Any] = orjson.loads(done.output)
        severities = {each["severity"] for each in printed["findings"]}
        assert done.code == (4 if "error" in severities else 3 if "warning" in severities else 0)
        return printed

    def faults(self, *arguments: object) -> set[str]:
        """Return the ids of the checks that found a fault."""
        return {each["check"] for each in self.doctor(*arguments)["findings"] if each["severity"] != "info"}

    def follow(self, remedy: str, choices: Mapping[str, str]) -> None:
        """Run the commands of a remedy, with `choices` for the words that the reader has to choose."""
        config = self.cluster.control_plane.kubeconfig
        known = {"--dir=DIR": f"--dir={self.folder}", "--policy=FILE": f"--policy={choices.get('FILE')}"}
        known |= {"FILE": str(self.folder / EXPORTED), **choices}
        for command in commands_of(remedy):
            words = [known.get(each, each) for each in command]
            if words[0] == "kubectl":
                shipped = (str(ROOT / each) if each.startswith("deploy/") else each for each in words[1:])
                self.cluster.control_plane.kubectl(*shipped)
            else:
                done = run_here(*words[1:], "--kubeconfig", config)
                assert done.code == 0, done.errors

    @contextmanager
    def changed(self, kind: str, name: str, patch: Any, api_version: str = "v1", namespace: str = "") -> Iterator[None]:
        """Patch an object, and restore what the patch changed."""
        before = self.client.get(kind, name, namespace or None, api_version=api_version)
        self.client.patch(kind, name, patch, api_version=api_version, namespace=namespace or None)
        try:
            yield
        finally:
            current = self.client.get(kind, name, namespace or None, api_version=api_version)
            before["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            self.client.replace({"apiVersion": api_version, "kind": kind, **before})

    @contextmanager
    def webhooks(self, *operations: Object, settled: bool = False) -> Iterator[None]:
        """Change the webhook configuration by RFC 6902; `settled`: for the API server, too."""
        with self.changed("MutatingWebhookConfiguration", CONFIGURATION, list(operations), ADMISSION):
            if settled:
                self.cluster.settle_webhooks()
            yield
        if settled:
            self.cluster.settle_webhooks()

    @contextmanager
    def made(self, content: Object, namespace: str | None = None) -> Iterator[None]:
        """Create an object, and delete it."""
        metadata = self.client.create(content, namespace=namespace).object["metadata"]
        try:
            yield
        finally:
            version = content["apiVersion"]
            self.client.delete(
                content["kind"], metadata["name"], namespace=metadata.get("namespace"), api_version=version
            )

    def policy(self, **spec: Any) -> AbstractContextManager[None]:
        """Change the policy in the ConfigMap."""
        document = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "spec": spec}
        return self.changed("ConfigMap", POLICY, {"data": {"policy.yaml": json.dumps(document)}}, namespace=NAMESPACE)

    def node(self, name: str, patch: Object) -> AbstractContextManager[None]:
        """Change a node."""
        return self.changed("Node", name, patch)


def replaced(path: str, value: Any, index: int = 0) -> Object:
    """Return the operation that sets a field of a webhook."""
    return {"op": "replace", "path": f"/webhooks/{index}/{path}", "value": value}


@contextmanager
def installed(cluster: Cluster, folder: Path) -> Iterator[Installed]:
    """Install as deploy/ does, with the server outside of the cluster, and Volcano's sign that it runs."""
    client = cluster.client
    client.create(read_one("base/namespace.yaml"))
    client.create(read("overlays/self-managed/certs-namespace.yaml")[0])
    for name in MANIFESTS:
        for content in read(f"base/{name}.yaml"):
            client.create(content, namespace=NAMESPACE)
    status = {"status": {"replicas": 2, "readyReplicas": 2}}
    client.patch("Deployment", NAMESPACE, status, namespace=NAMESPACE, api_version="apps/v1", subresource="status")
    client.create(read_config_map(), namespace=NAMESPACE)
    for pool in ("training", "inference", "hybrid"):
        cluster.make_nodes(pool_node(f"{pool}-1", pool))
    volcano = definition(QUEUE)
    client.create(volcano)
    wait_for(lambda: _serves(cluster, volcano["spec"]["group"]), "Volcano's API group")
    try:
        with _serving(folder) as address:
            url = f"https://{address}/mutate"
            configuration = with_ca_bundle(manifest(Target(url=url)), (folder / "ca.crt").read_bytes())
            client.create(configuration)
            cluster.settle_webhooks()
            yield Installed(cluster, address, folder)
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            client.delete(kind, NAMESPACE, api_version=RBAC)
        cluster.control_plane.kubectl("delete", "crd", volcano["metadata"]["name"], "--timeout=120s")


def _serves(cluster: Cluster, group: str) -> bool:
    return group in {each["name"] for each in cluster.client.request("GET", "/apis").object["groups"]}


def read_config_map() -> Object:
    """Return the ConfigMap that kustomize generates."""
    text = (DEPLOY / "base" / "policy.yaml").read_text()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": POLICY}, "data": {"policy.yaml": text}}


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """Run `serve` with the policy of deploy/; yield its address."""
    write_certificate(folder)
    log = folder / "webhook.log"
    flags = {"tls-dir": folder, "audit": folder / "audit.jsonl", "listen": "127.0.0.1:0", "admin-listen": "127.0.0.1:0"}
    flags |= {"policy": DEPLOY / "base" / "policy.yaml"}
    arguments = ["serve", "--no-cluster", *(f"--{flag}={value}" for flag, value in flags.items())]
    with log.open("wb") as written:
        process = subprocess.Popen([forked(), *arguments], stderr=written)
    try:
        line = wait_for(lambda: log.read_text().partition("\n")[0] if "\n" in log.read_text() else None, "its address")
        yield f"127.0.0.1:{json.loads(line)['webhook'].rpartition(':')[2]}"
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The installation for the tests of one file."""
    cluster = Cluster(control_plane)
    try:
        with installed(cluster, tmp_path_factory.mktemp("installation")) as made:
            yield made
    finally:
        cluster.remove_everything()
