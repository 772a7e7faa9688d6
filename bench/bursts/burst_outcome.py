"""Compares the verdict on each pod of a burst with what became of the pod.

A pod is matched with its admission by the audit log of kube-apiserver: the event of its creation has the stored object
and the decision ID that the webhook gave. So pods that got their name after admission are matched, too.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

Object = dict[str, Any]

_DECISION = "/decision"


class Prediction(NamedTuple):
    """The prediction for one admission, and the nodes of the best score."""

    verdict: str
    node: str | None
    message: str
    best: frozenset[str]

    def comes_true(self, node: str | None) -> bool:
        """Return whether a pod that got `node`, or none, is as predicted."""
        return (self.verdict == "Feasible") == (node is not None)


@dataclass(slots=True)
class Outcome:
    """What became of the pods of one burst."""

    created: int
    seconds: float
    by_verdict: Counter[str] = field(default_factory=Counter)
    """Pods by verdict, Unknown among them; `absent` is a pod without a prediction."""
    true: Counter[str] = field(default_factory=Counter)
    bound: int = 0
    """Bound pods that were predicted to be Feasible."""
    on_best: int = 0
    best_nodes: int = 0
    """The sizes of the best sets of these pods, added up."""
    on_node: int = 0
    bindings: dict[str, list[tuple[str, frozenset[str]]]] = field(default_factory=dict)
    """The node of each of these pods, and its best set, by the template of the pod."""
    predicted: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """The verdicts other than Unknown by the template of the pod, and whether they are Feasible."""
    became: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """The same pods by template, and whether they were bound."""
    failures: list[str] = field(default_factory=list)
    """The pods whose verdict did not come true, or that are not in the best set, a line each."""

    @property
    def true_share(self) -> float:
        """The share of the verdicts other than Unknown that came true."""
        return self.true.total() / max(
            self.by_verdict.total() - self.by_verdict["Unknown"] - self.by_verdict["absent"], 1
        )

    @property
    def true_share_of_equals(self) -> float:
        """The same share, where of pods of one template as many are Feasible as were bound.

        Equal pods that are admitted at the same time can come into the queue in another order, which changes nothing.
        """
        return (self.predicted & self.became).total() / max(self.predicted.total(), 1)

    @property
    def best_share(self) -> float:
        """The share of the bound pods whose node is in the best set of their prediction."""
        return self.on_best / max(self.bound, 1)

    @property
    def best_share_of_equals(self) -> float:
        """The same share, with pods of one template matched with each other's best sets, each once."""
        return sum(map(_matched, self.bindings.values())) / max(self.bound, 1)

    def add(self, name: str, template: str, prediction: Prediction | None, node: str | None) -> None:
        """Count a pod of `template` that got `node`, or none."""
        if prediction is None:
            self.by_verdict["absent"] += 1
            return
        self.by_verdict[prediction.verdict] += 1
        if prediction.verdict == "Unknown":
            return
        self.predicted[template, prediction.verdict == "Feasible"] += 1
        self.became[template, node is not None] += 1
        if not prediction.comes_true(node):
            self.failures.append(f"{name}: on {node}, but {prediction.verdict}: {prediction.message}")
            return
        self.true[prediction.verdict] += 1
        if node is None:
            return
        self.bound += 1
        self.on_node += node == prediction.node
        self.on_best += node in prediction.best
        self.best_nodes += len(prediction.best)
        self.bindings.setdefault(template, []).append((node, prediction.best))
        if node not in prediction.best:
            self.failures.append(f"{name}: on {node}, best were {', '.join(sorted(prediction.best)) or 'unknown'}")


def _matched(bindings: list[tuple[str, frozenset[str]]]) -> int:
    """Return the most nodes that can be matched with a best set each."""
    pod_of: dict[int, int] = {}

    def match(pod: int, tried: set[int]) -> bool:
        for other, (_, best) in enumerate(bindings):
            if other not in tried and bindings[pod][0] in best:
                tried.add(other)
                if other not in pod_of or match(pod_of[other], tried):
                    pod_of[other] = pod
                    return True
        return False

    return sum(match(pod, set()) for pod in range(len(bindings)))


def decisions_by_pod(audit_log: Path, namespace: str) -> dict[str, str]:
    """Return the decision ID of each pod of `namespace` by its name, from the audit log of kube-apiserver."""
    found = {}
    for line in audit_log.read_bytes().splitlines():
        if namespace.encode() not in line:
            continue
        event = orjson.loads(line)
        created = event["objectRef"]["namespace"] == namespace and event["responseStatus"]["code"] == 201
        if not created or event["objectRef"].get("subresource"):
            continue
        for key, value in event.get("annotations", {}).items():
            if key.endswith(_DECISION):
                found[event["responseObject"]["metadata"]["name"]] = value
    return found


def predictions_by_decision(folder: Path) -> dict[str, Prediction]:
    """Return the predictions in the audit logs and the best sets of a replica's `folder`, by decision ID."""
    best: Mapping[str, list[str]] = orjson.loads((folder / "best.json").read_bytes())
    found = {}
    for line in (folder / "audit.jsonl").read_bytes().splitlines():
        record = orjson.loads(line)
        if placement := record["placement"]:
            nodes = frozenset(best.get(record["uid"], ()))
            found[record["decision"]] = Prediction(placement["verdict"], placement["node"], placement["message"], nodes)
    return found
