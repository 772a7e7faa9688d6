"""The deadline is checked between the items of every user-controlled list."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.objects.devices import (
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import DeadlineNearError, in_time, never
from webhook.placement.scheduler import Placement, PodSignature, Scheduler

_COUNT = 50
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME = "kubernetes.io/hostname"
_UNKNOWN = Placement.unknown("the deadline was near: not every plugin was asked")


def _ticking(last: int) -> Callable[[], bool]:
    """A deadline that is over after having been asked about so many times."""
    left = iter(range(last))
    return lambda: next(left, None) is None


def _many(make: Callable[[int], Any]) -> list[Any]:
    return [make(index) for index in range(_COUNT)]


def _expressions(key: str, operator: str) -> list[dict[str, Any]]:
    return _many(lambda index: {"key": key, "operator": operator, "values": [f"v{index}"]})


def _pod_term(index: int, **selector: Any) -> dict[str, Any]:
    return {"topologyKey": _HOSTNAME, "labelSelector": selector or {"matchLabels": {"app": str(index)}}}


def _affinity(kind: str, when: str, terms: Sequence[Any]) -> PodBuilder:
    return make_pod().affinity({kind: {when: terms}})


def _spread(what: str) -> PodBuilder:
    constraint = {"maxSkew": 9, "topologyKey": _HOSTNAME, "whenUnsatisfiable": what, "labelSelector": {}}
    return make_pod().spec(topologySpreadConstraints=[constraint] * _COUNT)


def _node_terms(*terms: Any) -> PodBuilder:
    return make_pod().affinity({"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def _volumes(kind: str, field: str) -> PodBuilder:
    return make_pod().spec(volumes=_many(lambda index: {"name": f"v{index}", kind: {field: f"c{index}"}}))


_LONG: dict[str, PodBuilder] = {
    "required pod affinity": _affinity("podAffinity", _REQUIRED, _many(lambda _: _pod_term(0, matchLabels={"a": "b"}))),
    "required pod anti-affinity": _affinity("podAntiAffinity", _REQUIRED, _many(_pod_term)),
    "preferred pod affinity": _affinity(
        "podAffinity", _PREFERRED, _many(lambda index: {"weight": 1, "podAffinityTerm": _pod_term(index)})
    ),
    "one selector": _affinity(
        "podAntiAffinity", _REQUIRED, [_pod_term(0, matchExpressions=_expressions("app", "NotIn"))]
    ),
    "node selector terms": _node_terms(*_many(lambda index: match_expressions(("a", "NotIn", [str(index)])))),
    "one node selector term": _node_terms({"matchExpressions": _expressions("a", "NotIn")}),
    "preferred nodes": _affinity(
        "nodeAffinity",
        _PREFERRED,
        _many(lambda index: {"weight": 1, "preference": match_expressions(("a", "NotIn", [str(index)]))}),
    ),
    "nodeSelector": make_pod().spec(nodeSelector={f"k{index}": "v" for index in range(_COUNT)}),
    "spread that bars": _spread("DoNotSchedule"),
    "spread that ranks": _spread("ScheduleAnyway"),
    "resources": make_pod().requests(**{f"a.b/{index}": "1" for index in range(_COUNT)}),
    "images": make_pod().spec(containers=_many(lambda index: {"name": f"c{index}", "image": f"i{index}"})),
    "host ports": make_pod().spec(
        containers=[{"name": "a", "ports": _many(lambda index: {"hostPort": 1000 + index})}],
    ),
    "claims": _volumes("persistentVolumeClaim", "claimName"),
}


def _storage() -> list[Document]:
    volumes: list[dict[str, Any]] = []
    for index in range(_COUNT):
        claim = {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"c{index}", "namespace": "default"},
            "spec": {"volumeName": f"v{index}"},
            "status": {"phase": "Bound"},
        }
        volumes += [claim, {"kind": "PersistentVolume", "metadata": {"name": f"v{index}"}, "spec": {}}]
    return [Document(each["kind"], {"apiVersion": "v1", **each}) for each in volumes]


def _snapshot() -> Snapshot:
    nodes = Snapshot.of([node(name, make_pod(name), labels={_HOSTNAME: name}) for name in "ab"])
    return snapshot_from_documents(_storage()).with_nodes(nodes.nodes, 1)


@pytest.mark.parametrize("pod", [pytest.param(pod, id=name) for name, pod in _LONG.items()])
def test_deadline_is_asked_about_for_each(pod: PodBuilder) -> None:
    snapshot, question = _snapshot(), PodSignature.of(pod.obj())
    assert Scheduler().answer(question, snapshot).verdict != "Unknown"
    calls = 0

    def counting() -> bool:
        nonlocal calls
        calls += 1
        return False

    Scheduler().answer(question, snapshot, counting)
    assert calls > _COUNT
    assert Scheduler().answer(question, snapshot, _ticking(_COUNT // 2)) == _UNKNOWN


@pytest.mark.slow
@pytest.mark.parametrize("pod", [pytest.param(pod, id=name) for name, pod in _LONG.items()])
def test_answer_goes_out_without_suggestions_that_take_too_long(pod: PodBuilder) -> None:
    """A deadline at any moment gives Unknown or the same answer, apart from suggestions."""
    snapshot, question = _snapshot(), PodSignature.of(pod.gpu(1).obj())
    whole = Scheduler(suggestions=1).answer(question, snapshot)
    for last in range(0, 30 * _COUNT, 11):
        deadline = _ticking(last)
        found = Scheduler(suggestions=1).answer(question, snapshot, deadline)
        assert found == _UNKNOWN or (found.verdict, found.message) == (whole.verdict, whole.message)
        assert found.suggestions in ((), whole.suggestions)
        if not deadline():
            assert found == whole
            break  # it was not over, and no later one would be


def test_deadline_is_asked_about_before_each_selector_of_devices() -> None:
    selectors = _many(lambda index: f'device.driver != "{index}"')
    claim = make_resource_claim("own", exactly("card", 1, *selectors))
    objects = [make_node_object("a"), claim, make_device_class(), make_slice("a", *make_cards(1))]
    question = PodSignature.of(make_pod().spec(resourceClaims=claiming("own")).obj())

    def snapshot() -> Snapshot:
        return snapshot_from_documents(Document("c", each) for each in objects)

    assert Scheduler().answer(question, snapshot()).verdict == "Feasible"
    assert Scheduler().answer(question, snapshot(), _ticking(_COUNT)) == _UNKNOWN


def test_in_time_gives_everything_or_raises() -> None:
    assert list(in_time("abc", never)) == ["a", "b", "c"]
    assert list(in_time("", lambda: True)) == []
    given = in_time("abc", _ticking(2))
    assert (next(given), next(given)) == ("a", "b")
    with pytest.raises(DeadlineNearError):
        next(given)
