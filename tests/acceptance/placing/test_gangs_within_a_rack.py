"""The real kube-scheduler keeps a gang within one rack by what the webhook injects, and where it fails to."""

from collections import Counter
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import inference_pod, pool_node
from tests.controlplane.client import Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN

_RACK = "topology.kubernetes.io/rack"


def rack_node(name: str, gpus: int) -> dict[str, Any]:
    """A node whose name begins with the name of its rack."""
    made = pool_node(name, "inference", gpus=gpus)
    made["metadata"]["labels"][_RACK] = name.partition("-")[0]
    return made


def create_gang(cluster: Cluster, mode: str) -> list[str]:
    """Create four pods that are together in `mode`, or of which nothing is requested if it is empty.

    The warnings are those of the first.
    """
    request = {"gang": "bert", "gang-size": "4", **({"within": "rack", "within-mode": mode} if mode else {})}
    answers = []
    for index in range(4):
        pod = inference_pod(f"bert-{index}")
        for key, value in request.items():
            pod = pod.annotate(f"{DOMAIN}/{key}", value)
        answers.append(cluster.create(pod))
    return answers[0].warnings


def settled(cluster: Cluster) -> Objects:
    """The pods of the gang, once kube-scheduler has looked at each."""

    def found() -> Objects | None:
        pods = [each for each in cluster.pods() if each["metadata"]["name"].startswith("bert-")]
        decided = [each for each in pods if each["spec"].get("nodeName") or each["status"].get("conditions")]
        return pods if len(decided) == 4 else None

    return wait_for(found, "a decision on each pod of the gang")


def racks(pods: Objects) -> Counter[str]:
    """The number of pods by rack; those without a node are under an empty name."""
    return Counter(each["spec"].get("nodeName", "").partition("-")[0] for each in pods)


@pytest.mark.parametrize(("mode", "wanted"), [("required", [4]), ("preferred", [4]), ("", [2, 2])])
def test_a_gang_runs_in_one_rack(cluster: Cluster, webhook: Webhook, mode: str, wanted: list[int]) -> None:
    """By itself, kube-scheduler takes the emptiest node for each pod."""
    cluster.make_nodes(*(rack_node(f"{rack}-{index}", 2) for rack in ("r1", "r2") for index in range(2)))
    webhook.look_at(cluster)

    create_gang(cluster, mode)

    assert sorted(racks(settled(cluster)).values()) == wanted


@pytest.mark.parametrize(
    ("mode", "wanted"), [("required", {"small": 2, "": 2}), ("preferred", {"small": 2, "large": 2})]
)
def test_the_first_pod_chooses_the_rack_even_if_it_is_too_small_for_the_others(
    cluster: Cluster, webhook: Webhook, mode: str, wanted: dict[str, int]
) -> None:
    """The node of the large rack, which has room for all, is half full, so the first pod runs in the small one."""
    cluster.make_nodes(rack_node("small-1", 2), rack_node("large-1", 8))
    half = {"cpu": "32", "memory": "256Gi"}
    cluster.create(inference_pod("other", 4).requests(**half).limits(**half).node_name("large-1"))
    webhook.look_at(cluster)

    warnings = create_gang(cluster, mode)
    pods = settled(cluster)

    assert racks(pods) == wanted
    waiting = [each for each in pods if not each["spec"].get("nodeName")]
    assert all("didn't match pod affinity rules" in str(each["status"]["conditions"]) for each in waiting)
    chooses = "The first pod of gang bert chooses small, which has room for 2 of the 4 pods; large has room for all"
    assert any(chooses.lower() in each.lower() for each in warnings) is (mode == "required")


def test_a_gang_beside_other_pods_starts(cluster: Cluster, webhook: Webhook) -> None:
    """Required podAffinity for the gang as well would keep its first pod waiting."""
    cluster.make_nodes(*(rack_node(name, 2) for name in ("r1-1", "r1-2")))
    cluster.create(inference_pod("other", 1).label("app", "cache").node_name("r1-1"))
    webhook.look_at(cluster)
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": _RACK}
    pod = inference_pod("bert-0").affinity({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    for key, value in {"gang": "bert", "gang-size": "2", "within": "rack", "within-mode": "required"}.items():
        pod = pod.annotate(f"{DOMAIN}/{key}", value)

    answer = cluster.create(pod)

    assert cluster.wait_bound(answer.object)
    assert any("required podAffinity to other pods" in each for each in answer.warnings)
