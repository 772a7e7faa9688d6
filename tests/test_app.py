"""Times and decisions as records have them, and looks at the cluster."""

import uuid
from datetime import UTC, datetime
from itertools import count

from tests.serving.running import Clock
from webhook.app import Decisions, Glance, rfc3339_now
from webhook.cluster.snapshot import Snapshot
from webhook.pipeline import Cluster
from webhook.placement.scheduler import Scheduler


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
    glance = Glance(lambda: Cluster(Snapshot.of(()), Scheduler(), f"look {next(looks)}"), clock)

    assert glance().doubt == "look 1"
    clock.seconds += 0.01
    assert glance().doubt == "look 1"
    clock.seconds += 0.01
    assert glance().doubt == "look 2"
