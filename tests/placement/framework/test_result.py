"""The answer as `check -o json` prints it."""

import json
from dataclasses import replace

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.result import GangFit, Placement, to_check_json
from webhook.placement.scheduler import Scheduler


def test_answer_has_the_shape_of_the_contract() -> None:
    placement = Scheduler().place(make_pod().obj(), Snapshot.of([node("a"), node("b"), node("c", unschedulable=True)]))
    assert json.loads(json.dumps(to_check_json("team-a/worker-0", placement))) == {
        "pod": "team-a/worker-0",
        "verdict": "Feasible",
        "node": "a",
        "nodes": {"total": 3, "feasible": 2},
        "message": "2/3 nodes are available.",
        "scores": {
            "a": {
                "total": 399,
                "TaintToleration": 300,
                "NodeResourcesFit": 99,
                "ImageLocality": 0,
                "VolumeBinding": 0,
                "DynamicResources": 0,
            },
            "b": {
                "total": 399,
                "TaintToleration": 300,
                "NodeResourcesFit": 99,
                "ImageLocality": 0,
                "VolumeBinding": 0,
                "DynamicResources": 0,
            },
        },
        "suggestions": [],
        "unmodelled": [],
    }


def test_json_has_the_reason_for_which_an_infeasible_pod_is_not_denied() -> None:
    cordoned = Snapshot.of([node("c", unschedulable=True)])

    found = to_check_json("team-a/worker-0", Scheduler().place(make_pod().obj(), cordoned))

    assert (found["verdict"], found["notSure"]) == (
        "Infeasible",
        "1 node would do that is cordoned, not ready or not well",
    )


def test_answer_that_was_not_worked_out_has_no_nodes() -> None:
    assert to_check_json("x/y", Placement.unknown("no cluster")) == {
        "pod": "x/y",
        "verdict": "Unknown",
        "node": None,
        "nodes": {"total": 0, "feasible": 0},
        "message": "no cluster",
        "scores": {},
        "suggestions": [],
        "unmodelled": [],
    }


def test_scores_can_be_printed() -> None:
    placement = Scheduler().place(make_pod().obj(), Snapshot.of([node("a")]))
    assert repr(placement.scores) == "Scores({'a': {'total': 0}})"


@pytest.mark.parametrize(("fit", "is_complete", "starts"), [(1, True, True), (1, False, False), (2, True, False)])
def test_gang_starts_in_part_only_if_it_is_known_how_many_fit(fit: int, *, is_complete: bool, starts: bool) -> None:
    own = replace(Placement.unknown(""), verdict="Feasible", node="n")

    assert GangFit("g", 2, fit, 0, is_complete, own=own).starts_in_part is starts
