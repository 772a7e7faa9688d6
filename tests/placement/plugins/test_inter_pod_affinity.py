"""InterPodAffinity: required and preferred, the pod's own terms and those of running pods."""

from typing import Any

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node, pod_info, rejections, scores
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.kube.names import HOSTNAME_LABEL as HOSTNAME
from webhook.placement.plugins.inter_pod_affinity import (
    ERR_REASON_AFFINITY,
    ERR_REASON_ANTI_AFFINITY,
    ERR_REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
)
from webhook.placement.replicas.emptied_nodes import nodes_without_pods
from webhook.placement.scheduler import PodSignature, Scheduler

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEB = {"matchLabels": {"app": "web"}}
_DB = {"matchLabels": {"app": "db"}}


def _term(selector: dict[str, Any] | None = None, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, **({} if selector is None else {"labelSelector": selector}), **more}


def _near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {_REQUIRED: [*terms]}}


def _apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {_REQUIRED: [*terms]}}


def _rather(kind: str, weight: int, term: dict[str, Any]) -> dict[str, Any]:
    return {kind: {_PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}


def _web(name: str = "web") -> PodBuilder:
    return make_pod(name).label("app", "web")


# Zone x: a with web, b; zone y: c with db; d is in no zone, and has both.
_NODES = (
    node("a", _web(), labels={"zone": "x"}),
    node("b", labels={"zone": "x"}),
    node("c", make_pod().label("app", "db"), labels={"zone": "y"}),
    node("d", _web(), make_pod().label("app", "db")),
)


@pytest.mark.parametrize(
    ("affinity", "rejected"),
    [
        pytest.param(_near(_term(_WEB)), "cd", id="the domain must have one"),
        pytest.param(_near(_term(_WEB, "kubernetes.io/hostname")), "bc", id="the node itself"),
        pytest.param(_near(_term(_WEB), _term(_DB)), "abcd", id="one pod must match all terms"),
        pytest.param(_near(_term(_WEB), _term(_WEB, "kubernetes.io/hostname")), "bcd", id="in all their domains"),
        pytest.param(_near(_term(_WEB, "rack")), "abcd", id="a topology that no node has"),
        pytest.param(_near(_term()), "abcd", id="no selector selects no pod"),
        pytest.param(_near(_term({})), "d", id="an empty one selects all"),
        pytest.param(_near(_term(_WEB, namespaces=["other"])), "abcd", id="other namespaces than its own"),
        pytest.param(_near(_term(_WEB, namespaceSelector={})), "cd", id="all namespaces"),
        pytest.param(_near(_term({"matchLabels": {"app": "me"}})), "d", id="the first of its kind"),
        pytest.param(
            _near(_term({"matchLabels": {"app": "me"}}, namespaces=["other"])), "abcd", id="but not of its namespace"
        ),
    ],
)
def test_nodes_without_the_pods_it_needs_near_are_rejected(affinity: dict[str, Any], rejected: str) -> None:
    pod = make_pod().label("app", "me").affinity(affinity)
    assert rejections(InterPodAffinity(), pod, *_NODES) == {name: [ERR_REASON_AFFINITY] for name in rejected}


@pytest.mark.parametrize(
    ("affinity", "rejected"),
    [
        pytest.param(_apart(_term(_WEB)), "ab", id="the domain must have none"),
        pytest.param(_apart(_term(_WEB, "kubernetes.io/hostname")), "ad", id="the node itself"),
        pytest.param(_apart(_term(_WEB), _term(_DB)), "abc", id="one term is enough"),
        pytest.param(_apart(_term({}, "rack")), "", id="a topology that no node has"),
        pytest.param(_apart(_term()), "", id="no selector selects no pod"),
    ],
)
def test_nodes_with_pods_it_must_not_be_near_are_rejected(affinity: dict[str, Any], rejected: str) -> None:
    found = rejections(InterPodAffinity(), make_pod().affinity(affinity), *_NODES)
    assert found == {name: [ERR_REASON_ANTI_AFFINITY] for name in rejected}


@pytest.mark.parametrize(
    ("term", "namespace", "rejected"),
    [
        pytest.param(_term(_WEB), "default", "ab", id="its domain"),
        pytest.param(_term(_WEB, "kubernetes.io/hostname"), "default", "a", id="its node"),
        pytest.param(_term(_DB), "default", "", id="other pods"),
        pytest.param(_term(_WEB), "other", "", id="another namespace"),
        pytest.param(_term(_WEB, namespaces=["other"]), "other", "ab", id="that it names"),
        pytest.param(_term(_WEB, namespaceSelector={}), "other", "ab", id="or any"),
        pytest.param(_term({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), "default", "ab", id="Exists"),
        pytest.param(_term(_WEB, "rack"), "default", "", id="a topology that no node has"),
    ],
)
def test_running_pods_keep_away_whom_their_terms_select(term: dict[str, Any], namespace: str, rejected: str) -> None:
    nodes = (
        node("a", make_pod().affinity(_apart(term)), labels={"zone": "x"}),
        node("b", labels={"zone": "x"}),
        node("c", labels={"zone": "y"}),
    )
    found = rejections(InterPodAffinity(), _web().namespace(namespace), *nodes)
    assert found == {name: [ERR_REASON_EXISTING_ANTI_AFFINITY] for name in rejected}


def test_only_the_first_of_its_kind_chooses_a_domain() -> None:
    me, other = (make_pod(name).label("app", "me") for name in ("me", "other"))
    nodes = [node("a", other, labels={"zone": "x"}), node("b", labels={"zone": "y"})]
    pod = me.affinity(_near(_term({"matchLabels": {"app": "me"}})))

    assert rejections(InterPodAffinity(), pod, *nodes) == {"b": [ERR_REASON_AFFINITY]}


def test_node_is_rejected_for_the_first_reason_alone() -> None:
    jealous = make_pod().label("app", "db").affinity(_apart(_term(_WEB)))
    nodes = node("a", jealous, labels={"zone": "x"}), node("b", labels={"zone": "y"})
    both = _near(_term(_DB)) | _apart(_term(_DB))
    assert rejections(InterPodAffinity(), _web().affinity(both), *nodes) == {
        "a": [ERR_REASON_ANTI_AFFINITY],
        "b": [ERR_REASON_AFFINITY],
    }


@pytest.mark.parametrize(
    ("namespace_selector", "named", "rejected"),
    [
        pytest.param({"matchLabels": {"team": "a"}}, [], [True, False], id="by label"),
        pytest.param({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, [], [True, False], id="unknown"),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, [], [False, False], id="by a lack"
        ),
        pytest.param({"matchLabels": {"team": "a"}}, ["unknown"], [True, True], id="by label, and by name"),
        pytest.param({"matchLabels": {"team": "b"}}, ["unknown"], [False, True], id="only by name"),
        pytest.param({"matchLabels": {"team": "b"}}, ["y"], [False, False], id="others"),
    ],
)
def test_namespaces_are_chosen_by_their_labels_and_names(
    namespace_selector: dict[str, Any], named: list[str], rejected: list[bool]
) -> None:
    pods = _web().namespace("x"), _web().namespace("unknown")
    snapshot = Snapshot.of(
        [node(name, pod, labels={"zone": name}) for name, pod in zip("ab", pods, strict=True)],
        {"x": Namespace({"team": "a"}, {})},
    )
    pod = make_pod().affinity(_apart(_term(_WEB, namespaceSelector=namespace_selector, namespaces=named)))
    (failure,) = InterPodAffinity().filter(pod_info(pod), snapshot)
    assert failure.rejected.tolist() == rejected


@pytest.mark.parametrize(
    ("key", "rejected"),
    [pytest.param("zone", "c", id="domains of others"), pytest.param("rack", "abc", id="no domains")],
)
def test_on_an_emptied_cluster_only_the_topology_is_required(key: str, rejected: str) -> None:
    nodes = node("a", _web(), labels={"zone": "x"}), node("b", labels={"zone": "y"}), node("c")
    pod = make_pod().affinity(_near(_term(_DB, key)) | _apart(_term(_WEB)))
    failures = InterPodAffinity().filter(pod_info(pod), Snapshot.of(nodes).without_pods())
    found = np.logical_or.reduce([failure.rejected for failure in failures])
    assert found.tolist() == [name in rejected for name in "abc"]


def test_a_required_term_without_a_selector_is_never_satisfied() -> None:
    nodes = Snapshot.of([node("a", _web(), labels={"zone": "x"}), node("b", labels={"zone": "y"})])
    pod = make_pod().affinity(_near(_term(_DB, "zone"), {"topologyKey": "zone"}))
    for snapshot in (nodes, nodes.without_pods()):
        assert InterPodAffinity().filter(pod_info(pod), snapshot)[0].rejected.tolist() == [True, True]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            make_pod().affinity(_rather("podAffinity", 7, _term(_WEB))), [100, 100, 0, 0], id="near, by domain"
        ),
        pytest.param(
            make_pod().affinity(_rather("podAntiAffinity", 7, _term(_WEB))), [0, 0, 100, 100], id="apart, by domain"
        ),
        pytest.param(
            make_pod().affinity(_rather("podAffinity", 30, _term(_WEB)) | _rather("podAntiAffinity", 60, _term(_DB))),
            [100, 100, 0, 66],
            id="weights add up and are cut",
        ),
        pytest.param(
            make_pod().affinity(_rather("podAffinity", 1, _term({}, "kubernetes.io/hostname"))),
            [50, 0, 50, 100],
            id="each pod counts",
        ),
    ],
)
def test_preferred_terms_move_the_score(pod: PodBuilder, expected: list[int]) -> None:
    assert scores(InterPodAffinity(), pod, *_NODES) == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(_near(_term(_WEB)), [100, 100, 0], id="required such a neighbour"),
        pytest.param(_rather("podAffinity", 5, _term(_WEB)), [100, 100, 0], id="prefers it"),
        pytest.param(_rather("podAntiAffinity", 5, _term(_WEB)), [0, 0, 100], id="would rather not"),
        pytest.param(
            _near(_term(_WEB)) | _rather("podAntiAffinity", 1, _term(_WEB)), [0, 0, 0], id="one makes up for the other"
        ),
    ],
)
def test_running_pods_terms_move_the_score(affinity: dict[str, Any], expected: list[int]) -> None:
    nodes = (
        node("a", make_pod().affinity(affinity), labels={"zone": "x"}),
        node("b", labels={"zone": "x"}),
        node("c", labels={"zone": "y"}),
    )
    assert scores(InterPodAffinity(), _web(), *nodes) == expected


