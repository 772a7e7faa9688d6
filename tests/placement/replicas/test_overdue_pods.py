"""Which nodes take a pod once pods are gone that should have ended."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gpu_node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.replicas.emptied_nodes import overdue_lines
from webhook.placement.scheduler import PodSignature, Scheduler

NODES = [gpu_node("n1"), gpu_node("n2"), gpu_node("down", down_for=HOUR)]
OVERDUE = card_pod("train-7", "n1").deletion(ago(2 * HOUR))
BUSY = card_pod("busy", "n2")


def lines(*pods: PodBuilder, cards: int = 8, backend: str = "default", reader: str | None = None) -> tuple[str, ...]:
    contents = [*NODES, *(pod.obj() for pod in pods)]
    snapshot = snapshot_from_documents([Document("the test", each) for each in contents])
    signature = PodSignature.of(make_pod("asks").gpu(cards).obj())
    return overdue_lines(Scheduler(), signature, snapshot, backend, NOW_SECONDS, reader=reader)


def test_the_node_of_a_pod_that_should_have_ended_is_named() -> None:
    assert lines(OVERDUE, BUSY) == (
        "node n1: 8 cards are free when team-a/train-7 is gone: it should have ended 2 h ago",
    )


def test_pods_of_other_namespaces_are_only_counted_for_a_reader_of_one() -> None:
    foreign = card_pod("secret", "n1", 4, namespace="team-b").deletion(ago(2 * HOUR))

    (line,) = lines(card_pod("train-7", "n1", 4).deletion(ago(3 * HOUR)), foreign, BUSY, reader="team-a")

    assert line.startswith("node n1: 8 cards are free when team-a/train-7, 1 pod outside this namespace are gone: they")


def test_several_pods_of_a_node_go_together() -> None:
    pods = [card_pod(f"train-{number}", "n1", 4).deletion(ago((2 + number) * HOUR)) for number in range(2)]

    assert lines(*pods, BUSY) == (
        "node n1: 8 cards are free when team-a/train-0, team-a/train-1 are gone: they should have ended 2 h ago",
    )


@pytest.mark.parametrize(
    ("pods", "cards"),
    [
        pytest.param([card_pod("ends", "n1").deletion(ago(-HOUR)), BUSY], 8, id="it is within its grace period"),
        pytest.param([OVERDUE, BUSY], 9, id="the node is too small"),
        pytest.param([card_pod("lost", "down").deletion(ago(HOUR)), BUSY], 8, id="the node is down"),
        pytest.param([BUSY], 8, id="no pod ends"),
    ],
)
def test_no_node_is_named_if(pods: list[PodBuilder], cards: int) -> None:
    assert lines(*pods, cards=cards) == ()


@pytest.mark.parametrize(("backend", "name"), [("volcano", "Volcano"), ("kai", "KAI before 0.15")])
def test_a_scheduler_that_reserves_nodes_of_pods_that_end_is_named(backend: str, name: str) -> None:
    *_, last = lines(OVERDUE, BUSY, backend=backend)

    assert last.startswith(f"{name} can reserve such a node for the pod until another one has room; a gang with such a")
