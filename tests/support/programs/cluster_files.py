"""Files for the commands: pods, and a cluster with one node of each kind."""

from pathlib import Path
from typing import Any

import orjson

from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.documents.documents import parse

TRAINING = make_pod("trainer").namespace("team-a").annotate(TYPE, "training")
PLAIN = make_pod("web")
MISTYPED = make_pod("oops").annotate(TYPE, "trainning")

NODES = [
    make_node_object("free", capacity={"nvidia.com/gpu": 4}),
    make_node_object(
        "train",
        labels={USAGE: "training"},
        taints=[f"{USAGE}=training:NoSchedule"],
        capacity={"nvidia.com/gpu": 8},
    ),
]
LOAD = make_pod("load").node_name("train").gpu(8)

# On this cluster:
FEASIBLE = make_pod("feasible").gpu(4)
WAITING = make_pod("waiting").gpu(8).toleration(operator="Exists")
INFEASIBLE = make_pod("infeasible").gpu(16)


def as_list(*objects: dict[str, Any] | PodBuilder) -> str:
    """Return a v1 List of `objects`, as JSON."""
    items = [each.obj() if isinstance(each, PodBuilder) else each for each in objects]
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}).decode()


def write_cluster(folder: Path, *more: dict[str, Any] | PodBuilder) -> Path:
    """Return the cluster file in `folder`, with `more` objects in it."""
    path = folder / "cluster.json"
    path.write_text(as_list(*NODES, LOAD, *more))
    return path


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects in `text`, YAML or JSON."""
    return [document.content for document in parse(text, "output")]


def lines(text: str) -> list[Any]:
    """Return the JSON values in `text`, one a line."""
    return [orjson.loads(line) for line in text.splitlines()]
