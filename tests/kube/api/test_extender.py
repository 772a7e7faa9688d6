"""The JSON of the scheduler extender."""

from typing import Any

import orjson
import pytest

from webhook.documents.field import InvalidInput
from webhook.kube.api.extender import filter_result, host_priority_list, parse_args

_POD = {"metadata": {"name": "p", "namespace": "team-a"}, "spec": {}}
_NODES = [{"metadata": {"name": name, "labels": {"kept": "yes"}}} for name in "ab"]


def test_names_of_nodes_are_read() -> None:
    args = parse_args(orjson.dumps({"Pod": _POD, "Nodes": None, "NodeNames": ["b", "a"]}))

    assert (args.namespace, args.pod_name, args.node_names, args.nodes) == ("team-a", "p", ("b", "a"), None)
    assert args.pod == _POD


def test_whole_nodes_are_read() -> None:
    args = parse_args(orjson.dumps({"Pod": _POD, "Nodes": {"items": _NODES}, "NodeNames": None}))

    assert (args.node_names, args.nodes) == (("a", "b"), tuple(_NODES))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", 'body: Invalid value: "{"; must be JSON: '),
        (b"[]", "body: Invalid value: []; must be the ExtenderArgs of a kube-scheduler"),
        ({"NodeNames": []}, "Pod: Required value: must be the pod that is scheduled"),
        ({"Pod": _POD}, "NodeNames: Required value: must be set; or Nodes, with nodeCacheCapable: false"),
        ({"Pod": [], "NodeNames": []}, "Pod: Invalid value: []; must be an object"),
        ({"Pod": {"metadata": {"name": 1}}, "NodeNames": []}, "Pod.metadata.name: Invalid value: 1; "),
        ({"Pod": _POD, "NodeNames": ["a", 1]}, "NodeNames"),
        ({"Pod": _POD, "Nodes": {"items": [{"metadata": {"name": 1}}]}}, "Nodes.items[0].metadata.name: Invalid"),
    ],
)
def test_error_names_the_field(body: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_args(body if isinstance(body, bytes) else orjson.dumps(body))

    assert str(error.value).startswith(message)


def test_filter_result_has_what_was_sent_without_rejected_nodes() -> None:
    """kube-scheduler expects names for names, and objects for objects."""
    empty = {"FailedNodes": {}, "FailedAndUnresolvableNodes": {"a": "why"}, "Error": ""}
    by_name = parse_args(orjson.dumps({"Pod": _POD, "NodeNames": ["b", "a"]}))
    whole = parse_args(orjson.dumps({"Pod": _POD, "Nodes": {"items": _NODES}}))

    assert orjson.loads(filter_result(by_name, {"a": "why"})) == empty | {"Nodes": None, "NodeNames": ["b"]}
    assert orjson.loads(filter_result(whole, {"a": "why"})) == empty | {
        "Nodes": {"metadata": {}, "items": [_NODES[1]]},
        "NodeNames": None,
    }


def test_priorities_are_a_list() -> None:
    assert orjson.loads(host_priority_list(["a", "b"], [10, 0])) == [
        {"Host": "a", "Score": 10},
        {"Host": "b", "Score": 0},
    ]
