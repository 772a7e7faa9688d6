"""Admissions close to each other share one view of the cluster."""

from itertools import count

from tests.support.servers.server import Clock
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler
from webhook.serving.view.views import SnapshotThrottle


def test_a_look_at_the_cluster_holds_for_a_moment_only() -> None:
    clock, looks = Clock(), count(1)
    throttle = SnapshotThrottle(lambda: ClusterView(Snapshot.of(()), Scheduler(), f"look {next(looks)}"), clock)

    assert throttle().stale_reason == "look 1"
    clock.seconds += 0.01
    assert throttle().stale_reason == "look 1"
    clock.seconds += 0.01
    assert throttle().stale_reason == "look 2"
    throttle.forget()
    assert throttle().stale_reason == "look 3"
