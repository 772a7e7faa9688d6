"""Snapshots share one table of pod classes: one thread adds classes while others number pods or read."""

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.index.pod_classes import PodClasses
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.selectors import LabelRequirement
from webhook.placement.scheduler import PodSignature, Scheduler

_DB = {"matchLabels": {"app": "db"}}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_APART = {"podAntiAffinity": {_REQUIRED: [{"topologyKey": "zone", "labelSelector": _DB}]}}
_IS_DB = (LabelRequirement("app", "In", ("db",)),)
# `make test` runs a tenth.
_ROUNDS = examples(30_000)


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def _pod(name: str) -> PodBuilder:
    return make_pod().namespace("x").label("app", "db").label("index", name).affinity(_APART)


def _running(names: Iterable[str]) -> list[RunningPod]:
    return [RunningPod.of(_pod(name).obj()) for name in names]


def _info(name: str, pods: Iterable[RunningPod] = ()) -> NodeInfo:
    return NodeInfo.of(Node.of(make_node_object(name, labels={"zone": name})), pods)


def _while_classes_are_added(classes: PodClasses, ask: Callable[[], Any]) -> None:
    """Call `ask` repeatedly while another thread numbers pods of new classes."""
    pods = _running(f"new-{index}" for index in range(_ROUNDS))
    with ThreadPoolExecutor(max_workers=1) as threads:
        adding = threads.submit(lambda: [classes.number(pod) for pod in pods])
        while not adding.done():
            ask()
        numbers = adding.result()
    assert len(set(numbers)) == len(pods)


def test_masks_of_one_table_have_one_length() -> None:
    table = RunningPods.of([_info("a", _running(["a", "b"])), _info("b", _running(["c"]))])

    def ask() -> None:
        assert sorted(table.rows_selected(frozenset(("x",)), _IS_DB, terminating=False)) == [0, 0, 1]
        assert sorted(table.rows_of(np.ones(table.class_count, dtype=np.bool_) & table.selected(["x"], ()))) == [
            0,
            0,
            1,
        ]

    _while_classes_are_added(table.classes, ask)


def test_mask_does_not_grow_with_the_classes() -> None:
    table = RunningPods.of([_info("a", _running(["a", "b"]))])
    later = table.with_rows({0: _info("a", _running(["c"]))})
    assert (len(table.selected(None, ())), len(table.terminating())) == (2, 2)
    assert (len(later.selected(None, ())), len(later.terminating())) == (3, 3)


def test_values_that_come_meanwhile_are_not_looked_up_beyond_the_table() -> None:
    table = RunningPods.of([_info("a", _running(["a"]))])
    wanted = tuple(f"new-{index}" for index in range(_ROUNDS)[:: _ROUNDS // 50])
    selector = (LabelRequirement("index", "In", wanted),)

    def ask() -> None:
        assert len(table.rows_selected(None, selector)) == 0

    _while_classes_are_added(table.classes, ask)


def test_value_added_during_the_lookup_matches_nothing() -> None:
    """Without threads: iterating over the wanted values adds a value, at the worst moment."""
    classes = PodClasses()
    classes.number(_running(["a"])[0])

    def wanted() -> Iterator[str]:
        for name in ("b", "c"):
            classes.number(RunningPod.of(make_pod().namespace(name).obj()))
            yield name

    assert classes.selected(1, wanted(), ()).tolist() == [False]


def test_carriers_are_read_while_others_are_added() -> None:
    """The classes of a term cannot grow while NumPy reads them."""
    table = RunningPods.of([_info("a", _running(str(index) for index in range(500)))])
    (carried,) = table.carried("x", {}, {"app": "db"})

    def ask() -> None:
        rows, times = table.carrier_rows(carried)
        assert (len(rows), int(times.sum())) == (500, 500)

    _while_classes_are_added(table.classes, ask)
    assert len(carried.numbers()) == 500 + _ROUNDS


def test_copy_of_the_classes_does_not_keep_them_from_growing() -> None:
    classes = PodClasses()
    classes.number(_running(["a"])[0])
    (carried,) = classes.carried("x", {}, {"app": "db"})
    before = carried.numbers()
    classes.number(_running(["b"])[0])
    assert (before.tolist(), carried.numbers().tolist()) == ([0], [0, 1])


def test_class_that_could_not_be_added_is_added_the_next_time() -> None:
    classes = PodClasses()
    first, other = _running(["a", "c"])
    failing = RunningPod.of(_pod("b").label("only", "b").obj())
    classes.number(first)
    (carried,) = classes.carried("x", {}, {"app": "db"})
    with memoryview(carried.classes), pytest.raises(BufferError):
        classes.number(failing)
    numbers = [classes.number(pod) for pod in (other, failing, first)]
    assert len(set(numbers)) == 3
    assert set(numbers) <= set(carried.numbers().tolist())
    labelled = classes.selected(len(classes), None, (LabelRequirement("only", "Exists", ()),))
    assert labelled[numbers].tolist() == [False, True, False]


@pytest.mark.slow
def test_threads_give_each_class_its_own_number() -> None:
    classes = PodClasses()
    shared = _running(f"shared-{index}" for index in range(_ROUNDS))
    own = [_running(f"{which}-{index}" for index in range(_ROUNDS)) for which in range(2)]

    def number(which: int) -> list[int]:
        pairs = zip(shared, own[which], strict=True)
        return [classes.number(pod) for pair in pairs for pod in pair]

    with ThreadPoolExecutor(max_workers=2) as threads:
        first, second = threads.map(number, range(2))
    assert first[::2] == second[::2]
    assert len({*first, *second}) == len(classes) == 3 * _ROUNDS
    (carried,) = classes.carried("x", {}, {"app": "db"})
    assert sorted(carried.numbers()) == list(range(3 * _ROUNDS))


def test_pod_is_evaluated_while_new_snapshots_are_made() -> None:
    """The worker thread evaluates pods on the first snapshot while the event loop makes the next ones."""
    framework, snapshot = Scheduler(), Snapshot.of([_info("a", _running(["a"])), _info("b")])
    pods = _running(f"new-{index}" for index in range(300))

    def renew() -> int:
        current = snapshot
        for generation, pod in enumerate(pods):
            current = updated(current, [current.nodes[0].with_pods([pod])], generation)
        return len(current.nodes[0].pods)

    with ThreadPoolExecutor(max_workers=1) as threads:
        renewing = threads.submit(renew)
        verdicts = set()
        index = 0
        while not renewing.done():
            index += 1
            # Each has another term, so that the cache has no answer.
            lacking = {**_DB, "matchExpressions": [{"key": f"k{index}", "operator": "DoesNotExist"}]}
            near = {_REQUIRED: [{"topologyKey": "zone", "labelSelector": lacking}] * 20}
            waiting = make_pod().namespace("x").label("app", "web").affinity({"podAffinity": near})
            verdicts.add(framework.answer(PodSignature.of(waiting.obj()), snapshot, lambda: False).verdict)
        assert renewing.result() == 1 + len(pods)
    assert verdicts == {"Feasible"}
