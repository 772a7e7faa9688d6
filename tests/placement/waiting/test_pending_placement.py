"""Pods that wait are placed in the order of the queue, and a pod is told what they leave."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from tests.oracles import strategies, strategies_pods
from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.kube.reader import Reader
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import (
    WaitingPod,
    place_and_assume,
    place_pending,
    predict_after_waiting,
    predict_placement,
    running_pod,
)

Object = dict[str, Any]


def _cluster(*pods: Object, nodes: int = 2, gpus: int = 4) -> Snapshot:
    made = [make_node_object(f"node-{number}", capacity={"nvidia.com/gpu": gpus}) for number in range(1, nodes + 1)]
    return snapshot_from_documents(Document("cluster", each) for each in (*made, *pods))


def _pending(name: str, gpus: int, created: str = "10", *, priority: int = 0, **fields: Any) -> Object:
    pod = make_pod(name).namespace("x").gpu(gpus).obj()
    pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{created}Z"
    pod["spec"] |= {"priority": priority, **fields}
    return pod


def _answer(pod: PodBuilder, assumed: AssumedPods[Any], priority: int = 0) -> Placement:
    content = pod.obj()
    content["spec"]["priority"] = priority
    return predict_placement(Scheduler(), PodSignature.of(content), assumed, "seed", lambda: False)


def _placed(snapshot: Snapshot) -> dict[str, str]:
    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])
    return {key.name: each.pod.node_name for key, each in found.assumed.by_key.items()}


def test_pending_pods_take_their_room_before_a_new_pod() -> None:
    snapshot = _cluster(_pending("p", 4), _pending("q", 3))
    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])
    assert len(found.assumed) == 2
    assert _answer(make_pod().gpu(1), found.assumed).verdict == "Feasible"
    answer = _answer(make_pod().gpu(2), found.assumed)
    assert (answer.verdict, answer.waiting_before) == ("Waiting", 2)
    assert answer.message == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. "
        "It would fit, but 2 pods that wait before it need the room."
    )


def _packed(name: str) -> PodBuilder:
    """A pod that goes to the node of its like."""
    term = {"labelSelector": {"matchLabels": {"app": "packed"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return make_pod(name).gpu(1).label("app", "packed").affinity(affinity)


def _reserved(*pods: PodBuilder, nodes: int = 3) -> AssumedPods[str]:
    assumed: AssumedPods[str] = AssumedPods(_cluster(nodes=nodes), {})
    for number, each in enumerate(pods):
        place_and_assume(Scheduler(), str(number), WaitingPod.of(each.obj()), assumed, "seed")
    return assumed


def test_nodes_that_are_tied_for_a_pod_before_are_possible_for_the_one_that_follows_it() -> None:
    found = _answer(_packed("b"), _reserved(_packed("a")))
    assert found.possible_nodes | {found.node} == {"node-1", "node-2", "node-3"}
    assert found.best_rows is not None
    assert len(found.best_rows) == 1


def test_nodes_that_are_tied_in_a_large_cluster_are_possible_for_a_pod_that_fits_few() -> None:
    named = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1", "node-2"]}
    first, second = (_packed(name).require_node({"matchExpressions": [named]}) for name in ("a", "b"))
    found = _answer(second, _reserved(first, nodes=101))
    assert found.possible_nodes | {found.node} == {"node-1", "node-2"}


def test_no_nodes_are_possible_for_a_pod_that_fits_more_than_are_scored() -> None:
    assert _answer(_packed("b"), _reserved(_packed("a"), nodes=101)).possible_nodes == frozenset()


def test_nodes_where_the_pod_does_not_fit_are_not_possible() -> None:
    found = _answer(_packed("b").node_selector("kubernetes.io/hostname", "node-1"), _reserved(_packed("a")))
    assert found.possible_nodes == frozenset()


def test_nodes_are_not_possible_without_a_tie_before() -> None:
    first = _packed("a").node_selector("kubernetes.io/hostname", "node-1")
    found = _answer(_packed("b"), _reserved(first))
    assert (found.node, found.possible_nodes) == ("node-1", frozenset())


def test_one_pod_that_waits_is_one_pod() -> None:
    snapshot = _cluster(_pending("p", 4), nodes=1)
    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])
    answer = _answer(make_pod().gpu(1), found.assumed)
    assert answer.message.endswith(". It would fit, but 1 pod that waits before it needs the room.")


def test_pods_on_nodes_that_are_no_use_to_the_pod_are_not_the_reason() -> None:
    snapshot = _cluster(_pending("p", 4), _pending("q", 0), nodes=1)
    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])
    too_large = _answer(make_pod().gpu(5), found.assumed)
    assert too_large.verdict == "Infeasible"
    assert "wait" not in too_large.message


def test_pods_on_other_nodes_can_be_the_reason() -> None:
    """node-2 has room, but a pod with the same anti-affinity waits for node-1, which is in the same zone."""
    term = {"labelSelector": {"matchLabels": {"app": "one-a-zone"}}, "topologyKey": "zone"}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [make_node_object(f"node-{number}", labels={"zone": "z"}) for number in (1, 2)]
    assumed: AssumedPods[str] = AssumedPods(snapshot_from_documents(Document("c", each) for each in nodes), {})
    first, second = (
        make_pod(f"on-{number}")
        .label("app", "one-a-zone")
        .affinity(required)
        .node_selector("kubernetes.io/hostname", f"node-{number}")
        for number in (1, 2)
    )
    place_and_assume(Scheduler(), "first", WaitingPod.of(first.obj()), assumed, "seed")
    answer = _answer(second, assumed)
    assert (answer.verdict, answer.waiting_before) == ("Waiting", 1)
    assert answer.message.endswith("It would fit, but 1 pod that waits before it needs the room.")


def test_a_pod_of_a_higher_priority_comes_first() -> None:
    snapshot = _cluster(_pending("p", 4), nodes=1)
    assumed = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed
    assert _answer(make_pod().gpu(1), assumed, priority=1).verdict == "Feasible"
    assert _answer(make_pod().gpu(1), assumed, priority=0).verdict == "Waiting"
    assert _answer(make_pod().gpu(1), assumed, priority=-1).verdict == "Waiting"


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        pytest.param(_pending("p", 4, "10"), _pending("q", 4, "11"), "p", id="the earlier one"),
        pytest.param(_pending("p", 4, "11"), _pending("q", 4, "10"), "q", id="the earlier one, listed later"),
        pytest.param(_pending("p", 4, "10"), _pending("q", 4, "10"), "p", id="of one second: as they arrived"),
        pytest.param(_pending("p", 4, "10"), _pending("q", 4, "11", priority=1), "q", id="the higher priority"),
    ],
)
def test_order_of_the_queue(first: Object, second: Object, winner: str) -> None:
    assert _placed(_cluster(first, second, nodes=1)) == {winner: "node-1"}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(_pending("p", 1, schedulingGates=[{"name": "g"}]), id="gated"),
        pytest.param(_pending("p", 1) | {"status": {"nominatedNodeName": "node-1"}}, id="nominated"),
        pytest.param(_pending("p", 1, containers=[{"resources": {"requests": {"cpu": {}}}}]), id="malformed"),
        pytest.param(_pending("p", 5), id="too large"),
        pytest.param(
            _pending("p", 1)
            | {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
            id="unschedulable",
        ),
    ],
)
def test_pods_that_get_no_room(pod: Object) -> None:
    assert _placed(_cluster(pod)) == {}


def test_pods_of_another_scheduler_get_room() -> None:
    assert _placed(_cluster(_pending("p", 4, schedulerName="volcano"), nodes=1)) == {"p": "node-1"}


def test_pods_without_room_are_named() -> None:
    snapshot = _cluster(_pending("p", 4), _pending("q", 4), nodes=1)
    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])
    assert [key.name for key in found.without_room] == ["q"]


def test_a_pod_of_a_higher_priority_displaces_one_that_comes_after_it() -> None:
    low, high = (WaitingPod.of(_pending(name, 4, priority=value)) for name, value in (("low", 0), ("high", 9)))
    assumed: AssumedPods[str] = AssumedPods(_cluster(nodes=1), {})
    place_and_assume(Scheduler(), "low", low, assumed, "seed")
    placement, displaced = place_and_assume(Scheduler(), "high", high, assumed, "seed")
    assert placement.node == "node-1"
    assert displaced == ("low",)
    assert assumed.by_key.keys() == {"high"}


def test_an_answer_that_a_deadline_ends_is_not_final() -> None:
    snapshot = _cluster(_pending("p", 4), nodes=1)
    assumed = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed
    asked = PodSignature.of(make_pod().gpu(1).obj())
    scheduler = Scheduler()
    scheduler.answer(asked, assumed.before(0))
    # The first answer is remembered, so the deadline ends the search for the nodes without the waiting pods.
    answer = predict_placement(scheduler, asked, assumed, "seed", lambda: True)
    assert (answer.verdict, answer.is_final) == ("Waiting", False)


def _same_amounts(pod: RunningPod) -> RunningPod:
    """Return `pod` without amounts of zero, which are none."""
    return pod._replace(requests={name: amount for name, amount in pod.requests.items() if amount})


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.pending_pods() | strategies_pods.pending_pods())
def test_a_new_pod_is_the_load_that_it_is_once_it_runs(pod: Object) -> None:
    info = PodSignature.of(pod).info
    # A pod-level amount of zero, also one that follows from containers, replaces their defaults; no pod is written so.
    of_pod = pod["spec"].get("resources")
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    parts = [of_pod, *(each.get("resources", {}) for each in containers)] if of_pod else []
    assume(not any("0" in {**each.get("limits", {}), **each.get("requests", {})}.values() for each in parts))

    assert _same_amounts(running_pod(info, pod["metadata"])).is_same_load(_same_amounts(RunningPod.of(pod)))


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    strategies.pending_pods() | strategies_pods.pending_pods(),
    strategies.pending_pods() | strategies_pods.pending_pods(),
)
def test_pods_that_differ_in_containers_and_volumes_have_the_signature_that_is_read_of_each(
    pod: Object, other: Object
) -> None:
    parts = ("containers", "initContainers", "volumes")
    spec = {key: value for key, value in pod["spec"].items() if key not in parts}
    mixed = {**pod, "spec": {**spec, **{key: other["spec"][key] for key in parts if key in other["spec"]}}}

    found = PodSignature.read(Reader(mixed), 0, PodSignature.of(pod))

    assert found == PodSignature.of(mixed)


@pytest.mark.parametrize(
    ("evidence", "is_abandoned"),
    [
        pytest.param(SchedulerEvidence(frozenset(), ""), True, id="no sign"),
        pytest.param(SchedulerEvidence(frozenset({"scheduling.volcano.sh"}), ""), False, id="its API group"),
        pytest.param(None, False, id="the signs are not known"),
    ],
)
def test_pods_of_a_scheduler_without_a_sign_reserve_no_room(
    evidence: SchedulerEvidence | None, *, is_abandoned: bool
) -> None:
    pods = _pending("lost", 4, "10", schedulerName="volcano"), _pending("other", 4, "20")
    snapshot = replace(_cluster(*pods, nodes=1), scheduler_evidence=evidence)

    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])

    assert [key.name for key in found.abandoned] == ["lost"] * is_abandoned
    assert [key.name for key in found.assumed.by_key] == ["other" if is_abandoned else "lost"]


def test_only_pods_on_nodes_where_the_pod_would_fit_are_the_reason() -> None:
    other = make_node_object("other", labels={"pool": "x"}, capacity={"nvidia.com/gpu": 1})
    snapshot = snapshot_from_documents(
        Document("cluster", each)
        for each in (
            make_node_object("node-1", capacity={"nvidia.com/gpu": 4}),
            other,
            _pending("p", 4, nodeSelector={"kubernetes.io/hostname": "node-1"}),
            _pending("q", 1, nodeSelector={"pool": "x"}),
        )
    )
    found = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()])
    assert len(found.assumed) == 2

    answer = _answer(make_pod().gpu(2), found.assumed)

    assert (answer.verdict, answer.waiting_before, answer.reserved_pods) == ("Waiting", 1, 2)


def test_pods_that_wait_change_nothing_about_a_placement_that_is_not_known() -> None:
    snapshot = _cluster(_pending("p", 4), nodes=1)
    assumed = place_pending(Scheduler(), snapshot, [*snapshot.pending.values()]).assumed
    unknown = Placement.unknown("no time is left")

    found = predict_after_waiting(Scheduler(), PodSignature.of(make_pod().gpu(1).obj()), unknown, assumed, never)

    assert found is unknown


def test_one_of_the_best_nodes_is_chosen_also_without_pods_that_wait() -> None:
    empty: AssumedPods[str] = AssumedPods(_cluster(nodes=3))
    signature = PodSignature.of(make_pod().gpu(1).obj())

    def nodes(*seeds: str | None) -> set[str | None]:
        return {predict_placement(Scheduler(), signature, empty, seed, never).node for seed in seeds}

    assert nodes(*map(str, range(20))) == {"node-1", "node-2", "node-3"}
    assert nodes(None) == {"node-1"}


def test_new_pod_runs_with_its_priority() -> None:
    signature = PodSignature.of(make_pod().spec(priority=7).obj())

    assert running_pod(signature.info, {}).priority == 7
