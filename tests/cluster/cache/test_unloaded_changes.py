"""Changes that no scheduler reads: the next snapshot has them, and what is computed of the others stays valid."""

from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.moves import budget
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND, DisruptionBudget
from webhook.cluster.working_snapshot import WorkingSnapshot

PODS = {name: make_pod(name).node_name("a").requests(cpu="1").label("app", name).host_port(80) for name in "pqr"}


def followed() -> tuple[ClusterCache, WorkingSnapshot]:
    """Return a cache with three pods on one node, and a snapshot that shows a fourth."""
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a"), make_node_object("b")])
    cache.replace("Pod", [pod.obj() for pod in PODS.values()])
    assumed = RunningPod.of(make_pod("assumed").requests(cpu="2").obj()).assumed_on("a", 0)
    return cache, WorkingSnapshot(cache.snapshot(), (assumed,))


def follow(cache: ClusterCache, shown: WorkingSnapshot) -> bool:
    base = cache.snapshot()
    return shown.follow(
        base, lambda node: [pod for pod in shown.snapshot.nodes[base.rows[node]].pods if pod.is_reserved]
    )


def status_of(name: str, **status: Any) -> PodBuilder:
    return PODS[name].status(startTime="2026-01-01T00:00:00Z", **status)


def test_a_pod_that_starts_changes_the_pod_alone() -> None:
    cache, shown = followed()
    before, state = cache.snapshot(), shown.snapshot.state

    cache.apply("Pod", "MODIFIED", status_of("p").obj())
    after = cache.snapshot()

    assert [pod.name for pod in after.nodes[0].pods] == ["p", "q", "r"]
    assert [pod.started_seconds for pod in after.nodes[0].pods] == [1767225600, 0, 0]
    assert [pod.started_seconds for pod in before.nodes[0].pods] == [0, 0, 0]
    assert after.pods is before.pods
    assert after.requested("cpu") is before.requested("cpu")
    assert after.nodes[1] is before.nodes[1]
    assert follow(cache, shown)
    assert shown.snapshot.state == state
    assert [pod.started_seconds for pod in shown.snapshot.nodes[0].pods] == [1767225600, 0, 0, 0]


def test_a_pod_that_starts_beside_a_new_one_is_no_change_of_its_own() -> None:
    cache, shown = followed()
    new = make_pod("new").node_name("a").requests(cpu="3").obj()

    for pod in (new, status_of("q").obj(), PODS["p"].owner("Job", "train-1").obj()):
        cache.apply("Pod", "MODIFIED", pod)
    assert follow(cache, shown)

    assert [(change.sign, change.pod.name) for change in shown.snapshot.log.changes] == [(1, "new")]
    assert shown.snapshot.requested("cpu").tolist() == [8000, 0]
    pods = {pod.name: pod for pod in shown.snapshot.nodes[0].pods}
    assert (pods["q"].started_seconds, pods["p"].controller) == (1767225600, "Job/train-1")


def test_a_pod_that_is_deleted_is_a_change() -> None:
    cache, shown = followed()

    cache.apply("Pod", "MODIFIED", PODS["p"].deletion("2026-01-01T00:00:00Z").obj())
    assert follow(cache, shown)

    assert [(change.sign, change.pod.is_terminating) for change in shown.snapshot.log.changes] == [
        (-1, False),
        (1, True),
    ]


def test_budgets_are_known_while_they_are_listed_and_change_nothing_else() -> None:
    cache, shown = followed()
    state = shown.snapshot.state
    assert cache.snapshot().disruption_budgets is None

    cache.replace(DISRUPTION_BUDGET_KIND, [])
    assert cache.snapshot().disruption_budgets == ()
    for allowed in (1, 0):
        cache.apply(DISRUPTION_BUDGET_KIND, "MODIFIED", budget("web", allowed))
        assert cache.snapshot().disruption_budgets == (DisruptionBudget.of(budget("web", allowed)),)
        assert follow(cache, shown)

    assert shown.snapshot.state == state
    assert shown.snapshot.disruption_budgets == cache.snapshot().disruption_budgets
    cache.mark_unknown(DISRUPTION_BUDGET_KIND)
    assert cache.snapshot().disruption_budgets is None


def test_a_malformed_budget_is_reported_and_left_out() -> None:
    cache = ClusterCache()
    malformed = budget("web", 1) | {"status": {"disruptionsAllowed": "many"}}

    (problem,) = cache.replace(DISRUPTION_BUDGET_KIND, [malformed, budget("other", 1)])

    assert problem.message.startswith('status.disruptionsAllowed: Invalid value: "many"')
    assert [each.name for each in cache.snapshot().disruption_budgets or ()] == ["other"]
    assert cache.snapshot().left_out.has_any(DISRUPTION_BUDGET_KIND)
