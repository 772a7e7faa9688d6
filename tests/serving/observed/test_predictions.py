"""Predictions are compared with the nodes of bound pods, as far as pods can be matched."""

import gc
import weakref
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.work import calls_of
from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.pods.pending_pods import PendingPod, PendingPods, PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.framework.result import Placement
from webhook.placement.scheduler import Scheduler
from webhook.serving.observed.predictions import Predictions

NOW_SECONDS = 1_800_000_000.0
SNAPSHOT = Snapshot.of(
    NodeInfo.of(Node.of(make_node_object(name, capacity={"cpu": cpu})))
    for name, cpu in {"large-1": "64", "large-2": "64", "medium": "16", "small": "2"}.items()
)


def pod(cpu: str = "4", name: str = "") -> PodBuilder:
    made = make_pod(name) if name else make_pod().generate_name("worker-")
    return made.namespace("x").owner("Job", "train").requests(cpu=cpu)


def remember(
    predictions: Predictions, given: PodBuilder, *, at_seconds: float = NOW_SECONDS, reinvoked: bool = False
) -> None:
    placement = Scheduler().place(given.obj(), SNAPSHOT)
    predictions.remember(PodIdentity.of(given.obj(), "x"), placement, SNAPSHOT.rows, at_seconds, reinvoked=reinvoked)


