"""The roles of `reclaim`: they suffice to report and to evict, and the webhook has none of their rights to evict."""

from pathlib import Path

import orjson
import pytest

from tests.controlplane.cluster import Cluster
from tests.doctor.installed import Installed, installation
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.manifests import read
from tests.support.on_cluster.service_account import limited_to
from tests.support.programs.command import Outcome, run_here
from webhook.kube.names import KUEUE_CONFIGURATION, VOLCANO_CONFIGURATION

__all__ = ["installation"]

READING, OF_POLICY, EVICTING = (role["rules"] for role in read("reclaim/rbac.yaml"))
WEBHOOK = read("base/rbac.yaml")[0]["rules"]
LONG_AGO = "2026-01-01T00:00:00Z"
POLICY = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": "own"}}


def reclaim(cluster: Cluster, folder: Path, kubeconfig: Path, *flags: str) -> Outcome:
    policy = folder / "policy.json"
    policy.write_bytes(orjson.dumps({**POLICY, "spec": {"reclaim": {"namespaces": [cluster.namespace]}}}))
    given = ("--kubeconfig", kubeconfig, "--policy", policy, "-n", cluster.namespace)
    return run_here("reclaim", *given, *flags)


@pytest.fixture
def held(cluster: Cluster) -> Cluster:
    """Return a cluster with a pod that holds a card and does not start."""
    cluster.make_nodes(make_node_object("held-1", capacity={"nvidia.com/gpu": 1}))
    cluster.create(make_pod("crash").gpu(1).node_name("held-1"))
    waiting = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 1}
    status = {
        "phase": "Running",
        "startTime": LONG_AGO,
        "conditions": [{"type": "ContainersReady", "status": "False", "lastTransitionTime": LONG_AGO}],
        "containerStatuses": [{**waiting, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
    }
    cluster.client.patch("Pod", "crash", {"status": status}, namespace=cluster.namespace, subresource="status")
    return cluster


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


def test_the_roles_suffice_to_read_the_policy_in_force(held: Cluster, installation: Installed, tmp_path: Path) -> None:
    rules = [*READING, *OF_POLICY, *EVICTING]
    listed = {"namespaces": [held.namespace]}
    with installation.policy(reclaim=listed), limited_to(held, tmp_path, rules) as kubeconfig:
        outcome = run_here("reclaim", "--kubeconfig", kubeconfig, "-n", held.namespace, "--evict")

    assert "not known" not in outcome.errors
    assert outcome.output.startswith(f"would be evicted: {held.namespace}/crash: crash-loop")


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
