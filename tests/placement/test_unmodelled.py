"""What is not modelled is named, and keeps a verdict from promising too much."""

from typing import Any

import pytest

from tests.builders import PodBuilder, make_pod
from tests.placement.asking import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.placement.framework import Framework, Placement

_VOLUMES = ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone")
_TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}


def _place(pod: PodBuilder, *nodes: NodeInfo) -> Placement:
    return Framework().place(pod.obj(), Snapshot.of(nodes or [node("a"), node("b")]))


def _required(kind: str) -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}


def _preferred(kind: str) -> dict[str, Any]:
    weighted = {"weight": 100, "podAffinityTerm": _TERM}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def _spread(when: str) -> PodBuilder:
    return make_pod().spec(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when}])


_BARRING = [
    pytest.param(make_pod().spec(schedulingGates=[{"name": "wait"}]), ("SchedulingGates",), id="gates"),
    pytest.param(
        make_pod().spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]), _VOLUMES, id="claim"
    ),
    pytest.param(make_pod().spec(volumes=[{"name": "v", "ephemeral": {}}]), _VOLUMES, id="ephemeral volume"),
    pytest.param(
        make_pod().spec(volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "x"}}]),
        ("NodeVolumeLimits", "VolumeRestrictions"),
        id="disk",
    ),
    pytest.param(make_pod().affinity(_required("podAffinity")), ("InterPodAffinity",), id="pod affinity"),
    pytest.param(make_pod().affinity(_required("podAntiAffinity")), ("InterPodAffinity",), id="pod anti-affinity"),
    pytest.param(_spread("DoNotSchedule"), ("PodTopologySpread",), id="spread"),
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
        pytest.param(make_pod().affinity(_preferred("podAffinity")), ("InterPodAffinity",), id="pod affinity"),
        pytest.param(make_pod().affinity(_preferred("podAntiAffinity")), ("InterPodAffinity",), id="pod anti-affinity"),
        pytest.param(_spread("ScheduleAnyway"), ("PodTopologySpread",), id="spread"),
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


@pytest.mark.parametrize(
    ("affinity", "label", "verdict", "plugins"),
    [
        pytest.param(_required("podAntiAffinity"), "web", "Unknown", ("InterPodAffinity",), id="kept away"),
        pytest.param(_required("podAntiAffinity"), "db", "Feasible", (), id="another pod is kept away"),
        pytest.param(_required("podAffinity"), "web", "Feasible", ("InterPodAffinity",), id="attracted"),
        pytest.param(_preferred("podAntiAffinity"), "web", "Feasible", ("InterPodAffinity",), id="repelled"),
    ],
)
def test_running_pods_affinity_concerns_the_pods_that_it_matches(
    affinity: dict[str, Any], label: str, verdict: str, plugins: tuple[str, ...]
) -> None:
    running = make_pod().affinity(affinity)
    placement = _place(make_pod().label("app", label), node("a", running), node("b"))
    assert (placement.verdict, placement.unmodelled) == (verdict, plugins)


def test_running_pods_affinity_reaches_namespaces_by_their_labels() -> None:
    term = {**_TERM, "namespaceSelector": {"matchLabels": {"team": "a"}}}
    running = make_pod().affinity({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    snapshot = Snapshot.of([node("a", running), node("b")], {"x": Namespace({"team": "a"}, {})})
    framework, pod = Framework(), make_pod().label("app", "web")
    assert framework.place(pod.namespace("x").obj(), snapshot).verdict == "Unknown"
    assert framework.place(pod.namespace("y").obj(), snapshot).verdict == "Feasible"


@pytest.mark.parametrize(
    ("image", "plugins"),
    [
        ("docker.io/nginx", ("ImageLocality",)),
        ("docker.io/nginx:latest", ("ImageLocality",)),
        ("docker.io/nginx:1", ()),
    ],
)
def test_image_that_a_node_has_already_ranks_nodes(image: str, plugins: tuple[str, ...]) -> None:
    nodes = node("a", images=["docker.io/nginx:latest"]), node("b")
    placement = _place(make_pod().spec(containers=[{"name": "c", "image": image}]), *nodes)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", plugins)


def test_pods_that_differ_only_in_what_matters_to_running_pods_are_two_questions() -> None:
    framework = Framework()
    snapshot = Snapshot.of([node("a", make_pod().affinity(_required("podAntiAffinity"))), node("b")])
    assert framework.place(make_pod().label("app", "web").obj(), snapshot).verdict == "Unknown"
    assert framework.place(make_pod().label("app", "db").obj(), snapshot).verdict == "Feasible"


def test_labels_do_not_matter_where_no_running_pod_minds_them() -> None:
    framework, snapshot = Framework(), Snapshot.of([node("a")])
    first = framework.place(make_pod().label("index", "1").namespace("x").obj(), snapshot)
    assert framework.place(make_pod().label("index", "2").namespace("y").obj(), snapshot) is first
