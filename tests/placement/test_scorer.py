"""Pods with one signature are one question to a scorer."""

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler


def test_equal_pods_are_one_question() -> None:
    framework, snapshot = Scheduler(), Snapshot.of([node("a")])
    first = framework.place(make_pod("x").gpu(1).obj(), snapshot)
    assert framework.place(make_pod("y").gpu(1).annotate("a", "b").obj(), snapshot) is first
    assert framework.place(make_pod("x").gpu(2).obj(), snapshot) is not first
