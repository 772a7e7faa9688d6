"""PlacementPolicy objects of a real API server: schema, selection by namespace, status and the fallback."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.client import ApiError, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import read
from tests.support.objects.policy_objects import policy, served_policies
from tests.support.on_cluster.service_account import limited_to
from tests.support.programs.command import run_here
from tests.support.programs.programs import forked
from tests.support.servers.server import write_certificate
from webhook.policy.spec.document import API_VERSION, KIND


def training(scheduler: str, **more: Any) -> Object:
    """A spec whose training pods get this scheduler."""
    usage = {"allow": ["training"]}
    return {"workloadTypes": {"training": {"nodeUsage": usage, "schedulerName": scheduler}}} | more


@dataclass(frozen=True, slots=True)
class Server:
    """A server that follows the PlacementPolicies of the cluster."""

    cluster: Cluster
    found: Object
    folder: Path

    @property
    def admin(self) -> str:
        """The address of the admin port."""
        return str(self.found["admin"])

    def register(self, replica: Object) -> None:
        """Let the API server call the replica with these addresses alone."""
        self.cluster.client.delete(
            "MutatingWebhookConfiguration", "placement-webhook", api_version="admissionregistration.k8s.io/v1"
        )
        self.cluster.register_webhook(f"https://{replica['webhook']}/mutate", (self.folder / "ca.crt").read_text())

    def patch_status(self, name: str, status: Object) -> None:
        """Change the status of the object."""
        self.cluster.client.patch(KIND, name, {"status": status}, api_version=API_VERSION, subresource="status")

    def described(self) -> Object:
        """Return what the admin port says of the policies."""
        found: Object = json.loads(get(self.admin, "/policy")[1])
        return found

    def put(self, content: Object) -> None:
        """Apply the object; return once the server has written its status."""
        made = self.cluster.client.apply(content).object
        self.status(content["metadata"]["name"], made["metadata"]["generation"])

    def status(self, name: str, generation: int) -> Object:
        """Return the status of this generation, once it is there."""

        def found() -> Object | None:
            status: Object = self.cluster.client.get(KIND, name, api_version=API_VERSION).get("status", {})
            return status if status.get("observedGeneration") == generation else None

        return wait_for(found, f"the status of {name}")

    def scheduler(self, namespace: str) -> str:
        """Return the scheduler of a new training pod in `namespace`."""
        pod = make_pod(f"trainer-{time.monotonic_ns()}").namespace(namespace).annotate(TYPE, "training").gpu(1).obj()
        return str(self.cluster.client.create(pod, dry_run=True).object["spec"]["schedulerName"])


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[Server]:
    write_certificate(tmp_path)
    of_file = policy("file", **training("kai-scheduler")), policy("three", "three", **training("default-scheduler"))
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all(of_file))
    rules = [
        rule
        for path in ("base", "overlays/crd")
        for each in read(f"{path}/rbac.yaml")
        for rule in each.get("rules", [])
    ]
    with (
        served_policies(cluster.control_plane),
        limited_to(cluster, tmp_path, rules),
        serving(tmp_path, "replica-a") as found,
    ):
        wait_for(lambda: readiness(found["admin"])[0] == 200, "the server being ready")
        served = Server(cluster, found, tmp_path)
        served.register(found)
        yield served


@contextmanager
def serving(folder: Path, replica: str) -> Iterator[Object]:
    """Run a replica with the certificate, the policy and the kubeconfig in `folder`; yield its addresses."""
    arguments = [f"--tls-dir={folder}", f"--policy={folder / 'policy.yaml'}", "--policy-source=crd", "--no-events"]
    arguments += [f"--kubeconfig={folder / 'kubeconfig'}", f"--audit={folder / replica}.jsonl"]
    arguments += ["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
    with (folder / f"{replica}.log").open("wb") as log:
        process = subprocess.Popen([forked(), "serve", *arguments], stderr=log)
        try:
            yield wait_for(lambda: _serving(folder / f"{replica}.log"), "the server")
        finally:
            process.terminate()
            process.wait()


def _serving(log: Path) -> Object | None:
    events = [json.loads(line) for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    return next((each for each in events if each["event"] == "serving"), None)


def get(admin: str, path: str) -> tuple[int, str]:
    """Return the HTTP status and the text at this path of the admin port."""
    try:
        with urllib.request.urlopen(f"http://{admin}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def readiness(admin: str) -> tuple[int, str]:
    return get(admin, "/readyz")


def offline(server: Server, *namespaces: str) -> tuple[str, ...]:
    """Return the schedulers by `mutate` with the file of the server, and the objects as kubectl prints them."""
    objects, pods = server.folder / "objects.yaml", server.folder / "pods.json"
    objects.write_text(server.cluster.kubectl("get", "placementpolicies", "-o", "yaml").stdout)
    items = [make_pod("trainer").namespace(each).annotate(TYPE, "training").gpu(1).obj() for each in namespaces]
    pods.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    flags = (
        "--policy",
        server.folder / "policy.yaml",
        "--policy",
        objects,
        "--kubeconfig",
        server.folder / "kubeconfig",
    )
    outcome = run_here("mutate", "-f", pods, *flags, "-o", "json")
    assert outcome.code == 0, outcome.errors
    specs = (json.loads(line)["spec"] for line in outcome.output.splitlines())
    return tuple(each.get("schedulerName", "default-scheduler") for each in specs)


def conditions(status: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


def a_new_replica_decides_by_the_last_good_generation(server: Server, name: str, *namespaces: str) -> None:
    """A replica that starts takes the last good generation from the status. Without it, it waits for a correction."""
    revision, seen = server.described()["policies"][name]["revision"], tuple(map(server.scheduler, namespaces))
    with serving(server.folder, "replica-b") as found:
        wait_for(lambda: readiness(found["admin"])[0] == 200, "the replica being ready")
        assert json.loads(get(found["admin"], "/policy")[1])["policies"] == server.described()["policies"]
        server.register(found)
        wait_for(lambda: tuple(map(server.scheduler, namespaces)) == seen, "the same decisions")
        server.register(server.found)
    stored = server.cluster.client.get(KIND, name, api_version=API_VERSION)["status"]["inForceSpec"]
    server.patch_status(name, {"inForceSpec": {**stored, "mode": "shadow"}})
    with serving(server.folder, "replica-c") as found:
        reason = f"not ready: {name}@{revision} was in force and is not known here"
        wait_for(lambda: readiness(found["admin"])[1].startswith(reason), "the reason not to be ready")
        assert readiness(found["admin"])[0] == 503
        assert json.loads(get(found["admin"], "/policy")[1])["missingPolicies"] == {name: revision}
        assert "\nplacement_webhook_policies_missing 1.0\n" in get(found["admin"], "/metrics")[1]
        assert readiness(server.admin)[0] == 200
        server.put(policy(name, name, **training("binpack-scheduler")))
        wait_for(lambda: readiness(found["admin"])[0] == 200, "the replica being ready")
        assert json.loads(get(found["admin"], "/policy")[1])["policies"] == server.described()["policies"]
    assert "inForceSpec" not in server.cluster.client.get(KIND, name, api_version=API_VERSION)["status"]


def test_policies_of_the_cluster_are_in_force_by_namespace(server: Server) -> None:
    cluster = server.cluster
    one, two, other, three = (
        cluster.make_namespace(labels={"team": each}) for each in ("one", "two", "other", "three")
    )
    server.put(policy("one", "one", **training("volcano")))
    server.put(policy("two", "two", **training("binpack-scheduler")))
    seen: Callable[[], tuple[str, ...]] = lambda: tuple(map(server.scheduler, (one, two, other)))  # noqa: E731
    wait_for(lambda: seen() == ("volcano", "binpack-scheduler", "kai-scheduler"), "each namespace having its policy")
    assert server.scheduler(three) == "default-scheduler"
    assert offline(server, one, two, other, three) == (*seen(), "default-scheduler")

    failing = {"name": "wrong", "annotations": {TYPE: "training"}, "expect": {"outcome": "Unchanged"}}
    bad = cluster.client.apply(policy("two", "two", **training("volcano", tests=[failing]))).object
    status = server.status("two", bad["metadata"]["generation"])
    assert conditions(status) == {"Accepted": "False", "InForce": "False"}
    assert 'spec.tests[0].expect.outcome: Invalid value: "Unchanged"' in status["conditions"][0]["message"]
    assert status["revision"] == server.described()["policies"]["two"]["revision"]
    assert server.scheduler(two) == "binpack-scheduler"
    assert "the newest policy is rejected and the last good one stays in force" in readiness(server.admin)[1]

    table = cluster.kubectl("get", "pp").stdout.splitlines()
    assert table[0].split() == ["NAME", "MODE", "PRIORITY", "REVISION", "ACCEPTED", "REASON", "AGE"]
    assert {line.split()[0]: ("True" in line, "False" in line) for line in table[1:]} == {
        "one": (True, False),
        "two": (False, True),
    }

    a_new_replica_decides_by_the_last_good_generation(server, "two", one, two, other)
    cluster.client.delete(KIND, "two", api_version=API_VERSION)
    server.put(policy("default", **training("volcano")))
    wait_for(lambda: seen() == ("volcano", "volcano", "volcano"), "the default policy of the cluster being in force")
    cluster.client.delete(KIND, "default", api_version=API_VERSION)
    wait_for(lambda: server.scheduler(two) == "kai-scheduler", "the policy of the file being in force again")

    refused: dict[str, Object] = {
        "an unknown field": {"unknown": 1},
        "a canary in shadow mode": {"mode": "shadow", "canaryPercent": 5},
        "a scheduler that is not allowed": {"allowedSchedulers": ["default-scheduler"], **training("volcano")},
        "a preference that is not allowed": {
            "workloadTypes": {"training": {"nodeUsage": {"allow": ["a"], "prefer": {"b": 1}}}}
        },
        "the control plane": {
            "workloadTypes": {
                "t": {"nodeUsage": {"allow": ["a"]}, "extraTolerations": [{"key": f"{DOMAIN}/control-plane"}]}
            }
        },
    }
    for reason, spec in refused.items():
        with pytest.raises(ApiError):
            cluster.client.create(policy(reason.replace(" ", "-"), "one", **spec))
    with pytest.raises(ApiError, match="namespaceSelector must be set"):
        cluster.client.create(policy("no-selector"))
