"""Convert records to cases: a cluster, a pod, the plugin, and its result for each node."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Object = dict[str, Any]

SUCCESS, SKIP = "Success", "Skip"
_SCORE, _NORMALIZE_SCORE = "Score", "NormalizeScore"
_SCORING = (_SCORE, _NORMALIZE_SCORE)


@dataclass(frozen=True)
class Answer:
    """The result of the plugin for a node, or for the pod on all nodes."""

    code: str
    reasons: tuple[str, ...]

    @property
    def passes(self) -> bool:
        return self.code in (SUCCESS, SKIP)


@dataclass
class Case:
    """One question of a test and its answers.

    `nodes` are the nodes with their pods by name. `answers` are by the name of the node; `for_all` stands for every
    node, and before any is looked at. `scores` are the plugin's, normalized; a case has these or answers.
    """

    test: str
    plugin: str
    pod: Object
    args: Object | None
    features: Mapping[str, bool]
    objects: list[Object]
    nodes: dict[str, tuple[Object, list[Object]]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    for_all: Answer | None = None
    scores: dict[str, int] = field(default_factory=dict)


def read_cases(folder: Path) -> list[Case]:
    """Return the cases of all files of records in `folder`."""
    found: list[Case] = []
    for path in sorted(folder.glob("*.jsonl")):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        found += _cases(each for each in records if each["point"] not in _SCORING)
        found += _score_cases(each for each in records if each["point"] in _SCORING)
    return found


def _cases(records: Iterable[Mapping[str, Any]]) -> Iterator[Case]:
    """Yield cases: a pre-filter starts one, the filters of the same cycle are added; a repeated node starts another."""
    open_cases: dict[tuple[str, str, str], tuple[Mapping[str, Any], Case]] = {}
    for record in records:
        if record["point"] == "PreEnqueue" and record["code"] == SUCCESS and record["plugin"] != "SchedulingGates":
            continue  # says nothing of what comes next
        key = _cycle(record)
        if record["point"] == "PreFilter" and record["state"]:
            if key in open_cases:
                yield from _complete(open_cases.pop(key)[1])
            open_cases[key] = record, _opened(record)
            continue
        if record["point"] == "Filter" and record["state"] and key in open_cases:
            first, case = open_cases[key]
            name = _node_name(record)
            if name in case.answers:
                yield from _complete(case)
                case = _opened(first)
                open_cases[key] = first, case
            _join(case, record, first)
            continue
        case = _opened(record)
        if record["point"] == "Filter":
            _join(case, record, None)
        yield from _complete(case)
    for _, case in open_cases.values():
        yield from _complete(case)


def _score_cases(records: Iterable[Mapping[str, Any]]) -> Iterator[Case]:
    """Yield a case for the scores of each cycle: the normalized ones if there are any."""
    open_cases: dict[tuple[str, str, str], Case] = {}
    for record in records:
        if record["code"] != SUCCESS or not record["state"]:
            continue
        key = _cycle(record)
        if record["point"] == _NORMALIZE_SCORE:
            if key in open_cases:
                case = open_cases.pop(key)
                case.scores = {name: record["scores"][name] for name in case.scores if name in record["scores"]}
                yield case
            continue
        if key in open_cases and _node_name(record) in open_cases[key].scores:
            yield open_cases.pop(key)
        case = open_cases.setdefault(key, _opened(record))
        # Tests may hand over nodes without their pods; those of the snapshot have them.
        case.nodes.setdefault(_node_name(record), (record["asked"]["node"], list(record["asked"]["pods"] or ())))
        case.scores |= record["scores"]
    yield from open_cases.values()


def _cycle(record: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what the records of one scheduling cycle have in common; a table's case may have subtests."""
    return "/".join(record["test"].split("/")[:2]), record["state"], record["plugin"]


def _opened(record: Mapping[str, Any]) -> Case:
    objects = [
        {"apiVersion": each["apiVersion"], "kind": each["kind"], **each["object"]} for each in record["objects"] or ()
    ]
    case = Case(record["test"], record["plugin"], record["pod"], record.get("args"), record["features"], objects)
    for each in record["nodes"] or ():
        case.nodes[each["node"]["metadata"].get("name", "")] = each["node"], list(each["pods"] or ())
    if record["point"] not in ("Filter", _SCORE) and (record["code"] != SUCCESS or record["point"] == "PreEnqueue"):
        case.for_all = _answer(record)
    return case


def _join(case: Case, record: Mapping[str, Any], pre_filter: Mapping[str, Any] | None) -> None:
    for each in record["nodes"] or ():
        case.nodes.setdefault(each["node"]["metadata"].get("name", ""), (each["node"], list(each["pods"] or ())))
    asked = record.get("asked")
    if asked is None:
        return
    name = _node_name(record)
    case.nodes[name] = asked["node"], list(asked["pods"] or ())
    preselected = pre_filter and pre_filter["nodeNames"]
    if preselected is not None and name not in preselected:
        case.answers[name] = Answer("UnschedulableAndUnresolvable", ("not preselected",))
    else:
        case.answers[name] = _answer(record)


def _node_name(record: Mapping[str, Any]) -> str:
    asked = record.get("asked")
    return str(asked["node"]["metadata"].get("name", "")) if asked else ""


def _answer(record: Mapping[str, Any]) -> Answer:
    return Answer(record["code"], tuple(record["reasons"] or ()))


def _complete(case: Case) -> Iterator[Case]:
    if case.answers or case.for_all:
        yield case