@pytest.mark.parametrize(
    ("plugin", "pod"),
    [
        pytest.param(InterPodAffinity(), make_pod(), id="no terms"),
        pytest.param(
            InterPodAffinity(), make_pod().affinity(_rather("podAffinity", 1, _term(_DB))), id="no matching pods"
        ),
        pytest.param(InterPodAffinity(0), _web(), id="what was required weighs nothing"),
    ],
)
def test_where_nothing_counts_the_plugin_is_absent(plugin: InterPodAffinity, pod: PodBuilder) -> None:
    snapshot = Snapshot.of([node("a", make_pod().affinity(_near(_term(_WEB))), labels={"zone": "x"}), node("b")])
    assert plugin.score(pod_info(pod), snapshot, np.arange(2)) is None


def test_preferences_of_running_pods_can_be_ignored() -> None:
    plugin = InterPodAffinity(ignore_preferred_terms_of_existing_pods=True)
    assert plugin.skips(pod_info(_web()))
    assert not plugin.skips(pod_info(_web().affinity(_rather("podAffinity", 1, _term(_DB)))))


CACHE = make_pod("cache-0").label("app", "cache").requests(cpu="1")
NEAR_CACHE = make_pod("app").requests(cpu="8")


def near(pod: PodBuilder, topology: str, app: str = "cache") -> PodBuilder:
    return pod.affinity(_near(_term({"matchLabels": {"app": app}}, topology)))


