"""Plugins that are not modelled are named and limit the verdict."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.objects.selecting_objects import Owner, SelectingObject, SelectingObjects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.selectors import LabelRequirement
from webhook.placement.profiles.profile import BINPACK, DEFAULT, Profile
from webhook.placement.scheduler import Placement, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_VOLUMES = ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone")


def _place(pod: PodBuilder, *nodes: NodeInfo) -> Placement:
    return Scheduler().place(pod.obj(), Snapshot.of(nodes or [node("a"), node("b")]))


_SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]


_BARRING = [
    pytest.param(
        make_pod().spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]), _VOLUMES, id="claim"
    ),
    pytest.param(make_pod().spec(volumes=[{"name": "v", "ephemeral": {}}]), _VOLUMES, id="ephemeral volume"),
    pytest.param(make_pod().spec(resourceClaims=[{"name": "gpu"}]), ("DynamicResources",), id="resource claim"),
    pytest.param(
        make_pod().requests(**{"deviceclass.resource.kubernetes.io/gpu": 1}), ("DynamicResources",), id="device class"
    ),
    pytest.param(
        make_pod().spec(hostNetwork=True, hostUsers=False), ("NodeDeclaredFeatures",), id="user namespace on the host"
    ),
    pytest.param(
        make_pod().spec(containers=[{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]),
        ("NodeDeclaredFeatures",),
        id="restart of all containers",
    ),
]


@pytest.mark.parametrize(("pod", "plugins"), _BARRING)
def test_what_may_bar_the_pod_makes_the_verdict_unknown(pod: PodBuilder, plugins: tuple[str, ...]) -> None:
    placement = _place(pod)
    assert (placement.verdict, placement.node, placement.unmodelled) == ("Unknown", None, plugins)
    assert placement.feasible == 2
    assert set(placement.scores) == {"a", "b"}
    assert placement.message == (
        f"2/2 nodes are available. Whether one of them will do depends on {', '.join(plugins)}, which is not modelled."
    )


@pytest.mark.parametrize(("pod", "plugins"), _BARRING)
def test_nodes_ruled_out_anyway_stay_ruled_out(pod: PodBuilder, plugins: tuple[str, ...]) -> None:
    placement = _place(pod, node("a", taints=["use=x:NoSchedule"]))
    assert (placement.verdict, placement.unmodelled) == ("Infeasible", plugins)


@pytest.mark.parametrize(
    ("pod", "plugins"),
    [
        pytest.param(
            make_pod().owner("ReplicationController", "web", api_version="v1"),
            ("PodTopologySpread",),
            id="of a ReplicationController",
        ),
        pytest.param(
            make_pod().owner("StatefulSet", "web", api_version="apps.example.com/v1"), (), id="of a like-named kind"
        ),
        pytest.param(
            make_pod().owner("ReplicaSet", "web").spec(topologySpreadConstraints=_SPREAD), (), id="with its own spread"
        ),
        pytest.param(
            make_pod().owner("ReplicaSet", "web"), ("PodTopologySpread",), id="default spread of a ReplicaSet"
        ),
        pytest.param(make_pod().owner("Job", "train", api_version="batch/v1"), (), id="a Job's pods have none"),
    ],
)
def test_what_only_ranks_nodes_keeps_the_verdict(pod: PodBuilder, plugins: tuple[str, ...]) -> None:
    placement = _place(pod)
    assert (placement.verdict, placement.node, placement.unmodelled) == ("Feasible", "a", plugins)


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}]},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
        {"topologySpreadConstraints": [], "schedulingGates": None, "resourceClaims": []},
    ],
)
def test_what_asks_nothing_is_not_named(spec: dict[str, Any]) -> None:
    assert _place(make_pod().spec(**spec)).unmodelled == ()


def test_labels_do_not_matter_where_no_running_pod_minds_them() -> None:
    framework, snapshot = Scheduler(), Snapshot.of([node("a")])
    first = framework.place(make_pod().label("index", "1").namespace("x").obj(), snapshot)
    assert framework.place(make_pod().label("index", "2").namespace("y").obj(), snapshot) is first


@pytest.mark.parametrize(
    ("pod", "profile", "unmodelled"),
    [
        pytest.param(make_pod(), DEFAULT, ("PodTopologySpread",), id="a bare pod"),
        pytest.param(
            make_pod().owner("Job", "train"),
            DEFAULT,
            ("PodTopologySpread",),
            id="a controller that kube-scheduler does not read",
        ),
        pytest.param(make_pod(), BINPACK, (), id="no default constraints"),
        pytest.param(
            make_pod().spec(topologySpreadConstraints=[{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]),
            DEFAULT,
            (),
            id="constraints of its own",
        ),
    ],
)
def test_services_that_are_refused_may_spread_any_pod(
    pod: PodBuilder, profile: Profile, unmodelled: tuple[str, ...]
) -> None:
    """A plain file has none either, and is taken to be of a cluster without any."""
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a"), make_node_object("b")])
    placement = Scheduler(profile).place(pod.obj(), cache.snapshot())
    assert (placement.verdict, placement.unmodelled) == ("Feasible", unmodelled)
    file = snapshot_from_documents([Document("a", make_node_object("a"))])
    assert Scheduler(profile).place(pod.obj(), file).unmodelled == ()
    cache.mark_known("Service")
    assert Scheduler(profile).place(pod.obj(), cache.snapshot()).unmodelled == ()


def test_controller_that_is_known_leaves_nothing_open() -> None:
    owner = Owner("apps/v1", "ReplicaSet", "web")
    workloads = SelectingObjects.of([SelectingObject("default", owner, (LabelRequirement("app", "In", ("web",)),))])
    snapshot = Snapshot.of([node("a"), node("b")], workloads=workloads)
    pod = make_pod().owner("ReplicaSet", "web")
    assert Scheduler().place(pod.obj(), snapshot).unmodelled == ()
    assert Scheduler().place(pod.namespace("x").obj(), snapshot).unmodelled == ("PodTopologySpread",)


_CHOSEN = {"matchLabels": {"team": "a"}}


def _affinity(kind: str, namespace_selector: Mapping[str, Any], weight: int = 0) -> Mapping[str, Any]:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": namespace_selector,
    }
    if weight:
        return {
            kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}
        }
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _namespace(name: str) -> Mapping[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}}}


def _place_among(pod: PodBuilder, running: PodBuilder, *namespaces: str) -> Placement:
    objects = [
        *(make_node_object(name) for name in ("n", "m")),
        running.namespace("a").node_name("n").obj(),
        *map(_namespace, namespaces),
    ]
    snapshot = snapshot_from_documents([Document("cluster", dict(each)) for each in objects])
    return Scheduler().place(pod.namespace("b").obj(), snapshot)


def _with_plain_term(affinity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, and a term that keeps the pod from those of its own namespace."""
    plain = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "none"}}}
    return {
        kind: {strength: [*terms, plain] for strength, terms in strengths.items()}
        for kind, strengths in affinity.items()
    }


