"""Pods as people write them land on the nodes that they mean, by the real kube-scheduler."""

import json
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import CARD, H20, pool_node, training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod

H100, SHARED = "NVIDIA-H100-80GB-HBM3", "NVIDIA-H20-SHARED"
UNTOLERATED = "1 node(s) had untolerated taint(s)"
NOT_MATCHED = "1 node(s) didn't match Pod's node affinity/selector"


def gpu_pod(name: str = "worker", **annotations: str) -> PodBuilder:
    """A training pod that requests a card, with these annotations and no product of its own."""
    pod = make_pod(name).annotate(TYPE, "training").gpu(1)
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return pod


def labelled(node: dict[str, Any], memory_mib: int) -> dict[str, Any]:
    """The node of a pool with the labels of GPU Feature Discovery."""
    node["metadata"]["labels"] |= {
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.count": "8",
        "nvidia.com/cuda.driver-version.major": "550",
    }
    return node


def h100() -> dict[str, Any]:
    return labelled(pool_node("h100", "training", H100), 81559)


def nvidia(*extra_tolerations: dict[str, Any]) -> dict[str, Any]:
    """An accelerator of the policy."""
    return {
        "name": "nvidia",
        "resources": ["nvidia.com/gpu"],
        "card": "nvidia.com/gpu",
        "extraTolerations": list(extra_tolerations),
    }


@pytest.mark.parametrize(
    "annotations",
    [{}, {"gpu_memory": "80Gi"}, {"gpu_count": "8"}, {"gpu_driver": "550"}],
    ids=["the type alone", "memory alone", "count alone", "driver alone"],
)
def test_pod_that_names_no_product_runs_on_any_card(
    cluster: Cluster, webhook: Webhook, annotations: dict[str, str]
) -> None:
    cluster.make_nodes(h100())

    answer = cluster.create(gpu_pod(**annotations))

    assert answer.warnings == []
    assert cluster.wait_bound(answer.object) == "h100"


def test_pod_that_names_no_product_stays_pending_if_the_policy_switches_that_off(
    cluster: Cluster, webhook: Webhook
) -> None:
    webhook.world.policy = policy_with(tolerateAnyProduct=False)
    cluster.make_nodes(h100())

    assert UNTOLERATED in cluster.wait_unschedulable(cluster.create(gpu_pod()).object)


