"""What a lane keeps of a large pod is said again of equal ones alone, for a while, and no denial of another cluster."""

from dataclasses import replace
from itertools import count
from typing import Any

import orjson
import pytest

from bench.clusters import cluster_documents
from tests.support.admission import TYPE, policy_with
from tests.support.builders import make_pod
from tests.support.server import Clock, make_work_budget, review_bytes
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.admission import AdmissionRequest, parse_review
from webhook.pipeline import ClusterView, scheduler_for
from webhook.serving.lanes import LargeLane

POLICY = policy_with(placementCheck={"mode": "deny"})
SNAPSHOT = snapshot_from_documents(cluster_documents(30, 2))
VIEW = ClusterView(SNAPSHOT, scheduler_for(POLICY))
ANOTHER = replace(VIEW, snapshot=replace(SNAPSHOT, generation=SNAPSHOT.generation + 1))
DOUBTED = replace(VIEW, stale_reason="the view of the cluster is too old")


def request(**spec: Any) -> AdmissionRequest:
    pod = make_pod("large").annotate(TYPE, "training").toleration(operator="Exists").spec(**spec)
    return parse_review(orjson.dumps(orjson.loads(review_bytes(pod.obj()))))


def lane() -> LargeLane:
    """A lane whose work takes a millisecond: so each verdict is good for ten."""
    ticks = count()
    return LargeLane(monotonic_seconds=lambda: next(ticks) / 1000)


IMPOSSIBLE = request(nodeSelector={"no": "such"})


def test_an_equal_pod_gets_the_same_for_a_while_though_the_cluster_has_changed() -> None:
    kept, pod = lane(), request()
    first = kept.rendered(pod, POLICY, VIEW, make_work_budget())
    assert kept.rendered(pod, POLICY, ANOTHER, make_work_budget()) is first
    later = [kept.rendered(pod, POLICY, ANOTHER, make_work_budget()) for _time in range(12)]
    assert later[-1] is not first


@pytest.mark.parametrize("later", [ANOTHER, DOUBTED, None], ids=["another cluster", "a view in doubt", "no view"])
def test_a_denial_is_of_the_cluster_as_it_is(later: ClusterView | None) -> None:
    kept = lane()
    first = kept.rendered(IMPOSSIBLE, POLICY, VIEW, make_work_budget())
    assert first.outcome == "Denied"
    assert kept.rendered(IMPOSSIBLE, POLICY, VIEW, make_work_budget()) is first

    second = kept.rendered(IMPOSSIBLE, POLICY, later, make_work_budget())

    assert second is not first
    assert second.outcome == ("Denied" if later is ANOTHER else "Patched")


def test_a_budget_that_suggestions_have_spent_keeps_no_verdict_for_longer() -> None:
    now = Clock(0.0)
    kept = LargeLane(monotonic_seconds=now)
    spent = make_work_budget()
    spent.is_spent = True
    first = kept.rendered(IMPOSSIBLE, POLICY, VIEW, spent)
    now.seconds = 3.0
    assert kept.rendered(IMPOSSIBLE, POLICY, VIEW, make_work_budget()) is not first


def test_another_policy_forgets_what_is_kept() -> None:
    kept, pod = lane(), request()
    first = kept.rendered(pod, POLICY, VIEW, make_work_budget())
    assert kept.rendered(pod, policy_with(), VIEW, make_work_budget()) is not first


def test_a_verdict_that_was_long_in_coming_is_given_again_for_two_seconds_at_most() -> None:
    ticks = count()
    kept, pod = LargeLane(monotonic_seconds=lambda: float(next(ticks))), request()
    first = kept.rendered(pod, POLICY, VIEW, make_work_budget())  # from 0 s to 1 s
    assert kept.rendered(pod, POLICY, VIEW, make_work_budget()) is first  # at 2 s
    assert kept.rendered(pod, POLICY, VIEW, make_work_budget()) is not first  # at 3 s


def test_a_verdict_that_the_deadline_cut_short_is_not_given_again() -> None:
    kept, pod, late = lane(), request(), make_work_budget()
    late.is_expired = True
    first = kept.rendered(pod, POLICY, VIEW, late)
    assert kept.rendered(pod, POLICY, VIEW, make_work_budget()) is not first
