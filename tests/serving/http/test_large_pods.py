"""Large pods: the work for them grows linearly with their size and has stated bounds.

`make abuse` measures the time that pods of the largest size take.
"""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.golden.case import cluster_of
from tests.support.admission import PRODUCT, TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.servers.server import World, review_bytes
from tests.support.work import calls_of

_LARGEST_BYTES = 3 * 1024 * 1024
# Twice the size is twice the work, plus a constant cost for each pod.
_GROWTH = 2.2


def _world() -> World:
    return World(cluster=cluster_of({"cluster": [make_node_object("node-1", labels={USAGE: "training"})]}))


def _training() -> PodBuilder:
    return make_pod("trainer").annotate(TYPE, "training")


def _filled(make: Callable[[int], Any], most_bytes: int) -> list[Any]:
    """Return as many items as have room in `most_bytes`."""
    size_bytes = len(orjson.dumps(make(10_000))) + 1
    return [make(index) for index in range(most_bytes // size_bytes)]


def _container(index: int) -> dict[str, Any]:
    return {"resources": {"requests": {f"example.com/r{index}": "1"}}}


_MEMORY = {"key": "nvidia.com/gpu.memory"}
_USAGE = {"key": USAGE, "operator": "NotIn"}
_LONG: dict[str, Callable[[int], PodBuilder]] = {
    "containers, each with a resource of its own": lambda size: _training().spec(containers=_filled(_container, size)),
    "init containers": lambda size: _training().spec(initContainers=_filled(_container, size)),
    "sidecars": lambda size: _training().spec(
        initContainers=_filled(lambda index: _container(index) | {"restartPolicy": "Always"}, size)
    ),
    "tolerations": lambda size: _training().spec(tolerations=_filled(lambda index: {"key": f"k{index}"}, size)),
    "tolerations, and products": lambda size: (
        _training()
        .annotate(PRODUCT, ",".join(f"p{index}" for index in range(100)))
        .spec(tolerations=_filled(lambda index: {"key": f"k{index}"}, size))
    ),
    "requirements on our label": lambda size: _training().require_node(
        {"matchExpressions": _filled(lambda index: _USAGE | {"values": [f"v{index}"]}, size)}
    ),
    "requirements on a label of ours that is a number": lambda size: (
        _training()
        .annotate("maip.mxsf.io/gpu-memory", "80Gi")
        .require_node(
            {
                "matchExpressions": [
                    _MEMORY | {"operator": "In", "values": [str(each) for each in range(size // 32)]},
                    *_filled(lambda index: _MEMORY | {"operator": "Lt", "values": [str(index)]}, size // 2),
                ]
            }
        )
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in _LONG.items()])
def test_work_grows_as_the_pod_does(make: Callable[[int], PodBuilder]) -> None:
    def calls(size_bytes: int) -> int:
        admissions, body = _world().admissions(), review_bytes(make(size_bytes).obj())
        answers = []
        count = calls_of(lambda: answers.append(admissions.answer(body, 1000.0, None)))
        assert "patch" in orjson.loads(answers[0].body)["response"]
        return count

    # Larger than what the scorer reads.
    assert calls(_LARGEST_BYTES * 2 // 11) < _GROWTH * calls(_LARGEST_BYTES // 11)


def test_scorer_is_not_asked_about_what_would_take_too_long_to_read() -> None:
    def asked(count: int) -> tuple[str, str, str]:
        world = _world()
        pod = _training().spec(tolerations=[{"key": f"key-{index}", "value": "x" * 20} for index in range(count)])
        world.admissions().answer(review_bytes(pod.obj()), 1000.0, None)
        (record,) = world.records
        assert record.placement is not None
        return record.outcome, record.placement.verdict, record.placement.message

    assert asked(10)[:2] == ("Patched", "Feasible")
    outcome, verdict, message = asked(10_000)
    assert (outcome, verdict) == ("Patched", "Unknown")
    assert message == (
        "the scorer cannot read the pod: spec: Forbidden: more than 256 KiB, beside environment, commands and mounts"
    )


def test_environment_and_annotations_do_not_make_a_pod_too_long_to_read() -> None:
    world = _world()
    container = {"name": "main", "env": [{"name": f"V{index}", "value": "x" * 100} for index in range(10_000)]}
    pod = _training().annotate("notes", "x" * 250_000).spec(containers=[container])
    world.admissions().answer(review_bytes(pod.obj()), 1000.0, None)
    placement = world.records[-1].placement
    assert placement is not None
    assert placement.verdict == "Feasible"


@pytest.mark.slow
def test_pod_that_could_not_be_stored_with_the_patch_is_refused() -> None:
    """The requirement goes into each term: were it left out of one, the pod would pass the policy by."""
    terms = _filled(lambda _: match_expressions(("a", "Exists", [])), _LARGEST_BYTES // 2)
    answer = _world().admissions().answer(review_bytes(_training().require_node(*terms).obj()), 1000.0, None)
    response = orjson.loads(answer.body)["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 422)
    assert response["status"]["message"] == (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Forbidden: "
        f"too many terms ({len(terms)}) to add to each that the policy does: {USAGE} in [training, hybrid]"
    )


def test_no_more_errors_are_reported_than_the_limit() -> None:
    pod = _training().spec(tolerations=[1] * 100_000).obj()
    answer = _world().admissions().answer(review_bytes(pod), 1000.0, None)
    assert answer.status == 400
    assert len(answer.body.splitlines()) == 100