def test_cards_match_the_size_that_they_are_sold_by(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(h100(), labelled(pool_node("h20", "training", H20), 97871))

    first = cluster.create(gpu_pod("large", gpu_memory="96Gi", gpu_product=f"{H20},{H100}"))
    second = cluster.create(gpu_pod("small", gpu_memory="80Gi", gpu_product=H100))

    assert (cluster.wait_bound(first.object), cluster.wait_bound(second.object)) == ("h20", "h100")


@pytest.mark.parametrize("is_labelled", [True, False], ids=["with its label", "without its label"])
def test_restricted_product_takes_no_pod_of_another_namespace(
    cluster: Cluster, webhook: Webhook, is_labelled: bool
) -> None:
    webhook.world.policy = policy_with(allowedProducts={H100: ["team-b"]})
    restricted = h100()
    if not is_labelled:
        del restricted["metadata"]["labels"][CARD]
    cluster.make_nodes(restricted)
    pod = cluster.create(gpu_pod()).object
    assert NOT_MATCHED in cluster.wait_unschedulable(pod)

    cluster.make_nodes(pool_node("h20", "training", H20))

    assert cluster.wait_bound(pod) == "h20"


@pytest.mark.parametrize(("variants", "runs"), [(["-SHARED"], True), ([], False)], ids=["accepted", "by default"])
def test_shared_cards_of_a_product_take_its_pods_by_policy(
    cluster: Cluster, webhook: Webhook, variants: list[str], runs: bool
) -> None:
    webhook.world.policy = policy_with(productVariants=variants)
    cluster.make_nodes(pool_node("shared", "training", SHARED))

    pod = cluster.create(training_pod("worker", product=H20)).object

    if runs:
        assert cluster.wait_bound(pod) == "shared"
    else:
        assert "0/1 nodes are available" in cluster.wait_unschedulable(pod)


@pytest.mark.parametrize(
    ("taint", "toleration"),
    [
        ("nvidia.com/gpu=present:NoSchedule", {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}),
        (
            "example.com/maintenance=:NoExecute",
            {"key": "example.com/maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        ),
    ],
    ids=["a cloud provider", "NoExecute"],
)
def test_extra_taint_is_tolerated_by_pods_with_a_card_alone(
    cluster: Cluster, webhook: Webhook, taint: str, toleration: dict[str, Any]
) -> None:
    webhook.world.policy = policy_with(accelerators=[nvidia(toleration)])
    cluster.make_nodes(with_taint(pool_node("cloud", "training"), taint))

    with_card = cluster.create(training_pod("worker")).object
    without_card = cluster.create(make_pod("launcher").annotate(TYPE, "training")).object

    assert cluster.wait_bound(with_card) == "cloud"
    assert UNTOLERATED in cluster.wait_unschedulable(without_card)


def with_taint(node: dict[str, Any], text: str) -> dict[str, Any]:
    """The node with one more taint, written as `kubectl taint` takes it."""
    node["spec"]["taints"] += make_node_object("tainted", taints=[text])["spec"]["taints"]
    return node


def test_defaults_of_a_namespace_leave_a_pod_without_a_card_on_plain_nodes(cluster: Cluster, webhook: Webhook) -> None:
    annotate_namespace(cluster, webhook, {TYPE: "training", PRODUCT: H20})
    cluster.make_nodes(pool_node("gpu", "training"), make_node_object("plain"))

    web, worker = cluster.create(make_pod("web")), cluster.create(make_pod("worker").gpu(1))

    assert (web.warnings, worker.warnings) == ([], [])
    assert (cluster.wait_bound(web.object), cluster.wait_bound(worker.object)) == ("plain", "gpu")


def test_product_without_a_card_is_warned_of(cluster: Cluster, webhook: Webhook) -> None:
    (warning,) = cluster.create(make_pod("web").annotate(TYPE, "inference").annotate(PRODUCT, H20)).warnings

    assert warning == (
        f"the pod requests no accelerator, so it gets no card: request one, such as nvidia.com/gpu, or "
        f"remove {TYPE}, {PRODUCT}"
    )


def test_typo_on_a_namespace_denies_none_of_its_pods(cluster: Cluster, webhook: Webhook) -> None:
    annotate_namespace(cluster, webhook, {TYPE: "training", f"{DOMAIN}/gpu-memory": "80 GB"})
    cluster.make_nodes(pool_node("gpu", "training"))

    answer = cluster.create(make_pod("worker").gpu(1))

    (warning,) = answer.warnings
    assert warning.startswith(
        f'ignored: namespace "{cluster.namespace}": metadata.annotations[{DOMAIN}/gpu-memory]: Invalid value: "80 GB"'
    )
    assert cluster.wait_bound(answer.object) == "gpu"


def annotate_namespace(cluster: Cluster, webhook: Webhook, annotations: dict[str, str]) -> None:
    cluster.client.patch("Namespace", cluster.namespace, {"metadata": {"annotations": annotations}})
    webhook.look_at(cluster)


def test_preference_of_the_user_for_another_pool_decides(cluster: Cluster, webhook: Webhook) -> None:
    """With the policy's preference of weight 100 beside it, the pod would run in the training pool."""
    cluster.make_nodes(pool_node("train", "training"), pool_node("hybrid", "hybrid"))
    own = {"matchExpressions": [{"key": USAGE, "operator": "In", "values": ["hybrid"]}]}

    answer = cluster.create(training_pod("worker").prefer_node(10, own))

    assert cluster.wait_bound(answer.object) == "hybrid"
    (warning,) = answer.warnings
    assert warning.startswith(f"the pod's own preferred node affinity for {USAGE} wins over the policy's")


def test_packing_in_the_same_namespace_passes_a_quota_on_affinity_across_namespaces(
    cluster: Cluster, webhook: Webhook
) -> None:
    forbid_affinity_across_namespaces(cluster)
    with pytest.raises(ApiError, match="exceeded quota: no-cross-namespace-affinity"):
        cluster.create(gpu_pod("all"))
    webhook.world.policy = policy_with(binPacking={"namespaces": "same"})

    stored = cluster.create(gpu_pod("same")).object

    assert stored["metadata"]["labels"]["jobtype"] == "binpacked"
    assert "podAffinity" in stored["spec"]["affinity"]


def forbid_affinity_across_namespaces(cluster: Cluster) -> None:
    """Create the quota, with the status that its controller would set."""
    name = "no-cross-namespace-affinity"
    quota = {"hard": {"pods": "0"}, "scopes": ["CrossNamespacePodAffinity"]}
    metadata = {"name": name, "namespace": cluster.namespace}
    cluster.client.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": quota})
    status = json.dumps({"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}})
    cluster.kubectl("patch", "resourcequota", name, "--subresource=status", "--type=merge", f"--patch={status}")
