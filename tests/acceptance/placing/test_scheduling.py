"""(b)-(e) What kube-scheduler does with the pods that the webhook admitted, and with the same pods without it."""

from collections import Counter

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import A100, H20, control_plane_node, inference_pod, pool_node, training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN
from tests.support.objects.builders import PodBuilder

POOLS = [
    pool_node("train-1", "training"),
    pool_node("train-2", "training"),
    pool_node("train-a100", "training", A100),
    pool_node("infer-1", "inference"),
    pool_node("hybrid-1", "hybrid"),
    control_plane_node(),
]


def bind(cluster: Cluster, *pods: PodBuilder) -> list[str]:
    """The nodes of `pods`, each created once the one before was bound."""
    return [cluster.wait_bound(cluster.create(pod).object) for pod in pods]


def test_training_pods_fill_their_pool_then_the_hybrid_one_and_nothing_else(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(*POOLS)

    nodes = bind(cluster, *(training_pod(f"worker-{number}", gpus=4) for number in range(6)))

    assert set(nodes[:4]) == {"train-1", "train-2"}
    assert nodes[4:] == ["hybrid-1", "hybrid-1"]
    seventh = cluster.create(training_pod("worker-6", gpus=4)).object
    assert "0/6 nodes are available" in cluster.wait_unschedulable(seventh)


def test_inference_pods_fill_their_pool_then_the_hybrid_one_and_nothing_else(
    cluster: Cluster, webhook: Webhook
) -> None:
    cluster.make_nodes(*POOLS)

    nodes = bind(cluster, *(inference_pod(f"replica-{number}", gpus=8) for number in range(2)))

    assert nodes == ["infer-1", "hybrid-1"]
    third = cluster.create(inference_pod("replica-2", gpus=8)).object
    assert "0/6 nodes are available" in cluster.wait_unschedulable(third)


def test_a_product_never_lands_on_another_product(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(pool_node("train-a100", "training", A100), pool_node("hybrid-h20", "hybrid", H20))

    assert bind(cluster, training_pod("h20", gpus=8)) == ["hybrid-h20"]
    assert bind(cluster, training_pod("a100", gpus=8, product=A100)) == ["train-a100"]
    message = cluster.wait_unschedulable(cluster.create(training_pod("another-h20", gpus=8)).object)
    assert "0/2 nodes are available" in message


def test_a_product_never_lands_on_an_untainted_node_of_another_product(cluster: Cluster, webhook: Webhook) -> None:
    """A toleration permits and only affinity attracts: without the taint, the label still keeps them apart."""
    untainted = pool_node("train-a100", "training", A100)
    untainted["spec"]["taints"] = untainted["spec"]["taints"][:1]
    cluster.make_nodes(untainted)

    message = cluster.wait_unschedulable(cluster.create(training_pod("h20")).object)

    assert "node(s) didn't match Pod's node affinity/selector" in message


def test_without_the_patch_the_same_pods_stay_pending(cluster: Cluster) -> None:
    cluster.make_nodes(*POOLS)

    for pod in (training_pod("worker"), inference_pod("replica")):
        message = cluster.wait_unschedulable(cluster.create(pod).object)
        assert "0/6 nodes are available: 6 node(s) had untolerated taint(s)" in message


@pytest.mark.parametrize("how", ["hint", "profile"])
def test_packed_pods_fill_a_node_before_they_open_the_next(cluster: Cluster, webhook: Webhook, how: str) -> None:
    """By the podAffinity hint under the default plugins, and by the MostAllocated profile without a hint."""
    cluster.make_nodes(*(pool_node(f"train-{number}", "training") for number in range(3)))
    if how == "hint":
        pods = [training_pod(f"small-{number}") for number in range(10)]
    else:
        pods = [unpacked(f"small-{number}").scheduler("binpack") for number in range(10)]

    nodes = bind(cluster, *pods)

    assert len(set(nodes[:8])) == 1
    assert sorted(Counter(nodes).values()) == [2, 8]


def test_without_the_hint_the_same_pods_are_spread(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(*(pool_node(f"train-{number}", "training") for number in range(3)))

    nodes = bind(cluster, *(unpacked(f"small-{number}") for number in range(10)))

    assert len(set(nodes)) == 3
    assert max(Counter(nodes).values()) < 8


def unpacked(name: str) -> PodBuilder:
    return training_pod(name).annotate(f"{DOMAIN}/bin-packing", "false")


CASES: list[tuple[str, PodBuilder, str]] = [
    ("too many cards", training_pod("pod", gpus=16), "Infeasible"),
    ("no such product", training_pod("pod", product="NVIDIA-B300"), "Infeasible"),
    ("cards of another size", training_pod("pod").annotate(f"{DOMAIN}/gpu-memory", "1Ti"), "Infeasible"),
    ("all cards taken", training_pod("pod", gpus=8), "Waiting"),
    ("some cards free", inference_pod("pod", gpus=4), "Feasible"),
]


@pytest.mark.parametrize(("pod", "verdict"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_kube_scheduler_matches_the_prediction(
    cluster: Cluster, webhook: Webhook, pod: PodBuilder, verdict: str
) -> None:
    cluster.make_nodes(*POOLS)
    bind(cluster, *(training_pod(f"load-{number}", gpus=2) for number in range(3)))
    bind(cluster, training_pod("half", gpus=4), training_pod("hybrid-load", gpus=6), inference_pod("served", gpus=4))
    webhook.look_at(cluster)

    answer = cluster.create(pod)

    predicted = webhook.world.records[-1].placement
    assert predicted is not None
    assert predicted.verdict == verdict
    if verdict == "Feasible":
        assert cluster.wait_bound(answer.object) == predicted.node
        assert answer.warnings == []
    else:
        message = cluster.wait_unschedulable(answer.object)
        assert first_sentence(message) == first_sentence(predicted.message)
        assert answer.warnings[-1] == f"placement check: {verdict}: {predicted.message}"


def test_user_who_mistypes_a_product_reads_which_one_the_nodes_have(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(*POOLS)
    webhook.look_at(cluster)

    answer = cluster.create(training_pod("typo", product="NVIDIA-H2O"), dry_run=True)

    assert answer.warnings[0] == "gpu-product: no node has NVIDIA-H2O; did you mean NVIDIA-H20?"


def first_sentence(message: str) -> str:
    return message.partition(". ")[0].removesuffix(".")


def test_in_mode_deny_the_infeasible_pod_alone_is_refused(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(*POOLS)
    bind(cluster, *(training_pod(f"load-{number}", gpus=8) for number in range(3)))
    webhook.look_at(cluster)

    def denying(pod: PodBuilder) -> PodBuilder:
        return pod.annotate(f"{DOMAIN}/placement-check", "deny")

    with pytest.raises(ApiError) as refused:
        cluster.create(denying(training_pod("too-large", gpus=16)))
    waiting = cluster.create(denying(training_pod("waiting", gpus=8)))

    assert refused.value.code == 403
    assert "no node of this cluster can take this pod as it is: 0/6 nodes are available" in refused.value.message
    assert waiting.object["metadata"]["name"] == "waiting"
