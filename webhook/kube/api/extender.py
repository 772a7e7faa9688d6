"""The scheduler extender's JSON, version 1: arguments and results, as bytes.

Source: k8s.io/kube-scheduler/extender/v1/types.go, and k8s.io/kubernetes/pkg/scheduler/extender.go
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from webhook.documents.field import InvalidInput, invalid, required
from webhook.documents.json_text import read_body
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.reader import Reader

JsonObject = Mapping[str, Any]


class ExtenderArgs(NamedTuple):
    """The pod and its candidate nodes. `nodes` are the raw objects, or None if kube-scheduler sends only names."""

    pod: JsonObject
    namespace: str
    pod_name: str
    node_names: tuple[str, ...]
    nodes: tuple[JsonObject, ...] | None


def parse_args(body: bytes) -> ExtenderArgs:
    """Return the arguments of a call.

    Raises:
        InvalidInput: `body` is not JSON, or lacks the pod or the nodes.
    """
    args = read_body(body)
    if not isinstance(args, dict):
        raise InvalidInput([invalid("body", args, "must be the ExtenderArgs of a kube-scheduler")])
    reader = Reader(args)
    if args.get("Pod") is None:
        raise InvalidInput([required("Pod", "must be the pod that is scheduled")])
    pod = reader.object("Pod")
    metadata = pod.object("metadata")
    names, nodes = _nodes(reader)
    namespace = metadata.text("namespace") or DEFAULT_NAMESPACE
    found = ExtenderArgs(pod.raw, namespace, metadata.text("name"), names, nodes)
    reader.finish()
    return found


def _nodes(args: Reader) -> tuple[tuple[str, ...], tuple[JsonObject, ...] | None]:
    names = args.raw.get("NodeNames")
    if names is not None:
        # Thousands of names are usual, and to read them one by one takes longer than all else.
        is_plain = type(names) is list and {*map(type, names)} <= {str}
        return tuple(names) if is_plain else args.texts("NodeNames"), None
    if args.raw.get("Nodes") is None:
        raise InvalidInput([required("NodeNames", "must be set; or Nodes, with nodeCacheCapable: false")])
    nodes = args.object("Nodes").objects("items")
    return tuple(node.object("metadata").text("name") for node in nodes), tuple(node.raw for node in nodes)


def filter_result(args: ExtenderArgs, rejected: Mapping[str, str]) -> bytes:
    """Return the nodes of `args` that are not `rejected`. No pods are preempted on rejected ones."""
    names: Sequence[str] | None = [name for name in args.node_names if name not in rejected]
    nodes = None
    if args.nodes is not None:
        pairs = zip(args.node_names, args.nodes, strict=True)
        nodes = {"metadata": {}, "items": [node for name, node in pairs if name not in rejected]}
        names = None
    return orjson.dumps(
        {
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": dict(rejected),
            "Error": "",
        }
    )


def host_priority_list(node_names: Iterable[str], priorities: Iterable[int]) -> bytes:
    """Return the HostPriorityList of nodes with their priorities, 0 to 10; `priorities` may be longer."""
    pairs = zip(node_names, priorities, strict=False)
    return orjson.dumps([{"Host": host, "Score": score} for host, score in pairs])
