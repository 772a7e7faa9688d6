"""Times and decisions as records have them, and looks at the cluster."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

import pytest

from bench.clusters import cluster_documents
from tests.support.admission import TYPE, policy_with
from tests.support.builders import PodBuilder, make_pod
from tests.support.server import Clock, review_bytes
from webhook.app import Decisions, FixedView, Glance, _remember, rfc3339_now, stale_reason
from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.kube.admission import parse_review
from webhook.pipeline import ClusterView, admit, scheduler_for
from webhook.placement.scheduler import Scheduler
from webhook.serving.predictions import Predictions


def test_the_time_is_now_in_utc_with_microseconds() -> None:
    before = datetime.now(UTC)
    text = rfc3339_now()
    after = datetime.now(UTC)

    assert before <= datetime.fromisoformat(text) <= after
    assert len(text) == len("2026-01-31T12:00:00.000000Z")
    assert text.endswith("Z")


def test_a_decision_is_a_random_uuid() -> None:
    decide = Decisions()
    decisions = [decide() for _ in range(1000)]

    assert len(set(decisions)) == 1000
    for text in decisions:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)


def test_a_look_at_the_cluster_holds_for_a_moment_only() -> None:
    clock, looks = Clock(), count(1)
    glance = Glance(lambda: ClusterView(Snapshot.of(()), Scheduler(), f"look {next(looks)}"), clock)

    assert glance().stale_reason == "look 1"
    clock.seconds += 0.01
    assert glance().stale_reason == "look 1"
    clock.seconds += 0.01
    assert glance().stale_reason == "look 2"


@dataclass
class _View:
    """A view of no nodes, of that age."""

    age: float
    is_live: bool = True

    def snapshot(self) -> Snapshot:
        return Snapshot.of(())

    def age_seconds(self) -> float:
        return self.age


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        pytest.param(_View(0.0), "", id="new"),
        pytest.param(_View(60.0), "", id="as old as is allowed"),
        pytest.param(
            _View(61.0), "the view of the cluster is too old: 61 s, at most 60 s are allowed", id="older than that"
        ),
        pytest.param(_View(float("inf")), "the view of the cluster is not there yet", id="not there yet"),
        pytest.param(_View(1e9, is_live=False), "", id="of a file, however old"),
    ],
)
def test_a_live_view_is_doubted_once_it_is_too_old(view: _View, reason: str) -> None:
    assert stale_reason(view, 60.0) == reason


def test_a_fixed_view_keeps_its_snapshot_and_is_never_doubted() -> None:
    snapshot = Snapshot.of(())
    view = FixedView(snapshot)

    assert view.snapshot() is snapshot
    assert stale_reason(view, 0.0) == ""


POLICY = policy_with()
CLUSTER = ClusterView(snapshot_from_documents(cluster_documents(4, 1)), scheduler_for(POLICY))
TRAINING = make_pod("trainer").annotate(TYPE, "training")


def _remembered(*pods: PodBuilder, cluster: ClusterView | None = CLUSTER, **request: object) -> int:
    """Return how many predictions are kept once these pods were admitted."""
    predictions = Predictions()
    for pod in pods:
        asked = parse_review(review_bytes(pod.obj(), **request))
        _remember(predictions, asked, admit(asked, POLICY, cluster), cluster, POLICY)
    return len(predictions)


def test_the_prediction_for_a_pod_that_will_come_to_be_is_remembered() -> None:
    assert _remembered(TRAINING) == 1
    assert _remembered(TRAINING, TRAINING) == 2
    assert _remembered(TRAINING, dryRun=True) == 0
    assert _remembered(TRAINING, cluster=None) == 0
    assert _remembered(make_pod("of no type")) == 0


def test_a_pod_that_the_policy_has_marked_is_asked_about_again() -> None:
    again = TRAINING.annotate(POLICY.policy_annotation, POLICY.identity)
    assert _remembered(TRAINING, again) == 1
