"""Node selector terms over the labels of nodes, with the semantics of upstream."""

from typing import Any

import pytest

from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.index.node_selector import any_matches, read_node_selector
from webhook.kube.reader import Reader

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
