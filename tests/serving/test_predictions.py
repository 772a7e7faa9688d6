"""Predictions are compared with the nodes of bound pods, as far as pods can be matched."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler
from webhook.serving.predictions import Predictions

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
    predictions.remember("x", given.obj(), placement, SNAPSHOT.rows, at_seconds, reinvoked=reinvoked)


def bound(
    given: PodBuilder, node: str, name: str = "worker-abc12", created_seconds: float = NOW_SECONDS
) -> dict[str, Any]:
    content = given.node_name(node).obj()
    content["metadata"]["name"] = name
    content["metadata"]["creationTimestamp"] = datetime.fromtimestamp(int(created_seconds), UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    return content


@pytest.mark.parametrize(
    ("cpu", "node", "result"),
    [
        pytest.param("4", "large-1", "same_node", id="same node"),
        pytest.param("4", "large-2", "in_best_set", id="another node with the best score"),
        pytest.param("4", "medium", "feasible_elsewhere", id="a lower score"),
        pytest.param("4", "small", "foretold_infeasible_but_bound", id="a node that was held not to do"),
        pytest.param("4", "added-since", None, id="a node that was not there"),
        pytest.param("900", "large-1", "foretold_infeasible_but_bound", id="no node was held to do"),
    ],
)
def test_binding_is_compared_with_the_prediction(cpu: str, node: str, result: str | None) -> None:
    predictions = Predictions()
    remember(predictions, pod(cpu))
    assert predictions.compare(bound(pod(cpu), node)) == result


def test_pod_with_a_name_is_matched_by_it() -> None:
    predictions = Predictions()
    remember(predictions, pod(name="a"))
    assert predictions.compare(bound(pod(name="b"), "large-1", "b")) is None
    assert predictions.compare(bound(pod(name="a"), "large-1", "a")) == "same_node"


def test_each_admission_is_compared_once() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    assert predictions.compare(bound(pod(), "large-1")) == "same_node"
    assert predictions.compare(bound(pod(), "large-1", "worker-other")) is None
    assert len(predictions) == 0


def test_pod_created_at_another_time_was_admitted_by_another_replica() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    assert predictions.compare(bound(pod(), "large-1", created_seconds=NOW_SECONDS + 60)) is None
    assert predictions.compare(bound(pod(), "large-1", created_seconds=NOW_SECONDS + 2)) == "same_node"


def test_pod_of_another_controller_is_another_pod() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    other = make_pod().generate_name("worker-").namespace("x").requests(cpu="4")
    assert predictions.compare(bound(other, "large-1")) is None


def test_reinvocation_replaces_the_first_prediction() -> None:
    predictions = Predictions()
    remember(predictions, pod("900"))
    remember(predictions, pod("4"), reinvoked=True)
    assert len(predictions) == 1
    assert predictions.compare(bound(pod(), "large-1")) == "same_node"


def test_pod_predicted_to_wait_is_not_compared() -> None:
    predictions = Predictions()
    full = Snapshot.of([])
    placement = Scheduler().place(pod().obj(), full)
    waiting = type(placement).unknown("too old")
    predictions.remember("x", pod().obj(), waiting, full.rows, NOW_SECONDS, reinvoked=False)
    assert len(predictions) == 0


def test_number_of_predictions_is_bounded() -> None:
    predictions = Predictions(size=3)
    for number in range(10):
        remember(predictions, pod(name=f"p{number}"))
    assert len(predictions) == 3
    assert predictions.compare(bound(pod(name="p0"), "large-1", "p0")) is None
    assert predictions.compare(bound(pod(name="p9"), "large-1", "p9")) == "same_node"


def test_pod_without_a_valid_creation_time_is_not_compared() -> None:
    predictions = Predictions()
    remember(predictions, pod())
    content = bound(pod(), "large-1")
    content["metadata"]["creationTimestamp"] = None
    assert predictions.compare(content) is None


def test_number_of_different_placements_is_bounded() -> None:
    """Each placement keeps its snapshot in memory."""
    predictions = Predictions(placements=2)
    same = Scheduler().place(pod().obj(), SNAPSHOT)
    for number in range(5):
        given = pod(name=f"alike-{number}").obj()
        predictions.remember("x", given, same, SNAPSHOT.rows, NOW_SECONDS, reinvoked=False)
    assert len(predictions) == 5

    remember(predictions, pod(name="second"))
    assert len(predictions) == 6
    remember(predictions, pod(name="third"))

    assert len(predictions) == 2
    assert predictions.compare(bound(pod(), "large-1", "alike-4")) is None
    assert predictions.compare(bound(pod(), "large-1", "third")) == "same_node"


def test_replicas_of_one_controller_are_matched_in_order() -> None:
    predictions = Predictions()
    for cpu in ("900", "4"):
        remember(predictions, pod(cpu))
    assert len(predictions) == 2
    assert predictions.compare(bound(pod(), "large-1", "worker-1")) == "foretold_infeasible_but_bound"
    assert predictions.compare(bound(pod(), "large-1", "worker-2")) == "same_node"


def test_reinvocation_replaces_the_last_prediction_of_the_controller() -> None:
    predictions = Predictions()
    remember(predictions, pod("900"), at_seconds=NOW_SECONDS - 60)
    remember(predictions, pod("900"))
    remember(predictions, pod("4"), reinvoked=True)
    assert predictions.compare(bound(pod(), "large-1")) == "same_node"
    earlier = bound(pod(), "large-1", created_seconds=NOW_SECONDS - 60)
    assert predictions.compare(earlier) == "foretold_infeasible_but_bound"


@pytest.mark.parametrize(("seconds", "result"), [(-6, None), (-5, "same_node"), (5, "same_node"), (6, None)])
def test_pod_is_created_within_five_seconds_of_its_admission(seconds: int, result: str | None) -> None:
    predictions = Predictions()
    remember(predictions, pod())
    assert predictions.compare(bound(pod(), "large-1", created_seconds=NOW_SECONDS + seconds)) == result
