"""Admission plugins that are off by default: applied where labels of nodes show that they run, in doubt elsewhere."""

import json
from typing import Any

import pytest

from tests.support.objects.api_server import Object, namespace
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.views import made_anew
from webhook.admission.api_server.optional_plugins import alternatives, in_doubt
from webhook.admission.api_server.plugins import Completed, completed
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput

SELECTOR, OF_OPENSHIFT = "scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"
TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
CARD = "example.com/card"
TOLERATED = {"key": CARD, "operator": "Exists", "effect": "NoSchedule"}
EQUAL = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}


def view(annotations: dict[str, str], *labels: str) -> Snapshot:
    node = make_node_object("n", labels=dict.fromkeys(labels, "x"), taints=[f"{CARD}=yes:NoSchedule"])
    return made_anew([node, namespace("default", **annotations)])


def of(snapshot: Snapshot, **spec: Any) -> Completed:
    return completed(make_pod("p").namespace("default").spec(**spec).obj(), snapshot)


def with_plugin(snapshot: Snapshot, **spec: Any) -> Object:
    """Return the spec of a pod where the one plugin in doubt runs."""
    ((_, other),) = alternatives(of(snapshot, **spec).doubts, snapshot)
    found = of(other, **spec)
    assert found.doubts == ()
    return dict(found.pod["spec"])


def asking(part: str) -> Object:
    return {"containers": [{"name": "c", "image": "i", "resources": {part: {CARD: 1}}}]}


@pytest.mark.parametrize(
    ("annotations", "spec", "plugin", "key", "value"),
    [
        (
            {SELECTOR: "rack=r1, disk = ssd"},
            {"nodeSelector": {"a": "b"}},
            "PodNodeSelector",
            "nodeSelector",
            {"a": "b", "rack": "r1", "disk": "ssd"},
        ),
        ({OF_OPENSHIFT: "rack=r1"}, {}, "OriginPodNodeEnvironment", "nodeSelector", {"rack": "r1"}),
        ({TOLERATIONS: json.dumps([EQUAL])}, {}, "PodTolerationRestriction", "tolerations", [EQUAL]),
        ({}, asking("limits"), "ExtendedResourceToleration", "tolerations", [TOLERATED]),
        ({}, asking("requests"), "ExtendedResourceToleration", "tolerations", [TOLERATED]),
    ],
)
def test_plugin_that_would_change_the_pod_is_in_doubt(
    annotations: dict[str, str], spec: Object, plugin: str, key: str, value: Any
) -> None:
    snapshot = view(annotations)
    found = of(snapshot, **spec)

    assert (found.doubts, found.sources) == ((plugin,), ())
    assert found.pod == make_pod("p").namespace("default").spec(**spec).obj()
    assert with_plugin(snapshot, **spec)[key] == value


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        ({SELECTOR: "rack=r1"}, {"nodeSelector": {"rack": "r1"}}),
        ({SELECTOR: ""}, {}),
        ({ALLOWED: json.dumps([{"operator": "Exists"}])}, {"tolerations": [EQUAL]}),
        ({TOLERATIONS: ""}, {}),
        ({}, {"tolerations": [{"operator": "Exists"}], **asking("limits")}),
    ],
)
def test_plugin_that_changes_nothing_is_not_in_doubt(annotations: dict[str, str], spec: Object) -> None:
    assert of(view(annotations), **spec).doubts == ()


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        ({SELECTOR: "rack=r1"}, {"nodeSelector": {"rack": "r2"}}),
        ({SELECTOR: "rack"}, {}),
        ({ALLOWED: json.dumps([EQUAL])}, {"tolerations": [TOLERATED]}),
        ({ALLOWED: json.dumps([EQUAL])}, {"tolerations": [EQUAL, TOLERATED]}),
        ({ALLOWED: json.dumps([EQUAL]), TOLERATIONS: json.dumps([TOLERATED])}, {"tolerations": [EQUAL]}),
        ({TOLERATIONS: "{"}, {}),
        ({TOLERATIONS: "[1]"}, {}),
    ],
)
def test_pods_that_a_plugin_refuses_are_in_doubt(annotations: dict[str, str], spec: Object) -> None:
    with pytest.raises(InvalidInput):
        with_plugin(view(annotations), **spec)


@pytest.mark.parametrize(
    ("label", "annotations", "spec", "plugin"),
    [
        ("node.openshift.io/os_id", {OF_OPENSHIFT: "rack=r1"}, {}, "OriginPodNodeEnvironment"),
        ("cloud.google.com/gke-nodepool", {}, asking("limits"), "ExtendedResourceToleration"),
        ("eks.amazonaws.com/nodegroup", {}, asking("limits"), "ExtendedResourceToleration"),
        ("kubernetes.azure.com/cluster", {}, asking("limits"), "ExtendedResourceToleration"),
    ],
)
def test_plugin_of_a_platform_is_applied(label: str, annotations: dict[str, str], spec: Object, plugin: str) -> None:
    found = of(view(annotations, label), **spec)

    assert (found.doubts, found.sources) == ((), (plugin,))
    assert found.pod["spec"].get("nodeSelector") == ({"rack": "r1"} if annotations else None)


def test_several_plugins_in_doubt_are_tried_alone_and_together() -> None:
    snapshot = view({SELECTOR: "rack=r1"})
    doubts = of(snapshot, **asking("limits")).doubts

    assert [names for names, _ in alternatives(doubts, snapshot)] == [
        "PodNodeSelector",
        "ExtendedResourceToleration",
        "PodNodeSelector and ExtendedResourceToleration",
    ]
    assert in_doubt("Feasible", "Infeasible", "PodNodeSelector", "default") == (
        "Feasible as written, Infeasible if the API server runs PodNodeSelector "
        f"(annotation {SELECTOR} of the namespace default)"
    )


def test_tolerations_of_resources_are_added_in_order_behind_those_of_the_pod() -> None:
    cards = [f"example.com/{name}" for name in "dbac"]
    node = make_node_object("n", taints=[*(f"{card}=yes:NoSchedule" for card in cards), "example.com/e=yes:NoExecute"])
    ((_, snapshot),) = alternatives(("ExtendedResourceToleration",), made_anew([node, namespace("default")]))
    amounts = dict.fromkeys([*cards, "example.com/e", "example.com/free", "cpu"], 1)
    containers = [{"name": "c", "image": "i", "resources": {"limits": amounts}}]

    found = of(snapshot, containers=containers, tolerations=[EQUAL])

    wanted = [EQUAL, *({**TOLERATED, "key": card} for card in sorted(cards))]
    before = make_pod("p").namespace("default").spec(containers=containers, tolerations=wanted)
    assert found.pod == before.obj()
