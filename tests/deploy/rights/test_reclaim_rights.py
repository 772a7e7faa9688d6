"""The roles of `reclaim` suffice, and the webhook has none of their rights to evict."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from tests.controlplane.cluster import Cluster
from tests.doctor.installed import NAMESPACE, Installed, installation
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.manifests import Object, read
from tests.support.on_cluster.service_account import RBAC, limited_to
from tests.support.programs.command import Outcome, run_here
from webhook.kube.names import KUEUE_CONFIGURATION, VOLCANO_CONFIGURATION
from webhook.watch import api_errors
from webhook.watch.api_errors import ApiServerError

__all__ = ["installation"]

READING, POLICY_IN_FORCE, EVICTING = (role["rules"] for role in read("reclaim/rbac.yaml"))
WEBHOOK = read("base/rbac.yaml")[0]["rules"]
LONG_AGO = "2026-01-01T00:00:00Z"
POLICY = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": "own"}}


def reclaim(cluster: Cluster, folder: Path, kubeconfig: Path, *flags: str) -> Outcome:
    policy = folder / "policy.json"
    policy.write_bytes(orjson.dumps({**POLICY, "spec": {"reclaim": {"namespaces": [cluster.namespace]}}}))
    given = ("--kubeconfig", kubeconfig, "--policy", policy, "-n", cluster.namespace)
    return run_here("reclaim", *given, *flags)


def hold(cluster: Cluster, node: str) -> None:
    """Create `node`, and a pod that holds a card of it and does not start."""
    cluster.make_nodes(make_node_object(node, capacity={"nvidia.com/gpu": 1}))
    cluster.create(make_pod("crash").gpu(1).node_name(node))
    waiting = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 1}
    status = {
        "phase": "Running",
        "startTime": LONG_AGO,
        "conditions": [{"type": "ContainersReady", "status": "False", "lastTransitionTime": LONG_AGO}],
        "containerStatuses": [{**waiting, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
    }
    cluster.client.patch("Pod", "crash", {"status": status}, namespace=cluster.namespace, subresource="status")


@pytest.fixture
def held(cluster: Cluster) -> Cluster:
    """Return a cluster with a pod that holds a card and does not start."""
    hold(cluster, "held-1")
    return cluster


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets each request that the API server forbids, also those that no note is printed for."""
    found: list[str] = []

    async def refusal(method: str, path: str, response: aiohttp.ClientResponse) -> ApiServerError:
        if response.status == 403:
            found.append(f"{method} {path}")
        return await api_errors.refusal(method, path, response)

    monkeypatch.setattr("webhook.watch.api_server.refusal", refusal)
    return found


REPLICA = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {
        "name": "replica",
        "namespace": NAMESPACE,
        "labels": {"kubernetes.io/service-name": "placement-webhook"},
    },
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "replica", "namespace": NAMESPACE}}],
}
LAST_PARTS = {
    "deployments": {"deployments"},
    "services": {"placement-webhook", "placement-policy"},
    "endpointslices": {"endpointslices"},
    "pods/proxy": {"policy"},
}
FOLLOWS_OBJECTS = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--policy-source=crd"}]


@contextmanager
def reader(installation: Installed, folder: Path, in_force: list[Object]) -> Iterator[Path]:
    """Return the kubeconfig of an account that may report, with the rights `in_force` in the webhook's namespace."""
    cluster, names = installation.cluster, {"name": "placement-webhook-reclaim-policy"}
    account = {"kind": "ServiceAccount", "name": "limited", "namespace": cluster.namespace}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": names, "rules": in_force}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **names}
    binding = {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {**names, "namespace": NAMESPACE}}
    with (
        installation.made(role),
        installation.made({**binding, "roleRef": reference, "subjects": [account]}, NAMESPACE),
        installation.made(REPLICA, NAMESPACE),
        installation.changed("Deployment", NAMESPACE, FOLLOWS_OBJECTS, "apps/v1", NAMESPACE),
        limited_to(cluster, folder, [*READING, *EVICTING]) as kubeconfig,
    ):
        yield kubeconfig


def test_the_roles_suffice_for_the_policy_in_force(
    installation: Installed, tmp_path: Path, forbidden: list[str]
) -> None:
    namespace = installation.cluster.namespace
    hold(installation.cluster, "held-by-own")

    with (
        reader(installation, tmp_path, POLICY_IN_FORCE) as kubeconfig,
        installation.policy(reclaim={"namespaces": [namespace]}),
    ):
        report = run_here("reclaim", "--kubeconfig", kubeconfig, "-n", namespace)
        asked = run_here("reclaim", "--kubeconfig", kubeconfig, "-n", namespace, "--evict")

    assert (report.code, forbidden, report.errors, asked.errors) == (3, [], "", "")
    assert asked.output.splitlines()[0] == f"would be evicted: {namespace}/crash: crash-loop"


@pytest.mark.parametrize("rule", POLICY_IN_FORCE, ids=lambda rule: "-".join(rule["resources"]))
def test_each_right_for_the_policy_in_force_is_needed(
    installation: Installed, tmp_path: Path, forbidden: list[str], rule: Object
) -> None:
    """The two rules for the policy of a replica are only needed for that, and no note is printed without them."""
    others = [each for each in POLICY_IN_FORCE if each is not rule]

    with reader(installation, tmp_path, others) as kubeconfig:
        run_here("reclaim", "--kubeconfig", kubeconfig)

    assert LAST_PARTS[rule["resources"][0]] <= {path.split("/")[-1] for path in forbidden}


def test_the_roles_suffice_to_report_and_to_evict(held: Cluster, tmp_path: Path) -> None:
    audit = str(tmp_path / "audit.jsonl")
    with limited_to(held, tmp_path, [*READING, *EVICTING]) as kubeconfig:
        report = reclaim(held, tmp_path, kubeconfig, "-o", "json")
        evicted = reclaim(held, tmp_path, kubeconfig, "--evict", "--confirm", "--audit", audit)

    (row,) = orjson.loads(report.output)["held"]
    assert (row["class"], row["name"]) == ("crash-loop", "crash")
    assert "not known" not in report.errors
    assert evicted.output.splitlines()[-1] == "1 evicted"
    assert "no Event" not in evicted.errors


def test_the_role_to_read_evicts_nothing(held: Cluster, tmp_path: Path) -> None:
    with limited_to(held, tmp_path, READING) as kubeconfig:
        outcome = reclaim(held, tmp_path, kubeconfig, "--evict")

    assert "refused" in outcome.output
    assert "403" in outcome.output


def test_the_role_to_read_reads_the_configuration_of_kueue_and_volcano() -> None:
    (rule,) = (rule for rule in READING if rule["resources"] == ["configmaps"])

    assert (rule["resourceNames"], rule["verbs"]) == ([KUEUE_CONFIGURATION, VOLCANO_CONFIGURATION], ["get"])


def test_the_webhook_has_no_right_to_evict() -> None:
    assert [rule for rule in WEBHOOK if "pods/eviction" in rule["resources"]] == []
