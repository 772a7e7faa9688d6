"""Admissions of a burst: each pod finds the room that the pods before it leave."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.golden.case import cluster_of
from tests.support.admission import DOMAIN, TYPE, USAGE, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.scorers import ScorerOfNoNodes
from tests.support.servers.server import policies_of
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.cluster.snapshot import Namespace
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import VOLCANO_GROUP
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.framework.result import Placement
from webhook.serving.app import scoring
from webhook.serving.decisions.deciders import Decider, WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.work_budget import WorkBudget

Object = dict[str, Any]

CARD = {"nvidia.com/gpu": 1}
POD = make_pod("worker").annotate(TYPE, "training").gpu(1).generate_name("worker-").obj()


class Burst:
    """A decider and the pods that wait, on a node with 16 GPUs, or another number."""

    def __init__(self, decider: Decider, gpus: int = 16) -> None:
        self.node = make_node_object("node-1", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": gpus})
        cluster = cluster_of({"cluster": [self.node]})
        assert cluster is not None
        self.policy = policy_with()
        self.waiting = scoring(policies_of(self.policy)).waiting
        self.cluster = ClusterView(cluster.snapshot, scheduler_for(self.policy))
        self.decider = decider

    def view(self) -> ClusterView:
        """Return the view of the next admission."""
        return self.waiting.shown_in(self.cluster)

    def admit(self, pod: Object = POD, *, dry_run: bool = False) -> Placement:
        """Return the prediction for a pod, and reserve its room."""
        request = AdmissionRequest("u", "CREATE", "Pod", "pods", "", "team-a", "", "someone", dry_run, pod)
        budget = WorkBudget(None, 10_000, monotonic_seconds=lambda: 0.0, cpu_seconds=lambda: 0.0)
        cluster = self.waiting.without_earlier(request, self.view())
        rendered = self.decider.decide(request, self.policy, cluster, budget)
        if rendered.candidate is not None and not dry_run:
            self.waiting.admit(PodIdentity.of(pod, "team-a"), rendered.candidate)
        assert rendered.placement is not None
        return rendered.placement


@pytest.mark.parametrize("decider", [DecisionCache, lambda: WorkerDecider(scheduler_for)])
def test_pods_of_one_template_get_as_much_room_as_there_is(decider: Callable[[], Decider]) -> None:
    burst = Burst(decider())
    verdicts = [burst.admit().verdict for _ in range(60)]
    assert verdicts == ["Feasible"] * 16 + ["Waiting"] * 44


def test_a_pod_that_waits_for_others_is_told_so() -> None:
    burst = Burst(DecisionCache())
    for _ in range(16):
        burst.admit()
    assert burst.admit().message == (
        "0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu. "
        "It would fit, but 16 pods that wait before it need the room."
    )


def test_the_view_is_the_same_while_nothing_changes() -> None:
    burst = Burst(DecisionCache())
    first = burst.view()
    burst.admit(dry_run=True)
    assert burst.view() is first
    burst.cluster = replace(burst.cluster, minute=1)
    assert burst.view().minute == 1
    cluster = cluster_of({"cluster": [make_node_object("node-1", labels={"other": "label"})]})
    assert cluster is not None
    burst.cluster = replace(burst.cluster, snapshot=replace(cluster.snapshot, generation=1))
    assert burst.view() is not first


def test_another_scorer_is_that_of_the_view_from_then_on() -> None:
    """A changed policy can have another profile."""
    burst = Burst(DecisionCache())
    first = burst.view()

    burst.cluster = replace(burst.cluster, scorer=scheduler_for(policy_with(keyDomain="example.com")))

    assert burst.view() is not first
    assert burst.view().scorer is burst.cluster.scorer


def test_the_view_shows_the_latest_state_of_the_cluster() -> None:
    burst = Burst(DecisionCache())
    burst.view()
    later = replace(burst.cluster.snapshot, generation=1, namespaces={"team-a": Namespace({}, {"key": "value"})})

    burst.cluster = replace(burst.cluster, snapshot=later)

    assert burst.view().snapshot is later


def test_a_stale_view_is_passed_on() -> None:
    burst = Burst(DecisionCache())
    burst.cluster = ClusterView(burst.cluster.snapshot, ScorerOfNothing(), "too old")
    assert burst.view() is burst.cluster
    assert burst.admit().message == "too old"


class ScorerOfNothing(ScorerOfNoNodes):
    """A scorer that must not be asked."""

    def answer(self, *_: object) -> Placement:
        """Fail."""
        raise AssertionError("asked all the same")


@pytest.mark.parametrize(
    "named",
    [
        pytest.param(make_pod("worker"), id="by its name"),
        pytest.param(
            make_pod().generate_name("worker-").spec(volumes=[{"name": "kube-api-access-x7x2q", "projected": {}}]),
            id="by its token volume",
        ),
    ],
)
def test_pod_that_is_admitted_again_does_not_count_against_itself(named: PodBuilder) -> None:
    burst = Burst(DecisionCache())
    pod = named.annotate(TYPE, "training").gpu(16).obj()

    for is_dry_run in (False, False, True):
        assert burst.admit(pod, dry_run=is_dry_run).verdict == "Feasible"
        assert len(burst.waiting) == 1
    assert burst.admit().verdict == "Waiting"


def test_a_pod_is_not_read_for_room_that_its_namespace_cannot_get() -> None:
    burst = Burst(DecisionCache())
    request = AdmissionRequest("u", "CREATE", "Pod", "pods", "", "team-a", "", "someone", False, POD)
    budget = WorkBudget(None, 10_000, monotonic_seconds=lambda: 0.0, cpu_seconds=lambda: 0.0)
    full = replace(burst.view(), reserves=lambda _: False)
    assert burst.decider.decide(request, burst.policy, full, budget).candidate is None


def of_gang(name: str, number: int, size: int = 4) -> Object:
    pod = make_pod(f"{name}-{number}").namespace("team-a").annotate(TYPE, "training").gpu(1)
    return pod.annotate(f"{DOMAIN}/gang", name).annotate(f"{DOMAIN}/gang-size", str(size)).obj()


def interleaved(burst: Burst, pods: int) -> list[str]:
    """Admit so many pods of two gangs of four, one of each in turn; return the verdicts."""
    return [burst.admit(of_gang("ab"[number % 2], number // 2)).verdict for number in range(pods)]


def test_gang_that_does_not_start_reserves_nothing_where_the_scheduler_starts_it_whole() -> None:
    """Volcano starts one of the two gangs, so the pods of the other leave it their room."""
    burst = Burst(DecisionCache(), gpus=6)

    assert interleaved(burst, 6) == ["Feasible"] * 5 + ["Waiting"]
    assert len(burst.waiting) == 3
    seen = cluster_of({"cluster": [burst.node, of_gang("b", 2) | {"status": {"phase": "Pending"}}]})
    assert seen is not None
    burst.cluster = replace(burst.cluster, snapshot=replace(seen.snapshot, generation=1))
    burst.waiting.settle(burst.cluster.snapshot)
    assert len(burst.waiting) == 3
    assert [burst.admit(of_gang(name, 3)).verdict for name in "ab"] == ["Feasible", "Waiting"]


def test_gang_that_did_not_start_has_room_again_once_it_fits() -> None:
    burst = Burst(DecisionCache(), gpus=6)
    interleaved(burst, 6)
    larger = cluster_of(
        {"cluster": [burst.node, burst.node | {"metadata": burst.node["metadata"] | {"name": "node-2"}}]}
    )
    assert larger is not None
    burst.cluster = replace(burst.cluster, snapshot=replace(larger.snapshot, generation=1))

    assert [burst.admit(of_gang(name, 3)).verdict for name in "ab"] == ["Feasible", "Feasible"]
    burst.waiting.settle(burst.cluster.snapshot)
    assert len(burst.waiting) == 8


@pytest.mark.parametrize("is_admitted_again", [True, False])
def test_a_gang_that_has_started_keeps_its_room_though_further_pods_find_none(*, is_admitted_again: bool) -> None:
    """It did not start at first. With a fourth card it does, and each further card takes one more pod."""
    burst = Burst(DecisionCache(), gpus=3)

    def grow(name: str) -> None:
        nodes = burst.cluster.snapshot.nodes
        more = [make_node_object(each.node.name, labels={USAGE: "training"}, capacity=CARD) for each in nodes[1:]]
        added = make_node_object(name, labels={USAGE: "training"}, capacity=CARD)
        larger = cluster_of({"cluster": [burst.node, *more, added]})
        assert larger is not None
        generation = burst.cluster.snapshot.generation + 1
        burst.cluster = replace(burst.cluster, snapshot=replace(larger.snapshot, generation=generation))
        burst.waiting.place_all_again()
        settle()

    def settle() -> None:
        for _time in range(8):
            burst.waiting.settle(burst.cluster.snapshot)

    for number in range(4):
        burst.admit(of_gang("a", number))
    assert len(burst.waiting) == 0
    grow("node-2")
    if is_admitted_again:
        burst.admit(of_gang("a", 3))
        settle()
    assert len(burst.waiting) == 4

    for number in (4, 5):
        burst.admit(of_gang("a", number))
    assert (len(burst.waiting), burst.waiting.total) == (4, 6)

    grow("node-3")
    assert (len(burst.waiting), burst.waiting.total) == (5, 6)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("is_half_admitted", [False, True])
def test_gangs_that_are_seen_in_the_cluster_reserve_as_those_admitted_here(
    size: int, *, is_half_admitted: bool
) -> None:
    """Another replica has admitted the others."""
    burst = Burst(DecisionCache(), gpus=2 * size - 1)
    pods = [of_gang("ab"[number % 2], number // 2, size) for number in range(2 * size)]
    for pod in pods[: size if is_half_admitted else 0]:
        burst.admit(pod)
    see(burst, pods)

    for _time in range(3):
        burst.waiting.settle(burst.cluster.snapshot)

    assert len(burst.waiting) == size


@pytest.mark.parametrize(("running", "reserved"), [(2, 0), (3, 1)])
def test_running_pods_count_toward_the_pods_that_a_gang_needs_to_start(running: int, reserved: int) -> None:
    burst = Burst(DecisionCache(), gpus=running + 1)
    see(burst, [of_gang("a", number) for number in range(running + 2)], running)

    for _time in range(3):
        burst.waiting.settle(burst.cluster.snapshot)

    assert (len(burst.waiting), burst.waiting.total) == (reserved, 2)


def see(burst: Burst, pods: Sequence[Object], running: int = 0) -> None:
    """Show the pods of gangs in the next snapshot, as they are stored for Volcano. The first `running` pods run."""
    for number, pod in enumerate(pods):
        pod["metadata"] |= {"creationTimestamp": f"2026-01-01T00:00:0{number}Z"}
        pod["metadata"]["annotations"][VOLCANO_GROUP] = pod["metadata"]["annotations"][f"{DOMAIN}/gang"]
        pod["spec"]["schedulerName"] = "volcano"
        pod["status"] = {"phase": "Pending"}
        if number < running:
            pod["spec"]["nodeName"], pod["status"] = "node-1", {"phase": "Running"}
    seen = cluster_of({"cluster": [burst.node, *pods]})
    assert seen is not None
    generation = burst.cluster.snapshot.generation + 1
    burst.cluster = replace(burst.cluster, snapshot=replace(seen.snapshot, generation=generation))
    burst.waiting.settle(burst.cluster.snapshot)
