"""Node selector terms over the labels of nodes, with the semantics of upstream."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.index.node_selector import (
    PREFERRED,
    any_matches,
    read_node_affinity,
    read_node_selector,
    read_weight,
)
from webhook.kube.reader import Reader
from webhook.kube.selectors import requirement_matches

Object = dict[str, Any]

_NODES = LabelColumns([{"use": "training"}])
_TRAINING = {"key": "use", "operator": "In", "values": ["training"]}
_INFERENCE = {"key": "use", "operator": "In", "values": ["inference"]}
_NODE_1 = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}


def _matches(*terms: Object) -> bool:
    read = read_node_selector(Reader({"selector": {"nodeSelectorTerms": [*terms]}}), "selector")
    assert read is not None
    return bool(any_matches(read, _NODES, {"node-1": 0})[0])


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({"matchExpressions": [_TRAINING]}, True, id="one requirement"),
        pytest.param({"matchExpressions": [_TRAINING, _INFERENCE]}, False, id="requirements are ANDed"),
        pytest.param({"matchFields": [_NODE_1]}, True, id="field"),
        pytest.param({"matchExpressions": [_TRAINING], "matchFields": [_NODE_1]}, True, id="labels and field"),
        pytest.param({"matchExpressions": [_INFERENCE], "matchFields": [_NODE_1]}, False, id="field alone of both"),
        pytest.param(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]},
            False,
            id="a field without name",
        ),
        pytest.param({}, False, id="an empty term matches nothing"),
        pytest.param({"matchExpressions": [], "matchFields": None}, False, id="so does one of empty lists"),
    ],
)
def test_term(term: Object, expected: bool) -> None:
    assert _matches(term) is expected


def test_terms_are_ored_and_none_matches_nothing() -> None:
    assert _matches({}, {"matchExpressions": [_INFERENCE]}, {"matchExpressions": [_TRAINING]})
    assert not _matches()


requirements = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("x", "y")),
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
        "values": st.lists(st.sampled_from(("a", "b", "7", "8", "not a value")), max_size=2),
    }
)
names = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("metadata.name", "metadata.namespace")),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from(("n0", "n1", "n9")), min_size=1, max_size=1),
    }
)
terms = st.lists(
    st.fixed_dictionaries(
        {"matchExpressions": st.lists(requirements, max_size=2), "matchFields": st.lists(names, max_size=1)}
    ),
    max_size=2,
)
node_labels = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("a", "b", "7", "8")))


def _plain(term: Object, labels: dict[str, str], name: str) -> bool:
    """Return whether one node matches a term, requirement by requirement."""
    expressions, fields = term["matchExpressions"], term["matchFields"]
    if any("not a value" in each["values"] for each in expressions) or not (expressions or fields):
        return False
    are_named = all(
        (name if each["key"] == "metadata.name" else None) in each["values"]
        if each["operator"] == "In"
        else (name if each["key"] == "metadata.name" else None) not in each["values"]
        for each in fields
    )
    return are_named and all(requirement_matches(each, labels) for each in expressions)


@given(terms, st.lists(node_labels, max_size=3))
def test_terms_select_nodes_as_one_after_the_other(chosen: list[Object], nodes: list[dict[str, str]]) -> None:
    read = read_node_selector(Reader({"selector": {"nodeSelectorTerms": chosen}}), "selector")
    assert read is not None

    found = any_matches(read, LabelColumns(nodes), {f"n{row}": row for row in range(len(nodes))})

    assert found.tolist() == [
        any(_plain(term, labels, f"n{row}") for term in chosen) for row, labels in enumerate(nodes)
    ]


@pytest.mark.parametrize(("weight", "is_valid"), [(0, False), (1, True), (100, True), (101, False)])
def test_weights_are_from_1_to_100(weight: int, *, is_valid: bool) -> None:
    reader = Reader({"weight": weight})

    assert (read_weight(reader), not reader.errors) == (weight, is_valid)


@pytest.mark.parametrize(
    ("operator", "values", "is_valid"),
    [
        ("Gt", ["7"], True),
        ("Lt", ["-7"], True),
        ("Gt", ["7", "8"], False),
        ("Gt", [], False),
        ("Lt", ["a"], False),
        ("In", ["a", "b"], True),
    ],
)
def test_preferred_term_compares_with_one_integer(operator: str, values: list[str], *, is_valid: bool) -> None:
    preference = {"matchExpressions": [{"key": "x", "operator": operator, "values": values}]}
    reader = Reader({"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": preference}]}})

    read_node_affinity(reader, "nodeAffinity")

    assert bool(reader.errors) is not is_valid
