"""The real Karpenter adds nodes for admitted pods, and `explain` and `doctor` read what it writes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.installed.karpenter import Karpenter
from tests.schedulers.jobs import worker
from tests.support.admission import policy_with
from tests.support.on_cluster.registered import Webhook
from tests.support.programs.command import run_here
from webhook.policy.spec.document import API_VERSION, KIND

GPU = "nvidia.com/gpu"
TO_KUBE_SCHEDULER: dict[str, Any] = {"workloadTypes": {"training": {"nodeUsage": {"allow": ["training"]}}}}


@pytest.fixture(autouse=True)
def to_kube_scheduler(webhook: Webhook) -> None:
    """Pods are admitted and stay with kube-scheduler."""
    webhook.world.policy = policy_with(**TO_KUBE_SCHEDULER)


def create(cluster: Cluster, name: str, cards: int = 8) -> Object:
    """Return a new training pod, as the webhook admitted it."""
    return cluster.create(worker(name).gpu(cards)).object


def failed(cluster: Cluster, pod: Object) -> str:
    """Return the message of Karpenter's Event that it adds no node for the pod, once there is one."""

    def message() -> str | None:
        events = cluster.client.list("Event", cluster.namespace)
        own = [each for each in events if each["involvedObject"]["name"] == pod["metadata"]["name"]]
        found = [
            each for each in own if "karpenter" in (each.get("reportingComponent"), each["source"].get("component"))
        ]
        return found[-1]["message"] if found else None

    return wait_for(message, "an Event of Karpenter")


def explained(cluster: Cluster, name: str) -> list[str]:
    """Return the lines of `explain` that quote Karpenter, without the time."""
    outcome = run_here(
        *("explain", f"pod/{name}", "-n", cluster.namespace, "--no-audit"),
        *("--kubeconfig", cluster.control_plane.kubeconfig),
    )
    return [line.partition("karpenter: ")[2] for line in outcome.output.splitlines() if "karpenter: " in line]


def node_templates(cluster: Cluster, folder: Path, **spec: Any) -> list[Object]:
    """Return what `doctor` finds about the node templates of a policy with fields of `spec`."""
    policy = folder / "policy.json"
    policy.write_text(json.dumps({"apiVersion": API_VERSION, "kind": KIND, "spec": {**TO_KUBE_SCHEDULER, **spec}}))
    chosen = ("--check", "node-templates", "--policy", policy)
    outcome = run_here("doctor", *chosen, "--kubeconfig", cluster.control_plane.kubeconfig, "-o", "json")
    found: list[Object] = json.loads(outcome.output)["findings"]
    return found


def test_node_is_added_for_an_admitted_pod(cluster: Cluster, karpenter: Karpenter) -> None:
    karpenter.make_node_pool("training", {GPU: "64"})

    pod = create(cluster, "train")

    (node,) = karpenter.wait_nodes(1)
    assert cluster.wait_bound(pod) == node["metadata"]["name"]


def test_explain_names_the_limit_of_a_node_pool(cluster: Cluster, karpenter: Karpenter) -> None:
    karpenter.make_node_pool("training", {GPU: "8"})
    first = create(cluster, "first")
    karpenter.wait_nodes(1)
    cluster.wait_bound(first)

    failed(cluster, create(cluster, "second"))
    karpenter.wait_counted("training", {GPU: "8"})

    assert explained(cluster, "second") == [f"NodePool training is at its limit of 8 {GPU}"]


def test_explain_quotes_that_no_instance_type_is_large_enough(cluster: Cluster, karpenter: Karpenter) -> None:
    karpenter.make_node_pool("training", {GPU: "64"})

    message = failed(cluster, create(cluster, "large", cards=16))

    assert explained(cluster, "large") == [message]


def test_no_node_is_added_for_a_product_that_only_discovery_labels(cluster: Cluster, karpenter: Karpenter) -> None:
    """As docs/annotations.md says, unless the NodePool has the label."""
    karpenter.make_node_pool("training", {GPU: "64"})
    product = {"nvidia.com/gpu.product": "NVIDIA-H20"}

    pod = cluster.create(worker("train", gpu_product="NVIDIA-H20").gpu(8)).object
    assert 'label "nvidia.com/gpu.product" does not have known values' in failed(cluster, pod)

    karpenter.make_node_pool("h20", {GPU: "64"}, **product)
    (node,) = karpenter.wait_nodes(1)
    assert cluster.wait_bound(pod) == node["metadata"]["name"]


def test_the_node_template_that_doctor_prints_is_complete(
    cluster: Cluster, karpenter: Karpenter, tmp_path: Path
) -> None:
    karpenter.make_node_pool("training", {GPU: "64"})
    pod = create(cluster, "train")
    karpenter.wait_nodes(1)
    cluster.wait_bound(pod)

    (finding,) = node_templates(cluster, tmp_path)
    (template,) = yaml.safe_load(finding["remedy"].removeprefix("add "))

    assert template["capacity"][GPU] == "8"
    assert node_templates(cluster, tmp_path, nodeTemplates=[template]) == []
