"""PodTopologySpread: skew, missing labels, who counts, and how nodes rank."""

from typing import Any

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from tests.support.plugins import is_scored, node, pod_info, rejections, scores
from webhook.cluster.objects.selecting_objects import Owner, SelectingObject, SelectingObjects
from webhook.cluster.snapshot import Snapshot
from webhook.kube.selectors import exact_selector
from webhook.placement.plugins.pod_topology_spread import (
    ERR_REASON_CONSTRAINTS_NOT_MATCH,
    ERR_REASON_NODE_LABEL_NOT_MATCH,
    PodTopologySpread,
    _normalized,
    _rounded,
)
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint

_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"
_WEB = {"matchLabels": {"app": "web"}}


def _web(name: str = "web") -> PodBuilder:
    return make_pod(name).label("app", "web").label("version", "1")


def _constraint(key: str = _ZONE, skew: int = 1, *, hard: bool = True, **more: Any) -> dict[str, Any]:
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action, "labelSelector": _WEB, **more}


def _spread(*constraints: dict[str, Any]) -> PodBuilder:
    return _web().spec(topologySpreadConstraints=[*constraints])


# Zone x: a with two web, b with one; zone y: c with one; zone z: d with none, tainted; e is in no zone.
_NODES = (
    node("a", _web(), _web(), labels={_ZONE: "x"}),
    node("b", _web(), labels={_ZONE: "x"}),
    node("c", _web().label("version", "2"), make_pod(), labels={_ZONE: "y"}),
    node("d", labels={_ZONE: "z"}, taints=["use=d:NoSchedule"]),
    node("e"),
)
_C, _L = ERR_REASON_CONSTRAINTS_NOT_MATCH, ERR_REASON_NODE_LABEL_NOT_MATCH
_IN_XY = match_expressions((_ZONE, "In", ["x", "y"]))


@pytest.mark.parametrize(
    ("pod", "rejected"),
    [
        pytest.param(_web(), {}, id="nothing asked"),
        pytest.param(_spread(_constraint(hard=False)), {}, id="nothing forbidden"),
        pytest.param(_spread(_constraint()), {"a": _C, "b": _C, "c": _C, "e": _L}, id="only the emptiest zone"),
        pytest.param(_spread(_constraint(skew=2)), {"a": _C, "b": _C, "e": _L}, id="a skew of two"),
        pytest.param(_spread(_constraint(skew=4)), {"e": _L}, id="a skew of four"),
        pytest.param(_spread(_constraint(_HOST)), {"a": _C, "b": _C, "c": _C}, id="over hosts"),
        pytest.param(
            _spread(_constraint(), _constraint("rack")),
            {"a": _L, "b": _L, "c": _L, "d": _L, "e": _L},
            id="no node with both labels: nothing counts",
        ),
        pytest.param(
            _spread(_constraint()).require_node(_IN_XY), {"a": _C, "b": _C, "e": _L}, id="ruled out do not count"
        ),
        pytest.param(
            _spread(_constraint(nodeAffinityPolicy="Ignore")).require_node(_IN_XY),
            {"a": _C, "b": _C, "c": _C, "e": _L},
            id="unless they are to count",
        ),
        pytest.param(
            _spread(_constraint(nodeTaintsPolicy="Honor")), {"a": _C, "b": _C, "e": _L}, id="tainted do not count"
        ),
        pytest.param(
            _spread(_constraint(nodeTaintsPolicy="Honor")).toleration("use", operator="Exists"),
            {"a": _C, "b": _C, "c": _C, "e": _L},
            id="but tolerated ones do",
        ),
        pytest.param(_spread(_constraint(minDomains=3)), {"a": _C, "b": _C, "c": _C, "e": _L}, id="enough domains"),
        pytest.param(
            _spread(_constraint(minDomains=3)).require_node(_IN_XY),
            {"a": _C, "b": _C, "c": _C, "e": _L},
            id="too few domains: the least is none",
        ),
        pytest.param(_spread(_constraint(matchLabelKeys=["version"])), {"a": _C, "b": _C, "e": _L}, id="its version"),
        pytest.param(
            _spread(_constraint(matchLabelKeys=["x"])), {"a": _C, "b": _C, "c": _C, "e": _L}, id="no such key"
        ),
        pytest.param(_spread(_constraint()).label("app", "db"), {"a": _C, "b": _C, "e": _L}, id="it does not count"),
        pytest.param(_spread(_constraint(labelSelector=None)), {"e": _L}, id="no selector selects no pod"),
        pytest.param(_spread(_constraint(labelSelector={})), {"e": _L}, id="an empty one counts none but itself"),
        pytest.param(_spread(_constraint()).namespace("other"), {"e": _L}, id="of its namespace"),
    ],
)
def test_nodes_where_it_would_be_too_skewed_are_rejected(pod: PodBuilder, rejected: dict[str, str]) -> None:
    found = rejections(PodTopologySpread(), pod, *_NODES)
    assert found == {name: [reason] for name, reason in rejected.items()}


@pytest.mark.parametrize(
    ("keys", "reason"),
    [pytest.param(("rack", "zone"), _C, id="too skewed"), pytest.param(("zone", "rack"), _L, id="without the label")],
)
def test_first_constraint_gives_the_reason(keys: tuple[str, ...], reason: str) -> None:
    nodes = (
        node("a", _web(), _web(), labels={"rack": "1", "zone": "x"}),
        node("b", labels={"rack": "2", "zone": "x"}),
        node("c", labels={"rack": "1"}),
    )
    pod = _spread(*(_constraint(key) for key in keys))
    assert rejections(PodTopologySpread(), pod, *nodes) == {"a": [_C], "c": [reason]}