_WEB, _OTHER = make_pod("web").label("app", "web"), make_pod("other").label("app", "other")


@pytest.mark.parametrize(
    ("pod", "running", "verdict"),
    [
        pytest.param(_OTHER.spec(affinity=_affinity("podAntiAffinity", _CHOSEN)), _WEB, "Unknown", id="keeps away"),
        pytest.param(
            _OTHER.spec(affinity=_with_plain_term(_affinity("podAntiAffinity", _CHOSEN))),
            _WEB,
            "Unknown",
            id="keeps away, and from others",
        ),
        pytest.param(_OTHER.spec(affinity=_affinity("podAffinity", _CHOSEN)), _WEB, "Waiting", id="must be beside"),
        pytest.param(_OTHER.spec(affinity=_affinity("podAffinity", _CHOSEN, 5)), _WEB, "Feasible", id="prefers"),
        pytest.param(_WEB, _OTHER.spec(affinity=_affinity("podAntiAffinity", _CHOSEN)), "Unknown", id="is kept away"),
        pytest.param(_WEB, _OTHER.spec(affinity=_affinity("podAffinity", _CHOSEN)), "Feasible", id="is drawn near"),
        pytest.param(_WEB, _OTHER.spec(affinity=_affinity("podAffinity", _CHOSEN, 5)), "Feasible", id="is preferred"),
    ],
)
def test_namespaces_that_are_not_known_are_named_where_terms_choose_by_labels(
    pod: PodBuilder, running: PodBuilder, verdict: str
) -> None:
    placement = _place_among(pod, running)
    assert (placement.verdict, placement.unmodelled) == (verdict, ("InterPodAffinity",))
    assert _place_among(pod, running, "a", "b").unmodelled == ()


