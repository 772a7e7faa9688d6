"""Pods that no plugin can distinguish are equal."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.objects.selecting_objects import Owner, SelectingObject, SelectingObjects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.kube.names import HOSTNAME_LABEL
from webhook.kube.selectors import exact_selector
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE, SpreadConstraint
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.scheduler import Scheduler

_TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
_JEALOUS = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}
_SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]
_SERVICES = SelectingObjects.of(
    [SelectingObject("default", Owner("v1", "Service", "web"), exact_selector({"app": "web"}))]
)
_QUIET = Snapshot.of([node("a", make_pod().label("app", "web")), node("b")])
_MINDING = Snapshot.of([node("a", make_pod().affinity(_JEALOUS)), node("b")])
_REPLICA_SET = Owner("apps/v1", "ReplicaSet", "web")
_OWNED = Snapshot.of(
    [node("a", make_pod().label("app", "web")), node("b")],
    workloads=SelectingObjects.of([SelectingObject("default", _REPLICA_SET, exact_selector({"app": "web"}))]),
)
_SERVED = Snapshot.of([node("a"), node("b")], workloads=_SERVICES)


@pytest.mark.parametrize(
    ("snapshot", "pod", "label", "is_one"),
    [
        pytest.param(_QUIET, make_pod(), "app", True, id="no pod selects by labels"),
        pytest.param(_MINDING, make_pod(), "index", True, id="no pod selects by this label"),
        pytest.param(_MINDING, make_pod(), "app", False, id="a running pod selects by it"),
        pytest.param(_QUIET, make_pod().affinity(_JEALOUS), "app", False, id="the pod itself selects by it"),
        pytest.param(_QUIET, make_pod().affinity(_JEALOUS), "index", True, id="the pod selects by another"),
        pytest.param(_QUIET, make_pod().spec(topologySpreadConstraints=_SPREAD), "app", False, id="a constraint does"),
        pytest.param(_SERVED, make_pod(), "app", False, id="a Service selects by it"),
        pytest.param(_SERVED, make_pod(), "index", True, id="the Service selects by another"),
        pytest.param(
            _OWNED, make_pod().owner("ReplicaSet", "web"), "app", False, id="the pod's controller selects by it"
        ),
        pytest.param(
            _OWNED, make_pod().owner("ReplicaSet", "web"), "index", True, id="the controller selects by another"
        ),
        pytest.param(
            _OWNED, make_pod().owner("ReplicaSet", "db"), "app", True, id="another's controller selects by it"
        ),
    ],
)
def test_pods_that_differ_in_a_label_are_one_question_where_nothing_reads_it(
    snapshot: Snapshot, pod: PodBuilder, label: str, is_one: bool
) -> None:
    framework = Scheduler()
    first = framework.place(pod.label(label, "web").obj(), snapshot)
    assert (framework.place(pod.label(label, "db").obj(), snapshot) is first) is is_one


def test_a_pod_counts_itself_among_those_of_its_controller_where_defaults_bar_nodes() -> None:
    hard = SpreadConstraint(HOSTNAME_LABEL, 1, DO_NOT_SCHEDULE, None)
    framework = Scheduler(replace(DEFAULT, filters=(PodTopologySpread((hard,), system_defaulted=False),)))
    pod = make_pod().label("app", "web").owner("ReplicaSet", "web").obj()
    assert set(framework.place(pod, _OWNED).scores) == {"b"}


@pytest.mark.parametrize(("snapshot", "is_one"), [(_QUIET, True), (_MINDING, False), (_SERVED, False)])
def test_pods_of_two_namespaces_are_one_question_where_nothing_selects_pods(snapshot: Snapshot, is_one: bool) -> None:
    framework, pod = Scheduler(), make_pod()
    first = framework.place(pod.namespace("x").obj(), snapshot)
    assert (framework.place(pod.namespace("y").obj(), snapshot) is first) is is_one


def _term_error(kind: str, term: dict[str, Any], *, weight: Any = None) -> list[str]:
    terms = [term] if weight is None else [{"weight": weight, "podAffinityTerm": term}]
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place(make_pod().affinity({"podAffinity": {kind: terms}}).obj(), _QUIET)
    return [error.path.removeprefix(f"spec.affinity.podAffinity.{kind}[0].") for error in caught.value.errors]


def test_malformed_terms_are_reported_with_their_paths() -> None:
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    assert _term_error(required, {"namespaces": "x", "topologyKey": 1}) == ["namespaces", "topologyKey"]
    assert _term_error(required, {"matchLabelKeys": [1]}) == ["matchLabelKeys[0]"]
    assert _term_error(preferred, {"labelSelector": 1}, weight=0) == ["weight", "podAffinityTerm.labelSelector"]


@pytest.mark.parametrize(
    ("constraint", "path"),
    [({"maxSkew": 0}, "maxSkew"), ({"minDomains": 2**31}, "minDomains"), ({"topologyKey": 1}, "topologyKey")],
)
def test_malformed_constraint_is_reported_with_its_path(constraint: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place(make_pod().spec(topologySpreadConstraints=[_SPREAD[0] | constraint]).obj(), _QUIET)
    assert [error.path for error in caught.value.errors] == [f"spec.topologySpreadConstraints[0].{path}"]
