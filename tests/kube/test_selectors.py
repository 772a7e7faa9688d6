"""Node selectors and label selectors, with the semantics of upstream."""

from typing import Any

import pytest

from webhook.kube.selectors import field_requirement_matches, parse_integer, requirement_matches, term_is_empty

Object = dict[str, Any]

_LABELS = {"use": "training", "size": "5", "empty": ""}
_TRAINING = {"key": "use", "operator": "In", "values": ["training"]}
_INFERENCE = {"key": "use", "operator": "In", "values": ["inference"]}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        pytest.param("use", "In", ["hybrid", "training"], True, id="In"),
        pytest.param("use", "In", ["hybrid"], False, id="In another"),
        pytest.param("absent", "In", ["training"], False, id="In, key absent"),
        pytest.param("empty", "In", [""], True, id="In the empty value"),
        pytest.param("use", "In", [], False, id="In nothing"),
        pytest.param("use", "NotIn", ["training"], False, id="NotIn"),
        pytest.param("use", "NotIn", ["hybrid"], True, id="NotIn another"),
        pytest.param("absent", "NotIn", ["training"], True, id="NotIn matches where the key is absent"),
        pytest.param("absent", "NotIn", [], False, id="NotIn nothing is refused"),
        pytest.param("use", "Exists", [], True, id="Exists"),
        pytest.param("absent", "Exists", [], False, id="Exists, key absent"),
        pytest.param("use", "Exists", ["training"], False, id="Exists with values is refused"),
        pytest.param("use", "DoesNotExist", [], False, id="DoesNotExist"),
        pytest.param("absent", "DoesNotExist", [], True, id="DoesNotExist, key absent"),
        pytest.param("size", "Gt", ["4"], True, id="Gt"),
        pytest.param("size", "Gt", ["5"], False, id="Gt is not at least"),
        pytest.param("size", "Lt", ["6"], True, id="Lt"),
        pytest.param("size", "Lt", ["5"], False, id="Lt is not at most"),
        pytest.param("size", "Gt", ["04"], True, id="Gt reads leading zeros"),
        pytest.param("size", "Gt", ["4.5"], False, id="Gt needs an integer"),
        pytest.param("size", "Gt", ["4", "3"], False, id="Gt needs one value"),
        pytest.param("use", "Gt", ["4"], False, id="Gt needs an integer label"),
        pytest.param("absent", "Lt", ["4"], False, id="Lt, key absent"),
        pytest.param("use", "Equals", ["training"], False, id="unknown operator"),
    ],
)
def test_requirement(key: str, operator: str, values: list[str], expected: bool) -> None:
    assert requirement_matches({"key": key, "operator": operator, "values": values}, _LABELS) is expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ]
    + [
        (text, None)
        for text in ("", "-", " 7", "7_0", "7.0", "0x7", "٧", "9223372036854775808", "-9223372036854775809", "9" * 100)
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        pytest.param("metadata.name", "In", ["node-1"], True, id="In"),
        pytest.param("metadata.name", "In", ["node-2"], False, id="In another"),
        pytest.param("metadata.name", "NotIn", ["node-2"], True, id="NotIn another"),
        pytest.param("metadata.name", "NotIn", ["node-1"], False, id="NotIn"),
        pytest.param("metadata.name", "In", ["node-1", "node-2"], False, id="two values are refused"),
        pytest.param("metadata.name", "NotIn", [], False, id="no value is refused"),
        pytest.param("metadata.name", "Exists", [], False, id="other operators are refused"),
        pytest.param("metadata.uid", "In", ["node-1"], False, id="other fields are empty"),
        pytest.param("metadata.uid", "NotIn", ["node-1"], True, id="other fields are not in anything"),
    ],
)
def test_field_requirement(key: str, operator: str, values: list[str], expected: bool) -> None:
    assert field_requirement_matches({"key": key, "operator": operator, "values": values}, "node-1") is expected


_NODE_1 = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}


def test_term_without_requirements_is_empty() -> None:
    assert term_is_empty({"matchExpressions": []})
    assert not term_is_empty({"matchFields": [_NODE_1]})
