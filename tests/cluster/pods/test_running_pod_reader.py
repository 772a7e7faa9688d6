"""Pods of one template are read once, with the facts and the errors of each read by itself."""

import copy
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.random.random_json import replace_somewhere
from webhook.cluster.cache.namespace_budget import memory_bytes
from webhook.cluster.index.pod_term import NO_TERMS
from webhook.cluster.left_out import ALL_NAMESPACES, POD_LABELS, POD_PREFERENCES, POD_REPULSION
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.running_pod_reader import RunningPodReader
from webhook.documents.field import InvalidInput
from webhook.kube.pod.stored_pod import StoredPod

_TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone", "matchLabelKeys": ["app"]}
_AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}
_AMOUNTS = {"cpu": "2", "nvidia.com/gpu": "1"}
_RICH = (
    make_pod("p")
    .namespace("x")
    .uid("1")
    .label("app", "web")
    .annotate("maip.mxsf.io/gang", "g")
    .owner("ReplicaSet", "web")
    .requests(cpu="1", memory="1Gi")
    .sidecar("proxy", cpu="100m")
    .host_port(80)
    .overhead(cpu="10m")
    .pod_resources(cpu="3")
    .affinity(_AFFINITY)
    .scheduler("other")
    .node_name("a")
    .spec(
        priority=5,
        volumes=[
            {"name": "kube-api-access-abcde", "projected": {"sources": []}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        ],
    )
    .status(
        phase="Running",
        resources={"requests": _AMOUNTS},
        allocatedResources=_AMOUNTS,
        startTime="2026-01-01T00:00:00Z",
        initContainerStatuses=[{"name": "proxy", "state": {"running": {}}}],
        containerStatuses=[
            {
                "name": "main",
                "resources": {"requests": _AMOUNTS},
                "allocatedResources": _AMOUNTS,
                "state": {"waiting": {"reason": "ImagePullBackOff"}},
            }
        ],
        conditions=[
            {"type": "Ready", "status": "True"},
            {"type": "PodResizePending", "reason": "Infeasible"},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
        ],
    )
    .deletion("2026-01-01T00:01:00Z")
    .obj()
)


def test_errors_are_in_the_order_of_the_fields() -> None:
    spec = {"nodeName": "a", "volumes": "v", "affinity": [], "priority": "high"}
    with pytest.raises(InvalidInput) as caught:
        RunningPod.of({"metadata": {"name": "p"}, "spec": spec})
    assert [error.path for error in caught.value.errors] == ["spec.priority", "spec.affinity", "spec.volumes"]


def _read(read: Any, pod: Mapping[str, Any]) -> RunningPod | list[str]:
    try:
        found: RunningPod = read(pod)
    except InvalidInput as error:
        return [str(each) for each in error.errors]
    return found


@given(st.data())
def test_a_pod_is_read_as_by_itself_after_any_others(data: st.DataObject) -> None:
    reader = RunningPodReader()
    for _ in range(4):
        pod = copy.deepcopy(_RICH)
        for _ in range(data.draw(st.integers(0, 2))):
            replace_somewhere(pod, data)
        event = StoredPod.in_event(orjson.dumps({"type": "ADDED", "object": pod}))
        assert _read(reader.read, pod) == _read(RunningPod.of, pod)
        assert event is None or _read(reader.read, event[1]) == _read(RunningPod.of, pod)


def test_pods_of_one_template_share_their_facts() -> None:
    reader = RunningPodReader()
    first = reader.read(_RICH)
    later: dict[str, Any] = {
        "startTime": "2026-01-02T00:00:00Z",
        "containerStatuses": [*_RICH["status"]["containerStatuses"]],
    }
    later["containerStatuses"][0] = {**later["containerStatuses"][0], "state": {"running": {}}}
    metadata = {**_RICH["metadata"], "name": "q", "uid": "2"}
    second = reader.read({**_RICH, "metadata": metadata, "status": {**_RICH["status"], **later}})
    assert first.requests is second.requests
    assert first.terms is second.terms
    assert first.labels is second.labels
    assert first.controller is second.controller
    assert [each.volumes.pod and each.volumes.pod.name for each in (first, second)] == ["p", "q"]


def test_a_pod_nested_too_deeply_for_a_template_is_read_by_itself() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"inner": deep}
    pod = make_pod("p").node_name("a").requests(cpu="1").spec(affinity={"nodeAffinity": deep}).obj()
    assert RunningPodReader().read(pod) == RunningPod.of(pod)


