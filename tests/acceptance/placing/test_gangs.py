"""Two gangs on a cluster with room for one and a half: the webhook predicts what the stock scheduler then does."""

import json
from pathlib import Path

from tests.acceptance.placing.pools import pool_node, training_pod
from tests.controlplane.client import Answer
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN
from tests.support.objects.builders import PodBuilder
from tests.support.on_cluster.webhooks import serving

_PARTIAL = (
    "2 of the 4 pods of gang second would start and hold what they request while the others wait, and two such gangs "
    "can deadlock: scheduler default-scheduler starts pods one by one"
)
_WAITING = "placement check: Waiting: 2 of 4 pods of gang second fit now; "


def worker(gang: str, number: int) -> PodBuilder:
    annotated = training_pod(f"{gang}-{number}").annotate(f"{DOMAIN}/gang", gang).annotate(f"{DOMAIN}/gang-size", "4")
    return annotated.annotate(f"{DOMAIN}/bin-packing", "false")


def test_partial_start_of_the_second_gang_is_predicted_from_its_first_pod_on(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make_nodes(pool_node("train-1", "training", gpus=6))
    with serving(cluster.control_plane, tmp_path) as webhooks:
        webhooks.register(cluster, nodes=1)
        # kube-scheduler takes pods in the order in which it sees them, so the first gang gets its places first.
        first = [cluster.create(worker("first", number)) for number in range(4)]
        second = [cluster.create(worker("second", number)) for number in range(4)]
        bound = wait_decided(cluster)
        records = [json.loads(line) for line in (webhooks.folders[0] / "audit.jsonl").read_text().splitlines()]

    assert [said(answer) for answer in first] == [[]] * 4
    waiting, *others = said(second[0])
    assert waiting.startswith(_WAITING)
    assert others == [_PARTIAL]
    for answer in second[1:]:
        waiting, *others = said(answer)
        assert waiting.startswith(_WAITING)
        assert _PARTIAL in others
    assert [name.partition("-")[0] for name in bound] == ["first"] * 4 + ["second"] * 2
    gangs = [(each["placement"]["gang"]["name"], each["placement"]["gang"]["fit"]) for each in records]
    assert gangs == [("first", 4)] * 4 + [("second", 2)] * 4


def said(answer: Answer) -> list[str]:
    """Return the warnings but the one that this scheduler has no gangs."""
    return [each for each in answer.warnings if "has no effect" not in each]


def wait_decided(cluster: Cluster) -> list[str]:
    """Return the names of the bound pods, once kube-scheduler has decided on all."""

    def decided() -> list[str] | None:
        pods = cluster.pods()
        found = [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")]
        conditions = [each["status"].get("conditions") for each in pods]
        return sorted(found) if all(conditions) else None

    return wait_for(decided, "a decision on each pod")