def test_pods_being_deleted_do_not_count() -> None:
    leaving = PodBuilder(
        {**_web().obj(), "metadata": {**_web().obj()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    nodes = node("a", leaving, leaving, labels={_ZONE: "x"}), node("b", labels={_ZONE: "y"})
    assert rejections(PodTopologySpread(), _spread(_constraint()), *nodes) == {}


def test_emptied_cluster_leaves_only_nodes_without_the_label_out() -> None:
    failures = PodTopologySpread().filter(pod_info(_spread(_constraint())), Snapshot.of(_NODES).without_pods())
    found = np.logical_or.reduce([failure.rejected for failure in failures])
    assert found.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_spread(_constraint(hard=False)), [0, 0, 60, 100, 0], id="zones, and one node without"),
        pytest.param(_spread(_constraint(_HOST, hard=False)), [0, 50, 50, 100, 100], id="hosts"),
        pytest.param(
            _spread(_constraint(_HOST, 2, hard=False), _constraint(hard=False)), [11, 22, 66, 100, 0], id="both"
        ),
        pytest.param(_spread(_constraint(hard=False, labelSelector={})), [100, 100, 100, 100, 0], id="none counts"),
    ],
)
def test_nodes_with_fewer_pods_in_their_domains_score_higher(pod: PodBuilder, expected: list[int]) -> None:
    assert scores(PodTopologySpread(), pod, *_NODES) == expected


@pytest.mark.parametrize(
    ("pod", "scored"),
    [
        pytest.param(_spread(_constraint()), False, id="only hard ones"),
        pytest.param(_spread(_constraint(), _constraint(_HOST, hard=False)), True, id="a soft one"),
    ],
)
def test_pod_with_hard_constraints_alone_is_not_scored(pod: PodBuilder, scored: bool) -> None:
    assert is_scored(PodTopologySpread(), pod) is scored


_OWNER = Owner("apps/v1", "ReplicaSet", "web")
_SERVICE = Owner("v1", "Service", "web")


@pytest.mark.parametrize(
    ("workloads", "expected"),
    [
        pytest.param(
            [SelectingObject("default", _OWNER, exact_selector({"app": "web"}))], [13, 26, 46, 73, 100], id="controller"
        ),
        pytest.param(
            [SelectingObject("default", _SERVICE, exact_selector({"app": "web"}))], [13, 26, 46, 73, 100], id="Service"
        ),
        pytest.param([SelectingObject("default", _SERVICE, exact_selector({"app": "db"}))], None, id="another Service"),
        pytest.param(
            [SelectingObject("other", _SERVICE, exact_selector({"app": "web"}))], None, id="another namespace"
        ),
        pytest.param([SelectingObject("default", _OWNER, None)], None, id="a controller that selects nothing"),
        pytest.param([SelectingObject("default", _OWNER, ())], None, id="a controller that selects everything"),
    ],
)
def test_pod_of_a_service_or_controller_is_spread_by_default(
    workloads: list[SelectingObject], expected: list[int] | None
) -> None:
    snapshot = Snapshot.of(_NODES, workloads=SelectingObjects.of(workloads))
    pod = pod_info(_web().owner("ReplicaSet", "web"))
    found = PodTopologySpread().score(pod, snapshot, np.arange(len(_NODES)))
    assert (None if found is None else found.tolist()) == expected


def test_default_constraints_can_be_others() -> None:
    hard = SpreadConstraint(_ZONE, 1, DO_NOT_SCHEDULE, None)
    snapshot = Snapshot.of(
        _NODES, workloads=SelectingObjects.of([SelectingObject("default", _SERVICE, exact_selector({"app": "web"}))])
    )
    skewed, unlabelled = PodTopologySpread((hard,), system_defaulted=False).filter(pod_info(_web()), snapshot)
    assert skewed.rejected.tolist() == [True, True, True, False, False]
    assert unlabelled.rejected.tolist() == [False, False, False, False, True]


def test_nodes_without_a_label_are_scored_by_the_scheduler_s_own_constraints_alone() -> None:
    """Constraints that an administrator gives ask for all their labels, as a pod's own do."""
    soft = SpreadConstraint(_ZONE, 1, SCHEDULE_ANYWAY, None)
    snapshot = Snapshot.of(
        _NODES, workloads=SelectingObjects.of([SelectingObject("default", _SERVICE, exact_selector({"app": "web"}))])
    )

    def score_of_last(plugin: PodTopologySpread) -> int:
        found = plugin.score(pod_info(_web()), snapshot, np.arange(len(_NODES)))
        assert found is not None
        return int(found[-1])

    assert score_of_last(PodTopologySpread((soft,), system_defaulted=False)) == 0
    assert score_of_last(PodTopologySpread((soft,), system_defaulted=True)) == 100


def test_score_is_rounded_to_the_nearest_integer_and_halves_up() -> None:
    assert _rounded(np.array([0.0, 0.49, 0.5, 1.0, 1.49, 1.5, 2.5, 7.51])).tolist() == [0, 0, 1, 1, 1, 2, 3, 8]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], [], id="no node"),
        pytest.param([0, 0], [100, 100], id="nothing counted"),
        pytest.param([0, 1, 2], [100, 50, 0], id="the largest has nothing"),
        pytest.param([1, 2, 4], [100, 75, 25], id="in proportion to the largest"),
        pytest.param([3], [100], id="one node"),
    ],
)
def test_least_count_scores_most(given: list[int], expected: list[int]) -> None:
    assert _normalized(np.array(given, dtype=np.int64)).tolist() == expected