_LONG = [str(number) for number in range(10_000)]
_LARGE_TERM = {**_TERM, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": _LONG}]}}
_LARGE_AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_LARGE_TERM]}}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod().requests(cpu="1").affinity(_LARGE_AFFINITY), id="terms"),
        pytest.param(make_pod().requests(cpu="1", **{f"a.io/r{each}": "1" for each in _LONG}), id="resources"),
        pytest.param(
            make_pod()
            .requests(cpu="1")
            .spec(volumes=[{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in _LONG]),
            id="volumes",
        ),
        pytest.param(
            make_pod().requests(cpu="1").labels({f"key-{each}": "value" for each in _LONG[:2_000]}), id="labels"
        ),
    ],
)
def test_pod_that_is_too_large_counts_with_what_it_requests(pod: PodBuilder) -> None:
    small = RunningPodReader().read(make_pod().requests(cpu="1").node_name("a").obj())
    large = RunningPodReader().read(pod.node_name("a").obj())
    assert small.rare.left_out == ()
    assert large.requests["cpu"] == small.requests["cpu"]
    assert memory_bytes(large, 10**9) < 64 * 1024


def test_pod_with_many_containers_is_whole() -> None:
    pod = make_pod().requests(cpu="1").label("app", "web")
    for number in range(100):
        pod = pod.sidecar(f"sidecar-{number}", cpu="100m", memory="1Gi")
    assert RunningPodReader().read(pod.obj()) == RunningPod.of(pod.obj())


@pytest.mark.parametrize("controls", [True, False])
@pytest.mark.parametrize(
    "annotations",
    [
        {"maip.mxsf.io/gang-size": "4"},
        {"maip.mxsf.io/gang": "g", "maip.mxsf.io/gang-size": "4"},
        {"maip.mxsf.io/gang": "g"},
        {"other.io/gang-size": "4", "maip.mxsf.io/gang": "g"},
        {},
    ],
)
def test_gang_without_a_name_has_that_of_the_controller(annotations: dict[str, str], *, controls: bool) -> None:
    pod = make_pod("p").namespace("x").node_name("a").owner("Job", "train").obj()
    pod["metadata"]["annotations"] = annotations
    pod["metadata"]["ownerReferences"][0]["controller"] = controls
    event = StoredPod.in_event(orjson.dumps({"type": "ADDED", "object": pod}))
    assert event is not None

    found = RunningPodReader().read(event[1])

    of_controller = (
        ["train"]
        if controls
        and any(each.endswith("gang-size") and each.removesuffix("-size") not in annotations for each in annotations)
        else []
    )
    assert sorted(each.name for each in found.gangs) == sorted(
        [*annotations.get("maip.mxsf.io/gang", ""), *of_controller]
    )
    assert found == RunningPod.of(pod)


@pytest.mark.parametrize(
    ("kind", "fields", "left_out"),
    [
        pytest.param("podAntiAffinity", {}, [(POD_REPULSION, "x")], id="of its namespace"),
        pytest.param(
            "podAntiAffinity",
            {"namespaces": ["b", "a"]},
            [(POD_REPULSION, "a"), (POD_REPULSION, "b")],
            id="of namespaces by name",
        ),
        pytest.param(
            "podAntiAffinity",
            {"namespaces": [f"n{at:02}" for at in range(16)]},
            [(POD_REPULSION, f"n{at:02}") for at in range(16)],
            id="of as many as are kept",
        ),
        pytest.param(
            "podAntiAffinity",
            {"namespaces": [f"n{at:02}" for at in range(17)]},
            [(POD_REPULSION, ALL_NAMESPACES)],
            id="of more",
        ),
        pytest.param(
            "podAntiAffinity",
            {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "b"}}},
            [(POD_REPULSION, ALL_NAMESPACES)],
            id="of namespaces by label",
        ),
        pytest.param("podAffinity", {}, [(POD_PREFERENCES, ALL_NAMESPACES)], id="only attraction"),
    ],
)
def test_pods_that_a_part_of_a_pod_could_exclude_depend_on_it_once_it_is_left_out(
    kind: str, fields: dict[str, Any], left_out: list[tuple[str, str]]
) -> None:
    term = {**_LARGE_TERM, **fields}
    pod = make_pod("p").namespace("x").node_name("a")
    pod = pod.affinity({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})

    found = RunningPodReader().read(pod.obj())

    assert (found.terms, list(found.rare.left_out)) == (NO_TERMS, left_out)


@pytest.mark.parametrize(("count", "is_kept"), [(0, True), (127, True), (128, True), (129, False)])
def test_labels_are_kept_up_to_more_than_any_pod_has(count: int, is_kept: bool) -> None:
    labels = {f"key-{at}": "value" for at in range(count)}
    event = StoredPod.in_event(
        orjson.dumps({"type": "ADDED", "object": make_pod("p").namespace("x").node_name("a").labels(labels).obj()})
    )
    assert event is not None

    found = RunningPodReader().read(event[1])

    assert found.labels == (labels if is_kept else {})
    assert found.rare.left_out == (() if is_kept else ((POD_LABELS, "x"),))