def bound(
    given: PodBuilder, node: str, name: str = "worker-abc12", created_seconds: float = NOW_SECONDS
) -> dict[str, Any]:
    content = given.node_name(node).obj()
    content["metadata"]["name"] = name
    content["metadata"]["creationTimestamp"] = datetime.fromtimestamp(int(created_seconds), UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    return content


def compare(predictions: Predictions, content: dict[str, Any], after_seconds: float = 1) -> str | None:
    return predictions.compare(Binding.of(content), NOW_SECONDS + after_seconds)


def pending(given: PodBuilder, name: str = "worker-abc12") -> dict[PodKey, PendingPod]:
    content = bound(given, "", name)
    found = PendingPod.of(content)
    return {found.key: found}


def with_token(given: PodBuilder, suffix: str) -> PodBuilder:
    return given.spec(volumes=[{"name": f"kube-api-access-{suffix}", "projected": {}}])


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
WAITING = pod("60").label("waits", "yes")


def waiting_prediction() -> Predictions:
    predictions = Predictions()
    placement = replace(Placement.unknown(""), verdict="Waiting")
    predictions.remember(PodIdentity.of(WAITING.obj(), "x"), placement, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    return predictions


class Scored(dict[str, Any]):
    """The scores of a placement, which keep its snapshot in memory."""


@pytest.mark.parametrize(
    ("cpu", "node", "result"),
    [
        pytest.param("4", "large-1", "same_node", id="same node"),
        pytest.param("4", "large-2", "in_best_set", id="another node with the best score"),
        pytest.param("4", "medium", "feasible_elsewhere", id="a lower score"),
        pytest.param("4", "small", "predicted_infeasible_but_bound", id="a node that was held not to do"),
        pytest.param("4", "added-since", None, id="a node that was not there"),
        pytest.param("900", "large-1", "predicted_infeasible_but_bound", id="no node was held to do"),
    ],
)
def test_binding_is_compared_with_the_prediction(cpu: str, node: str, result: str | None) -> None:
    predictions = Predictions()
    remember(predictions, pod(cpu))
    assert compare(predictions, bound(pod(cpu), node)) == result


@pytest.mark.parametrize("node", ["medium", "small"])
def test_node_that_can_have_the_best_score_is_in_the_best_set(node: str) -> None:
    placement = replace(Scheduler().place(pod().obj(), SNAPSHOT), possible_nodes=frozenset({"medium", "small"}))
    predictions = Predictions()
    predictions.remember(PodIdentity.of(pod().obj(), "x"), placement, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    assert compare(predictions, bound(pod(), node)) == "in_best_set"


def test_node_with_the_room_of_a_pod_that_waits_is_no_infeasible_one() -> None:
    """The pod before it left, or was bound elsewhere; the scorer did not contradict kube-scheduler."""
    placement = replace(Scheduler().place(pod().obj(), SNAPSHOT), reserved_pods=1)
    predictions = Predictions()
    predictions.remember(PodIdentity.of(pod().obj(), "x"), placement, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    assert compare(predictions, bound(pod(), "small")) == "feasible_elsewhere"


def test_pod_with_a_name_is_matched_by_it() -> None:
    predictions = Predictions()
    remember(predictions, pod(name="a"))
    assert compare(predictions, bound(pod(name="b"), "large-1", "b")) is None
    assert compare(predictions, bound(pod(name="a"), "large-1", "a")) == "same_node"


def test_each_admission_is_compared_once() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    assert compare(predictions, bound(pod(), "large-1")) == "same_node"
    assert compare(predictions, bound(pod(), "large-1", "worker-other")) is None
    assert len(predictions) == 0


def test_pod_created_at_another_time_was_admitted_by_another_replica() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    assert compare(predictions, bound(pod(), "large-1", created_seconds=NOW_SECONDS + 60)) is None
    assert compare(predictions, bound(pod(), "large-1", created_seconds=NOW_SECONDS + 2)) == "same_node"


def test_pod_of_another_controller_is_another_pod() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    other = make_pod().generate_name("worker-").namespace("x").requests(cpu="4")
    assert compare(predictions, bound(other, "large-1")) is None


def test_reinvocation_replaces_the_first_prediction() -> None:
    predictions = Predictions()
    remember(predictions, pod("900"))
    remember(predictions, pod("4"), reinvoked=True)
    assert len(predictions) == 1
    assert compare(predictions, bound(pod(), "large-1")) == "same_node"


def test_pod_without_a_verdict_is_not_compared() -> None:
    predictions = Predictions()
    unknown = Placement.unknown("too old")
    predictions.remember(PodIdentity.of(pod().obj(), "x"), unknown, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    assert len(predictions) == 0


def test_number_of_predictions_is_bounded() -> None:
    predictions = Predictions(size=3)
    for number in range(10):
        remember(predictions, pod(name=f"p{number}"))
    assert len(predictions) == 3
    assert compare(predictions, bound(pod(name="p0"), "large-1", "p0")) is None
    assert compare(predictions, bound(pod(name="p9"), "large-1", "p9")) == "same_node"


def test_pod_without_a_valid_creation_time_is_not_compared() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    content = bound(pod(), "large-1")
    content["metadata"]["creationTimestamp"] = None
    assert compare(predictions, content) is None


def test_memory_of_different_placements_is_bounded() -> None:
    predictions = Predictions(sets_bytes=4)
    same = Scheduler().place(pod().obj(), SNAPSHOT)
    for number in range(5):
        given = pod(name=f"alike-{number}").obj()
        predictions.remember(PodIdentity.of(given, "x"), same, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    assert len(predictions) == 5

    remember(predictions, pod(name="second"))
    assert len(predictions) == 6
    remember(predictions, pod(name="third"))

    assert len(predictions) == 2
    assert compare(predictions, bound(pod(), "large-1", "alike-4")) is None
    assert compare(predictions, bound(pod(), "large-1", "third")) == "same_node"


def test_sets_of_nodes_of_8_mib_are_kept() -> None:
    """A prediction for 2**17 nodes has two sets of 16 KiB."""
    predictions, rows = Predictions(), {str(row): row for row in range(2**17)}
    every = np.ones(len(rows), dtype=np.bool_)
    for number in range(256):
        placement = Placement("Feasible", "0", len(rows), len(rows), "", best_rows=np.array([0]), feasible_mask=every)
        given = PodIdentity.of(pod(name=f"p{number}").obj(), "x")
        predictions.remember(given, placement, rows, NOW_SECONDS, reinvoked=False)

    assert len(predictions) == 256
    remember(predictions, pod(name="more"))
    assert len(predictions) == 256


def test_predictions_keep_no_scores_but_the_last_in_memory() -> None:
    predictions = Predictions()
    earlier = weakref.ref(remember_with_scores(predictions, "a"))
    last = weakref.ref(remember_with_scores(predictions, "b"))
    gc.collect()

    assert (earlier() is None, last() is None, len(predictions)) == (True, False, 2)


def remember_with_scores(predictions: Predictions, name: str) -> Scored:
    scores = Scored()
    placement = replace(Scheduler().place(pod(name=name).obj(), SNAPSHOT), scores=scores)
    identity = PodIdentity.of(pod(name=name).obj(), "x")
    predictions.remember(identity, placement, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    return scores


class TestPodsPredictedToWait:
    """A pod that is bound at once did not wait."""

    def test_bound_at_once(self) -> None:
        predictions = waiting_prediction()
        assert compare(predictions, bound(WAITING, "large-1"), after_seconds=3) == "predicted_waiting_but_bound"
        assert compare(predictions, bound(WAITING, "large-1")) is None

    def test_bound_later(self) -> None:
        assert compare(waiting_prediction(), bound(WAITING, "large-1"), after_seconds=6) is None

    def test_forgotten_once_it_cannot_be_wrong(self) -> None:
        predictions = waiting_prediction()
        assert [*predictions.follow({}, NOW_SECONDS + 6)] == []
        assert len(predictions) == 0

    @pytest.mark.parametrize(
        "waits",
        [
            pytest.param(WAITING.status(conditions=[UNSCHEDULABLE]), id="found unschedulable"),
            pytest.param(WAITING.spec(schedulingGates=[{"name": "quota"}]), id="gated"),
        ],
    )
    def test_right_if_the_pod_had_to_wait(self, waits: PodBuilder) -> None:
        predictions = waiting_prediction()
        assert [*predictions.follow(pending(waits), NOW_SECONDS + 1)] == []
        assert compare(predictions, bound(WAITING, "large-1"), after_seconds=2) is None

    def test_pod_that_the_scheduler_has_not_looked_at_yet_can_still_prove_it_wrong(self) -> None:
        predictions = waiting_prediction()
        assert [*predictions.follow(pending(WAITING), NOW_SECONDS + 1)] == []
        assert compare(predictions, bound(WAITING, "large-1"), after_seconds=2) == "predicted_waiting_but_bound"

    def test_pods_that_stay_as_they_are_cost_little(self) -> None:
        predictions = waiting_prediction()
        unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        others = make_pod().namespace("x").status(conditions=[unschedulable])
        many: dict[PodKey, PendingPod] = {}
        for number in range(2000):
            many |= pending(others, f"other-{number}")
        first, one = PendingPods(many, None, ()), pending(others, "one-more")
        list(predictions.follow(first, NOW_SECONDS))
        more = PendingPods(many | one, first, one)
        assert calls_of(lambda: list(predictions.follow(more, NOW_SECONDS))) < 100


class TestPodsPredictedFeasible:
    """A pod that stays pending for a minute did not fit, or its scheduler is late."""

    def test_counted_once_and_compared_when_it_is_bound(self) -> None:
        predictions = Predictions()
        remember(predictions, pod())
        assert [*predictions.follow(pending(pod()), NOW_SECONDS + 59)] == []
        assert [*predictions.follow(pending(pod()), NOW_SECONDS + 65)] == ["predicted_feasible_but_pending"]
        assert [*predictions.follow(pending(pod()), NOW_SECONDS + 130)] == []
        assert compare(predictions, bound(pod(), "large-1"), after_seconds=200) == "same_node"

    def test_each_of_several_pods_of_a_template_is_counted(self) -> None:
        predictions = Predictions()
        for _ in range(3):
            remember(predictions, pod())
        two = pending(pod(), "worker-a") | pending(pod(), "worker-b")
        assert [*predictions.follow(two, NOW_SECONDS + 61)] == ["predicted_feasible_but_pending"] * 2

    def test_one_prediction_is_disproved_by_one_pod(self) -> None:
        predictions = Predictions()
        remember(predictions, pod())
        two = pending(pod(), "worker-a") | pending(pod(), "worker-b")
        assert [*predictions.follow(two, NOW_SECONDS + 61)] == ["predicted_feasible_but_pending"]

    def test_infeasible_pod_may_stay_pending(self) -> None:
        predictions = Predictions()
        remember(predictions, pod("900"))
        assert [*predictions.follow(pending(pod("900")), NOW_SECONDS + 61)] == []

    def test_pod_that_was_never_stored_is_not_counted(self) -> None:
        predictions = Predictions()
        remember(predictions, pod())
        assert [*predictions.follow({}, NOW_SECONDS + 61)] == []
        assert [*predictions.follow(pending(pod()), NOW_SECONDS + 120)] == []


class TestPodsWithATokenVolume:
    """The random name of the volume identifies the pod."""

    def test_pods_of_a_template_are_told_apart(self) -> None:
        predictions = Predictions()
        remember(predictions, with_token(pod("900"), "aaaaa"))
        remember(predictions, with_token(pod("4"), "bbbbb"))
        second = bound(with_token(pod("4"), "bbbbb"), "large-1", "worker-2", NOW_SECONDS + 60)
        assert compare(predictions, second) == "same_node"
        first = bound(with_token(pod("900"), "aaaaa"), "large-1", "worker-1")
        assert compare(predictions, first) == "predicted_infeasible_but_bound"

    def test_second_call_replaces_the_prediction(self) -> None:
        predictions = Predictions()
        remember(predictions, with_token(pod("900"), "aaaaa"))
        remember(predictions, with_token(pod("4"), "aaaaa"))
        assert len(predictions) == 1

    def test_pod_without_the_volume_is_another_pod(self) -> None:
        predictions = Predictions()
        remember(predictions, with_token(pod(), "a"))
        assert compare(predictions, bound(pod(), "large-1")) is None


def test_replicas_of_one_controller_are_matched_in_order() -> None:
    predictions = Predictions()
    for cpu in ("900", "4"):
        remember(predictions, pod(cpu))
    assert len(predictions) == 2
    assert compare(predictions, bound(pod(), "large-1", "worker-1")) == "predicted_infeasible_but_bound"
    assert compare(predictions, bound(pod(), "large-1", "worker-2")) == "same_node"


def test_reinvocation_replaces_the_last_prediction_of_the_controller() -> None:
    predictions = Predictions()
    remember(predictions, pod("900"), at_seconds=NOW_SECONDS - 60)
    remember(predictions, pod("900"))
    remember(predictions, pod("4"), reinvoked=True)
    assert compare(predictions, bound(pod(), "large-1")) == "same_node"
    earlier = bound(pod(), "large-1", created_seconds=NOW_SECONDS - 60)
    assert compare(predictions, earlier) == "predicted_infeasible_but_bound"


@pytest.mark.parametrize(("seconds", "result"), [(-6, None), (-5, "same_node"), (5, "same_node"), (6, None)])
def test_pod_is_created_within_five_seconds_of_its_admission(seconds: int, result: str | None) -> None:
    predictions = Predictions()
    remember(predictions, pod())
    assert compare(predictions, bound(pod(), "large-1", created_seconds=NOW_SECONDS + seconds)) == result


def test_a_prediction_is_kept_after_those_for_many_sets_of_nodes_were_compared() -> None:
    """Only those for the last few sets of nodes are kept, because their names take memory."""
    predictions, given = Predictions(), pod()
    placement = Scheduler().place(given.obj(), SNAPSHOT)
    for number in range(20):
        rows = dict(SNAPSHOT.rows)
        predictions.remember(PodIdentity.of(given.obj(), "x"), placement, rows, NOW_SECONDS, reinvoked=False)
        assert len(predictions) == 1, number
        assert compare(predictions, bound(given, "large-1"))
    assert len(predictions) == 0


def test_pods_that_stay_pending_are_looked_for_every_few_seconds() -> None:
    """A look goes through all pending pods."""
    predictions = Predictions()
    remember(predictions, pod())
    assert [*predictions.follow(pending(pod()), NOW_SECONDS + 59)] == []

    assert [*predictions.follow(pending(pod()), NOW_SECONDS + 60.5)] == []
    assert [*predictions.follow(pending(pod()), NOW_SECONDS + 70)] == ["predicted_feasible_but_pending"]
