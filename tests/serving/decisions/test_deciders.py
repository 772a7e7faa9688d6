"""The worker reuses a decision for equal pods for a limited time, and a denial only on its own cluster view."""

from dataclasses import replace
from itertools import count
from typing import Any

import orjson
import pytest

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.clusters import cluster_documents
from tests.support.servers.server import Clock, make_work_budget, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.kube.api.admission import AdmissionRequest, parse_review
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.serving.decisions.deciders import WorkerDecider

POLICY = policy_with(placementCheck={"mode": "deny"})
SNAPSHOT = snapshot_from_documents(cluster_documents(30, 2))
VIEW = ClusterView(SNAPSHOT, scheduler_for(POLICY))
ANOTHER = replace(VIEW, snapshot=replace(SNAPSHOT, generation=SNAPSHOT.generation + 1))
DOUBTED = replace(VIEW, stale_reason="the view of the cluster is too old")


def request(**spec: Any) -> AdmissionRequest:
    pod = make_pod("large").annotate(TYPE, "training").toleration(operator="Exists").spec(**spec)
    return parse_review(orjson.dumps(orjson.loads(review_bytes(pod.obj()))))


def decider() -> WorkerDecider:
    """A decider whose work takes a millisecond: so each verdict is good for ten."""
    ticks = count()
    return WorkerDecider(monotonic_seconds=lambda: next(ticks) / 1000)


IMPOSSIBLE = request(nodeSelector={"no": "such"})


def test_an_equal_pod_gets_the_same_decision_for_a_while_on_a_changed_cluster() -> None:
    kept, pod = decider(), request()
    first = kept.decide(pod, POLICY, VIEW, make_work_budget())
    assert kept.decide(pod, POLICY, ANOTHER, make_work_budget()) is first
    later = [kept.decide(pod, POLICY, ANOTHER, make_work_budget()) for _time in range(12)]
    assert later[-1] is not first


def test_a_pod_outside_the_canary_does_not_share_the_decision_of_an_equal_one_within() -> None:
    """Pods without an owner are drawn by their names."""
    canary, kept = policy_with(canaryPercent=50), decider()
    bodies = [review_bytes(make_pod(f"pod-{number}").annotate(TYPE, "training").obj()) for number in range(12)]
    reviews = [parse_review(body) for body in bodies]
    alone = [decider().decide(each, canary, VIEW, make_work_budget()).answer for each in reviews]

    assert [kept.decide(each, canary, VIEW, make_work_budget()).answer for each in reviews] == alone
    assert {bool(each.patch) for each in alone} == {True, False}


@pytest.mark.parametrize("later", [ANOTHER, DOUBTED, None], ids=["another cluster", "a view in doubt", "no view"])
def test_a_denial_is_not_reused_on_another_view(later: ClusterView | None) -> None:
    kept = decider()
    first = kept.decide(IMPOSSIBLE, POLICY, VIEW, make_work_budget())
    assert first.outcome == "Denied"
    assert kept.decide(IMPOSSIBLE, POLICY, VIEW, make_work_budget()) is first

    second = kept.decide(IMPOSSIBLE, POLICY, later, make_work_budget())

    assert second is not first
    assert second.outcome == ("Denied" if later is ANOTHER else "Patched")


def test_a_verdict_is_not_kept_longer_if_only_suggestions_spent_the_budget() -> None:
    now = Clock(0.0)
    kept = WorkerDecider(monotonic_seconds=now)
    spent = make_work_budget()
    spent.is_spent = True
    first = kept.decide(IMPOSSIBLE, POLICY, VIEW, spent)
    now.seconds = 3.0
    assert kept.decide(IMPOSSIBLE, POLICY, VIEW, make_work_budget()) is not first


def test_another_policy_clears_the_cache() -> None:
    kept, pod = decider(), request()
    first = kept.decide(pod, POLICY, VIEW, make_work_budget())
    assert kept.decide(pod, policy_with(), VIEW, make_work_budget()) is not first


def test_a_slow_verdict_is_reused_for_two_seconds_at_most() -> None:
    ticks = count()
    kept, pod = WorkerDecider(monotonic_seconds=lambda: float(next(ticks))), request()
    first = kept.decide(pod, POLICY, VIEW, make_work_budget())  # from 0 s to 1 s
    assert kept.decide(pod, POLICY, VIEW, make_work_budget()) is first  # at 2 s
    assert kept.decide(pod, POLICY, VIEW, make_work_budget()) is not first  # at 3 s


def test_a_verdict_stopped_by_the_deadline_is_not_reused() -> None:
    kept, pod, late = decider(), request(), make_work_budget()
    late.is_expired = True
    first = kept.decide(pod, POLICY, VIEW, late)
    assert kept.decide(pod, POLICY, VIEW, make_work_budget()) is not first


def test_a_pod_that_may_wait_counts_twice_what_is_read_of_it_beside_the_answer() -> None:
    beside_answer = []
    view = replace(VIEW, assumed=AssumedPods(SNAPSHOT))
    for name in ("other-scheduler", "other-scheduler-of-a-longer-name"):
        kept = decider()
        rendered = kept.decide(request(schedulerName=name), POLICY, view, make_work_budget())
        assert rendered.candidate is not None
        beside_answer.append(kept.caches["large_decisions"][0].used_bytes - rendered.size_bytes)
    assert beside_answer[1] - beside_answer[0] == 2 * len("-of-a-longer-name")
