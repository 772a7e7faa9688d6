"""A rendered decision is reused for equal pods on the snapshot that it was made on."""

from dataclasses import replace

import pytest

from tests.support.admission import TYPE, USAGE, make_request, policy_with
from tests.support.builders import make_node_object, make_pod
from tests.support.server import Clock, make_work_budget
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import Document
from webhook.pipeline import ClusterView
from webhook.placement.scheduler import Scheduler
from webhook.serving.decision_cache import DecisionCache
from webhook.serving.lanes import SmallLane
from webhook.serving.rendering import Rendered
from webhook.serving.reuse import UntilNextSnapshot
from webhook.serving.work_budget import WorkBudget

POLICY = policy_with()
NODE = make_node_object("node-1", labels={USAGE: "training"})
VIEW = ClusterView(snapshot_from_documents([Document("node", NODE)]), Scheduler())
CHECKED = make_request(make_pod("a").annotate(TYPE, "training").toleration(operator="Exists").obj())


def decided(decisions: DecisionCache, cluster: ClusterView | None = VIEW, deadline: float | None = None) -> Rendered:
    bounds = WorkBudget(deadline, 150, monotonic_seconds=Clock(), cpu_seconds=lambda: 0.0)
    return decisions.decide(CHECKED, POLICY, cluster, bounds)


def test_a_decision_is_reused_on_its_snapshot_and_reported() -> None:
    reused: list[Rendered] = []
    decisions = DecisionCache(UntilNextSnapshot(), on_reuse=reused.append)

    first = decided(decisions)

    assert reused == []
    assert decided(decisions) is first
    assert decided(decisions, replace(VIEW)) is first
    assert reused == [first, first]


@pytest.mark.parametrize(
    "later",
    [replace(VIEW, snapshot=replace(VIEW.snapshot)), replace(VIEW, stale_reason="too old"), None],
    ids=["another snapshot", "a stale view", "no view"],
)
def test_a_decision_is_not_reused_on_another_view(later: ClusterView | None) -> None:
    decisions = DecisionCache(UntilNextSnapshot())
    first = decided(decisions)

    assert decided(decisions, later) is not first
    again = decided(decisions)
    assert again is not first
    assert again.record == first.record


def test_a_decision_that_the_deadline_has_ended_is_not_reused() -> None:
    decisions = DecisionCache(UntilNextSnapshot())

    fresh = replace(VIEW, scorer=Scheduler())

    ended = decided(decisions, fresh, deadline=0.0)

    assert ended.is_unknown
    assert not ended.is_final
    assert not decided(decisions, fresh).is_unknown


def test_reused_checks_count_as_checks() -> None:
    seconds: list[float] = []
    lane = SmallLane(seconds.append)

    for cluster in (VIEW, VIEW, None, None):
        lane.rendered(CHECKED, POLICY, cluster, make_work_budget())

    assert seconds == [0.0]


def test_a_request_that_creates_no_pod_is_not_cached() -> None:
    decisions = DecisionCache(UntilNextSnapshot())
    for operation in ("DELETE", "CONNECT"):
        found = decisions.decide(make_request(None, operation=operation), POLICY, VIEW, make_work_budget())
        assert found.outcome == "Bypassed"
        assert operation in found.answer.audit_annotations["reason"]


@pytest.mark.parametrize(("cluster", "grows"), [(VIEW, True), (None, False)], ids=["a view", "no view"])
def test_scores_count_for_the_memory_of_a_decision(cluster: ClusterView | None, grows: bool) -> None:
    used_bytes = {}
    for scores in (True, False):
        reuse = UntilNextSnapshot()
        decided(DecisionCache(reuse, scores=scores), cluster)
        used_bytes[scores] = reuse.cache.used_bytes

    assert (used_bytes[True] > used_bytes[False]) is grows
    assert used_bytes[False] >= 4096
