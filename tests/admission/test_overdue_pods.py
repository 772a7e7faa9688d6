"""What warnings state about pods that should have ended, for a pod that waits."""

import pytest

from tests.support.admission import TYPE, USAGE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gpu_node
from tests.support.servers.server import make_work_budget
from webhook.admission.cluster_view import ClusterView
from webhook.admission.overdue_pods import with_overdue_pods
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.placement.framework.result import Placement, PlacementVerdict
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.serving.decisions.decision_cache import DecisionCache

MINUTE = NOW_SECONDS // 60
ASKS = make_pod("asks").annotate(TYPE, "training").gpu(8)
OVERDUE = card_pod("train-7", "n3", namespace="default").deletion(ago(2 * HOUR))
FOREIGN = card_pod("secret", "n3").deletion(ago(2 * HOUR))
BUSY = card_pod("busy", "n3")
LINE = "placement check: node n3: 8 cards are free when default/train-7 is gone: it should have ended 2 h ago"
NOTE = (
    "placement check: Volcano can reserve such a node for the pod until another one has room; "
    "a gang with such a node keeps free cards of other nodes from later pods of its queue"
)


def snapshot_with(*pods: PodBuilder, nodes: tuple[str, ...] = ("n3",)) -> Snapshot:
    named = [gpu_node(name) for name in nodes]
    for each in named:
        each["metadata"]["labels"] |= {USAGE: "training"}
    return snapshot_from_documents([Document("the test", each) for each in (*named, *(pod.obj() for pod in pods))])


def warnings(snapshot: Snapshot, minute: int = MINUTE) -> tuple[str, ...]:
    verdict = admit_pod(ASKS.obj(), policy_with(), ClusterView(snapshot, Scheduler(), minute=minute))
    assert verdict.outcome == "Patched"
    return verdict.warnings


def test_the_node_of_a_pod_that_should_have_ended_is_named() -> None:
    assert warnings(snapshot_with(OVERDUE))[-2:] == (LINE, NOTE)


def test_pods_of_other_namespaces_are_counted() -> None:
    expected = "8 cards are free when 1 pod outside this namespace is gone: it should have ended 2 h ago"

    assert warnings(snapshot_with(FOREIGN))[-2] == f"placement check: node n3: {expected}"


def test_one_node_is_named_and_the_others_are_counted() -> None:
    other = card_pod("train-8", "n4").deletion(ago(HOUR))

    found = warnings(snapshot_with(OVERDUE, other, nodes=("n3", "n4")))

    assert found[-3:] == (LINE, "placement check: and 1 more node with pods that should have ended", NOTE)


@pytest.mark.parametrize(
    ("snapshot", "minute"),
    [
        pytest.param(snapshot_with(BUSY), MINUTE, id="no pod is overdue"),
        pytest.param(snapshot_with(OVERDUE), MINUTE - 120, id="the pod is within its grace period"),
        pytest.param(snapshot_with(OVERDUE), 0, id="the time is not known"),
        pytest.param(snapshot_with(OVERDUE, nodes=("n3", "n4")), MINUTE, id="the pod has room"),
        pytest.param(snapshot_with(card_pod("a", "n3", 4).deletion(ago(HOUR)), BUSY), MINUTE, id="no room either"),
    ],
)
def test_no_node_is_named_if(snapshot: Snapshot, minute: int) -> None:
    assert not any("should have ended" in line for line in warnings(snapshot, minute))


def test_a_cached_decision_is_made_again_a_minute_later() -> None:
    snapshot, decisions, policy = snapshot_with(OVERDUE), DecisionCache(), policy_with()
    views = [
        ClusterView(snapshot, Scheduler(), assumed=AssumedPods(snapshot), minute=minute)
        for minute in (MINUTE - 120, MINUTE, MINUTE)
    ]

    found = [
        decisions.decide(make_request(ASKS.obj()), policy, view, make_work_budget()).answer.content for view in views
    ]

    assert [LINE.encode() in each for each in found] == [False, True, True]


@pytest.mark.parametrize("is_near", [False, True])
def test_a_deadline_leaves_the_answer_without_the_node_and_not_final(*, is_near: bool) -> None:
    snapshot = snapshot_with(OVERDUE)
    view = ClusterView(snapshot, Scheduler(), minute=MINUTE)
    placement = Placement("Waiting", None, 1, 0, "full")
    signature = PodSignature.of(ASKS.namespace("default").spec(tolerations=[{"operator": "Exists"}]).obj())
    found = with_overdue_pods(placement, signature, policy_with(), view, AssumedPods(snapshot), lambda: is_near)

    assert (bool(found.overdue), found.is_final) == (not is_near, not is_near)


@pytest.mark.parametrize("verdict", ["Feasible", "Infeasible", "Unknown"])
def test_only_a_pod_that_waits_is_asked_about(verdict: PlacementVerdict) -> None:
    placement, snapshot = Placement(verdict, None, 1, 0, ""), snapshot_with(OVERDUE)
    signature = PodSignature.of(ASKS.namespace("default").spec(tolerations=[{"operator": "Exists"}]).obj())
    for view in (ClusterView(snapshot, Scheduler(), minute=MINUTE), ClusterView(snapshot, None, minute=MINUTE)):
        found = with_overdue_pods(placement, signature, policy_with(), view, AssumedPods(snapshot), never)
        assert found is placement
