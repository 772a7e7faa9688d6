"""The text of suggestions."""

from tests.placement.suggest.suggested import suggestions
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot


def victim(name: str, *, is_ending: bool) -> PodBuilder:
    pod = make_pod(name).requests(cpu="4")
    return pod.deletion("2026-01-01T00:00:00Z") if is_ending else pod


def test_pod_that_has_preempted_hears_where_it_is_nominated_and_what_it_waits_for() -> None:
    nodes = [
        node("n0", victim("a", is_ending=False), capacity={"cpu": "4"}),
        node("n1", victim("b", is_ending=True), capacity={"cpu": "4"}),
    ]
    pod = make_pod("hi").requests(cpu="4").spec(priority=10).status(nominatedNodeName="n1")
    lower = make_pod("hi").requests(cpu="4").status(nominatedNodeName="n0")

    assert suggestions(pod, Snapshot.of(nodes)) == (
        "n1 can take it once default/b is gone: the pod is nominated to n1",
    )
    assert suggestions(lower, Snapshot.of(nodes)) == ("n0 fits once 4 cpu are freed",)
