"""PlacementPolicy objects of a real API server: schema, selection by namespace, status and the fallback."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.client import ApiError, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, TYPE
from tests.support.builders import make_pod
from tests.support.manifests import DEPLOY
from tests.support.server import write_certificate
from tests.support.service_account import limited_to
from webhook.policy.custom_resource import NAME, page
from webhook.policy.document import API_VERSION, KIND

CRD = DEPLOY / "crd" / "placementpolicies.yaml"


def test_the_definition_is_that_of_the_models() -> None:
    assert CRD.read_text() == page(), "run `make docs`"


def policy(name: str, team: str = "", **spec: Any) -> Object:
    selection = {"namespaceSelector": {"matchLabels": {"team": team}}} if team else {}
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}}
    return head | {"spec": selection | spec}


def training(scheduler: str, **more: Any) -> Object:
    """A spec whose training pods get this scheduler."""
    usage = {"allow": ["training"]}
    return {"workloadTypes": {"training": {"nodeUsage": usage, "schedulerName": scheduler}}} | more


@dataclass(frozen=True, slots=True)
class Server:
    """A server that follows the PlacementPolicies of the cluster."""

    cluster: Cluster
    admin_url: str

    def described(self) -> Object:
        """Return what the admin port says of the policies."""
        with urllib.request.urlopen(f"{self.admin_url}/policy", timeout=10) as answer:
            found: Object = json.loads(answer.read())
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
    crd = yaml.safe_load(CRD.read_text())
    cluster.client.apply(crd)
    wait_for(lambda: _is_served(cluster), "the PlacementPolicies being served")
    write_certificate(tmp_path)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy("file", **training("kai-scheduler"))))
    arguments = [f"--tls-dir={tmp_path}", f"--policy={tmp_path / 'policy.yaml'}", "--policy-source=crd", "--no-events"]
    arguments += [
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--log-format=json",
        f"--audit={tmp_path / 'audit.jsonl'}",
    ]
    roles = [*yaml.safe_load_all((DEPLOY / "base/rbac.yaml").read_text())]
    roles += [*yaml.safe_load_all((DEPLOY / "overlays/crd/rbac.yaml").read_text())]
    with limited_to(cluster, tmp_path, [rule for each in roles for rule in each.get("rules", [])]) as kubeconfig:
        yield from _served(cluster, tmp_path, [*arguments, f"--kubeconfig={kubeconfig}"])
    cluster.client.delete("CustomResourceDefinition", NAME, api_version=crd["apiVersion"])


def _served(cluster: Cluster, tmp_path: Path, arguments: list[str]) -> Iterator[Server]:
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen([sys.executable, "-m", "webhook", "serve", *arguments], stderr=log)
    try:
        event = wait_for(lambda: _serving(tmp_path / "log"), "the server")
        wait_for(lambda: _is_ready(event["admin"]), "the server being ready")
        cluster.register_webhook(f"https://{event['webhook']}/mutate", (tmp_path / "ca.crt").read_text())
        yield Server(cluster, f"http://{event['admin']}")
    finally:
        process.terminate()
        process.wait()
        log.close()


def _is_served(cluster: Cluster) -> bool:
    listed = cluster.kubectl("get", "placementpolicies", check=False)
    return listed.returncode == 0


def _serving(log: Path) -> Object | None:
    events = [json.loads(line) for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    return next((each for each in events if each["event"] == "serving"), None)


def _is_ready(admin: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{admin}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def conditions(status: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}


def test_policies_of_the_cluster_are_in_force_by_namespace(server: Server) -> None:
    cluster = server.cluster
    one, two, other = (cluster.make_namespace(labels={"team": each}) for each in ("one", "two", "other"))
    server.put(policy("one", "one", **training("volcano")))
    server.put(policy("two", "two", **training("binpack-scheduler")))
    seen: Callable[[], tuple[str, ...]] = lambda: tuple(map(server.scheduler, (one, two, other)))  # noqa: E731
    wait_for(lambda: seen() == ("volcano", "binpack-scheduler", "kai-scheduler"), "each namespace having its policy")

    failing = {"name": "wrong", "annotations": {TYPE: "training"}, "expect": {"outcome": "Unchanged"}}
    bad = cluster.client.apply(policy("two", "two", **training("volcano", tests=[failing]))).object
    status = server.status("two", bad["metadata"]["generation"])
    assert conditions(status) == {"Accepted": "False", "InForce": "False"}
    assert 'spec.tests[0].expect.outcome: Invalid value: "Unchanged"' in status["conditions"][0]["message"]
    assert status["revision"] == server.described()["policies"]["two"]["revision"]
    assert server.scheduler(two) == "binpack-scheduler"
    with urllib.request.urlopen(f"{server.admin_url}/readyz", timeout=10) as answer:
        assert b"the newest policy is rejected" in answer.read()

    table = cluster.kubectl("get", "plp").stdout.splitlines()
    assert table[0].split() == ["NAME", "MODE", "PRIORITY", "REVISION", "ACCEPTED", "AGE"]
    assert {line.split()[0]: ("True" in line, "False" in line) for line in table[1:]} == {
        "one": (True, False),
        "two": (False, True),
    }

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