@pytest.mark.parametrize(
    ("pod", "nodes", "expected"),
    [
        pytest.param(near(NEAR_CACHE, HOSTNAME), [("small", [CACHE], 2), ("big", [], 64)], (), id="itself is gone"),
        pytest.param(near(NEAR_CACHE, "zone"), [("small", [CACHE], 2), ("big", [], 64)], (), id="of another zone"),
        pytest.param(
            near(NEAR_CACHE.label("app", "cache"), "zone"),
            [("small", [CACHE], 2), ("big", [], 64)],
            ("big",),
            id="the first of its kind",
        ),
        pytest.param(near(NEAR_CACHE, HOSTNAME, "nothere"), [("big", [CACHE], 64)], (), id="no such pod"),
        pytest.param(
            near(NEAR_CACHE, "all"),
            [("small", [CACHE], 2), ("big", [make_pod("full").requests(cpu="60")], 64)],
            ("big",),
            id="on another node of the domain",
        ),
    ],
)
def test_nodes_without_pods_need_the_pod_that_attracts(
    pod: PodBuilder, nodes: list[tuple[str, list[PodBuilder], int]], expected: tuple[str, ...]
) -> None:
    snapshot = Snapshot.of(
        [
            node(name, *running, labels={"zone": name, "all": "a"}, capacity={"cpu": str(cpus)})
            for name, running, cpus in nodes
        ]
    )

    assert nodes_without_pods(Scheduler(), PodSignature.of(pod.obj()), snapshot) == expected
