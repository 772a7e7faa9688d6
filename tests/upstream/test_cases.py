"""Records of plugins' answers become cases; what a test cannot show about a real cluster is not compared."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.upstream.cases import Case, read_cases
from tests.upstream.comparing import AGREES, CONTRADICTS, UNKNOWN, WAITING, compare

Object = dict[str, Any]


def _record(point: str, code: str, node: str = "", **fields: Any) -> Object:
    asked = {"node": make_node_object(node, unschedulable=node == "cordoned"), "pods": []} if node else None
    return {
        "test": "TestFilter/case",
        "plugin": "NodeUnschedulable",
        "point": point,
        "state": "0x1",
        "pod": make_pod().obj(),
        "asked": asked,
        "code": code,
        "reasons": None,
        "nodeNames": None,
        "features": {},
        "nodes": None,
        "objects": None,
    } | fields


def _cases(folder: Path, *records: Object) -> list[Case]:
    (folder / "p.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return read_cases(folder)


def test_cycle_is_one_case(tmp_path: Path) -> None:
    (case,) = _cases(
        tmp_path,
        _record("PreFilter", "Success", nodeNames=["a"]),
        _record("Filter", "Success", "a"),
        _record("Filter", "Success", "b"),
    )
    assert {name: answer.passes for name, answer in case.answers.items()} == {"a": True, "b": False}
    assert set(case.nodes) == {"a", "b"}


def test_node_with_two_calls_makes_two_cases(tmp_path: Path) -> None:
    first, second = _cases(
        tmp_path,
        _record("PreFilter", "Success"),
        _record("Filter", "Success", "a"),
        _record("Filter", "Unschedulable", "a"),
    )
    assert (first.answers["a"].passes, second.answers["a"].passes) == (True, False)


def test_pre_filter_rejection_applies_to_all_nodes(tmp_path: Path) -> None:
    (case,) = _cases(tmp_path, _record("PreFilter", "UnschedulableAndUnresolvable", reasons=["why"]))
    assert case.for_all is not None
    assert (case.for_all.passes, case.for_all.reasons) == (False, ("why",))


def test_successful_pre_filter_alone_makes_no_case(tmp_path: Path) -> None:
    assert _cases(tmp_path, _record("PreFilter", "Success")) == []


def test_normalized_scores_count(tmp_path: Path) -> None:
    (case,) = _cases(
        tmp_path,
        _record("Score", "Success", "a", scores={"a": 3}),
        _record("Score", "Success", "b", scores={"b": 6}),
        _record("NormalizeScore", "Success", scores={"a": 50, "b": 100}),
    )
    assert case.scores == {"a": 50, "b": 100}


@pytest.mark.parametrize(
    ("node", "code", "kind"),
    [
        pytest.param("a", "Success", AGREES, id="both pass"),
        pytest.param("a", "Unschedulable", CONTRADICTS, id="passes here alone"),
        pytest.param("cordoned", "Unschedulable", AGREES, id="both reject"),
        pytest.param("cordoned", "Success", CONTRADICTS, id="passes upstream alone"),
    ],
)
def test_answers_are_compared(tmp_path: Path, node: str, code: str, kind: str) -> None:
    (case,) = _cases(tmp_path, _record("Filter", code, node))
    assert compare(case).kind == kind


@pytest.mark.parametrize(
    ("plugin", "spec", "kind"),
    [
        pytest.param("SchedulingGates", {"schedulingGates": [{"name": "g"}]}, WAITING, id="a rejected pod may wait"),
        pytest.param("NodeDeclaredFeatures", {"hostNetwork": True, "hostUsers": False}, UNKNOWN, id="what is named"),
    ],
)
def test_nothing_is_claimed(tmp_path: Path, plugin: str, spec: Object, kind: str) -> None:
    pod = make_pod().spec(**spec).obj()
    (case,) = _cases(tmp_path, _record("Filter", "Unschedulable", "a", plugin=plugin, pod=pod))
    assert compare(case).kind == kind