@pytest.mark.parametrize(
    ("pod", "running"),
    [
        pytest.param(_OTHER.spec(affinity=_affinity("podAntiAffinity", {})), _WEB, id="all namespaces"),
        pytest.param(_OTHER, _OTHER.spec(affinity=_affinity("podAntiAffinity", _CHOSEN)), id="other labels"),
    ],
)
def test_namespaces_need_not_be_known(pod: PodBuilder, running: PodBuilder) -> None:
    placement = _place_among(pod, running)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", ())


@pytest.mark.parametrize(
    ("pod", "running", "namespaces"),
    [
        pytest.param(_OTHER.spec(affinity=_affinity("podAntiAffinity", _CHOSEN)), _WEB, ["b"], id="keeps away"),
        pytest.param(_WEB, _OTHER.spec(affinity=_affinity("podAntiAffinity", _CHOSEN)), [], id="is kept away"),
    ],
)
def test_a_pod_that_is_gone_leaves_no_doubt_about_namespaces(
    pod: PodBuilder, running: PodBuilder, namespaces: list[str]
) -> None:
    cache, gone = ClusterCache(), running.namespace("a").node_name("n").obj()
    stays = _OTHER.namespace("b").node_name("m").spec(affinity=_with_plain_term({"podAntiAffinity": {_REQUIRED: []}}))
    cache.replace("Node", [make_node_object(name) for name in ("n", "m")])
    cache.replace("Namespace", map(_namespace, namespaces))
    cache.replace("Pod", [gone, stays.obj()])
    scheduler, assumed, asked = Scheduler(), AssumedPods[int](cache.snapshot()), pod.namespace("b").obj()
    assert scheduler.place(asked, assumed.before(0)).verdict == "Unknown"

    cache.apply("Pod", "DELETED", gone)
    assumed.follow(cache.snapshot())

    assert "InterPodAffinity" not in scheduler.place(asked, assumed.before(0)).unmodelled


_MANY = {f"key-{number}": "v" for number in range(129)}


def _large_terms(**term: Any) -> Mapping[str, Any]:
    values = [f"value-{number}" for number in range(2_000)]
    selector = {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": values}]}
    required = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, **term}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _near(namespace: str) -> Mapping[str, Any]:
    selector = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, "namespaces": [namespace]}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


_LARGE_PODS: Mapping[str, Mapping[str, Any]] = {
    "labels": {"labels": _MANY},
    "volumes": {"volumes": [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(257)]},
    "terms": {"affinity": _large_terms()},
    "terms on all namespaces": {"affinity": _large_terms(namespaceSelector={})},
}


@pytest.mark.parametrize(
    ("large", "asker", "wanted"),
    [
        pytest.param("labels", make_pod().namespace("a"), (), id="labels, plain pod"),
        pytest.param("labels", make_pod().namespace("a").affinity(_near("a")), (), id="labels, other namespace"),
        pytest.param("labels", make_pod().namespace("a").affinity(_near("t")), ("InterPodAffinity",), id="labels"),
        pytest.param("volumes", make_pod().namespace("a"), (), id="volumes, plain pod"),
        pytest.param("terms", make_pod().namespace("a"), (), id="terms of their own namespace"),
        pytest.param("terms", make_pod().namespace("t"), ("InterPodAffinity",), id="terms, same namespace"),
        pytest.param("terms on all namespaces", make_pod().namespace("a"), ("InterPodAffinity",), id="all terms"),
    ],
)
def test_a_large_running_pod_makes_unknown_only_what_depends_on_the_part_left_out(
    large: str, asker: PodBuilder, wanted: tuple[str, ...]
) -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a"), make_node_object("b")])
    cache.replace("Namespace", [{"metadata": {"name": name}} for name in "at"])
    running = make_pod("large").namespace("t").node_name("a").obj()
    extra = _LARGE_PODS[large]
    running["metadata"] |= {"labels": extra["labels"]} if "labels" in extra else {}
    running["spec"] |= {key: value for key, value in extra.items() if key != "labels"}
    cache.apply("Pod", "ADDED", running)

    placement = Scheduler().place(asker.obj(), cache.snapshot())

    assert placement.verdict == ("Unknown" if wanted else "Feasible")
    assert {*wanted} <= {*placement.unmodelled}
    cache.apply("Pod", "DELETED", running)
    assert cache.snapshot().left_out.count == 0
