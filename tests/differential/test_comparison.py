"""A wrong forecast is noticed, what is left open is not held against it, and a disagreement is made small."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.controlplane.client import ApiError
from tests.differential.comparison import disagreements
from tests.differential.kube_scheduler import Answer
from tests.differential.minimising import minimise
from tests.differential.profiles import PROFILES
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.worlds import World
from tests.differential.trial import report, tried
from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.framework.result import Placement

_TOTALS = {"a": {"total": 300, "TaintToleration": 300}, "b": {"total": 150, "TaintToleration": 150}}
_FEASIBLE = Placement("Feasible", "a", 3, 2, "2/3 nodes are available.", _TOTALS)
_BOUND = Answer("a", "", {"a": {"TaintToleration": 300}, "b": {"TaintToleration": 150}})
_WAITING = Placement("Waiting", None, 3, 0, "0/3 nodes are available: 3 Insufficient cpu.")
_UNSCHEDULABLE = Answer(None, "0/3 nodes are available: 3 Insufficient cpu.", {})
_OPEN = replace(_FEASIBLE, verdict="Unknown", node=None, unmodelled=("DynamicResources",))


def _zeros(plugin: str, score: int = 0) -> Answer:
    return replace(_BOUND, scores={node: {**each, plugin: score} for node, each in _BOUND.scores.items()})


@pytest.mark.parametrize(
    ("placement", "answer", "kinds"),
    [
        pytest.param(_FEASIBLE, _BOUND, [], id="as predicted"),
        pytest.param(_WAITING, _UNSCHEDULABLE, [], id="as predicted, no node"),
        pytest.param(_FEASIBLE, _UNSCHEDULABLE, ["verdict", "message"], id="verdict"),
        pytest.param(_WAITING, _BOUND, ["verdict", "feasible nodes"], id="verdict, the other way"),
        pytest.param(_WAITING, replace(_UNSCHEDULABLE, message="0/3: no."), ["message"], id="message"),
        pytest.param(_FEASIBLE, replace(_BOUND, scores={}), ["feasible nodes"], id="a single node"),
        pytest.param(_FEASIBLE, replace(_BOUND, node="b"), ["choice"], id="not the best node"),
        pytest.param(_FEASIBLE, _zeros("TaintToleration", 7), ["scores of TaintToleration"], id="scores"),
        pytest.param(_FEASIBLE, _zeros("ImageLocality"), ["scores of ImageLocality"], id="a plugin that is there"),
        pytest.param(_FEASIBLE, _zeros("Elsewhere"), [], id="a silent plugin that is not"),
        pytest.param(_FEASIBLE, _zeros("Elsewhere", 1), ["scores of Elsewhere"], id="one that says something"),
        pytest.param(_OPEN, _UNSCHEDULABLE, [], id="left open"),
        pytest.param(_OPEN, Answer("b", "", {}), [], id="left open, one of them"),
        pytest.param(_OPEN, Answer("c", "", {}), ["feasible nodes"], id="left open, none of them"),
    ],
)
def test_differences_are_named(placement: Placement, answer: Answer, kinds: list[str]) -> None:
    assert [each.kind for each in disagreements(placement, answer, PROFILES["default-scheduler"])] == kinds


def test_minimising_removes_what_a_disagreement_does_not_need() -> None:
    nodes = tuple({"metadata": {"name": f"n{number}", "labels": {"a": "b"}}, "spec": {}} for number in range(9))
    pods = tuple({"metadata": {"name": f"p{n}", "namespace": "x"}, "spec": {"nodeName": f"n{n}"}} for n in range(9))
    pod = {"metadata": {"name": "p", "namespace": "x"}, "spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}

    def needs_two_nodes_and_a_toleration(world: World, asked: dict[str, object]) -> bool:
        names = {node["metadata"]["name"] for node in world.nodes}
        return {"n3", "n7"} <= names and len(world.pods) > 0 and "'b'" in str(asked)

    world, plain = minimise(World((), (), nodes, pods), pod, needs_two_nodes_and_a_toleration)

    assert [node["metadata"] for node in world.nodes] == [{"name": "n3"}, {"name": "n7"}]
    assert len(world.pods) == 1
    assert plain["spec"] == {"tolerations": [{"key": "b"}]}


@dataclass
class _FakeScheduler:
    """Bind no pod, and raise `fault` if there are fewer nodes than `fewest`."""

    world: World
    fewest: int
    fault: Exception

    def establish(self, world: World) -> None:
        self.world = world

    def snapshot(self) -> Snapshot:
        return snapshot_from_documents(Document("world", each) for each in self.world.objects)

    def ask(self, pod: Object) -> tuple[Answer, Object]:
        if len(self.world.nodes) < self.fewest:
            raise self.fault
        return Answer(None, "0/3 nodes are available: 3 too dark.", {}), pod


_THREE_NODES = World((), (), tuple(make_node_object(name) for name in "abc"), ())
_POD = make_pod("p").namespace("x").toleration("a", operator="Exists").obj()
_FAULTS = (TimeoutError("an answer: not within 30 s"), ApiError(409, {"reason": "Conflict", "message": "again"}))
_FOUND = "seed-1-p: Disagreement(kind='verdict', predicted=('Feasible',"


@pytest.mark.parametrize("fault", _FAULTS, ids=repr)
@pytest.mark.parametrize("fewest", [2, 3])
def test_missing_answer_does_not_shrink_a_disagreement(tmp_path: Path, fewest: int, fault: Exception) -> None:
    scheduler = _FakeScheduler(_THREE_NODES, fewest, fault)

    text = report(scheduler, _THREE_NODES, tried(scheduler, _POD), "seed-1-p", tmp_path)

    assert text.startswith(_FOUND)
    assert text.endswith(f"minimised: {tmp_path / 'seed-1-p.yaml'}")
    kept = (tmp_path / "seed-1-p.yaml").read_text()
    assert kept.count("kind: Node") == fewest
    assert "tolerations" not in kept


@pytest.mark.parametrize("fault", _FAULTS, ids=repr)
def test_disagreement_is_reported_though_nothing_is_answered_any_more(tmp_path: Path, fault: Exception) -> None:
    scheduler = _FakeScheduler(_THREE_NODES, 0, fault)
    trial = tried(scheduler, _POD)
    scheduler.fewest = 4

    text = report(scheduler, _THREE_NODES, trial, "seed-1-p", tmp_path)

    assert text.startswith(_FOUND)
    assert text.endswith(f"then no answer: {fault}\nminimised: not seen again")
    assert list(tmp_path.iterdir()) == []
