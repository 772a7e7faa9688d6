"""Any object of kind Pod gets an answer or field errors."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles.strategies import pending_pods
from tests.support.effort import examples
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.placement.scheduler import Scheduler

_SNAPSHOT = Snapshot.of([node("node-0", images={"pause:latest": 1}), node("node-1", capacity={"nvidia.com/gpu": 8})])


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}, "spec.containers[0].resources.requests[cpu]"),
        ({"containers": [{"image": 5}]}, "spec.containers[0].image"),
        ({"containers": [{"ports": [{"hostPort": "80"}]}]}, "spec.containers[0].ports[0].hostPort"),
        ({"nodeName": 5}, "spec.nodeName"),
        ({"nodeSelector": {"a": True}}, "spec.nodeSelector[a]"),
        ({"tolerations": [{"key": "a"}, {"value": 1}]}, "spec.tolerations[1].value"),
        ({"tolerations": "all"}, "spec.tolerations"),
        ({"affinity": []}, "spec.affinity"),
        ({"schedulingGates": [5]}, "spec.schedulingGates[0]"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": 1}]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
    ],
)
def test_malformed_field_is_reported_with_its_path(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place({"metadata": {"name": "p"}, "spec": spec}, _SNAPSHOT)
    assert [error.path for error in caught.value.errors] == [path]


@pytest.mark.parametrize(
    ("preferred", "path"),
    [
        ({"weight": 0}, "weight"),
        ({"weight": 101}, "weight"),
        ({"weight": True}, "weight"),
        ({"weight": 1, "preference": {"matchExpressions": [{"key": "a", "values": [1]}]}},
         "preference.matchExpressions[0].values[0]"),
        ({"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}},
         "preference.matchExpressions[0].values"),
    ],
)  # fmt: skip
def test_malformed_preference_is_reported_with_its_path(preferred: dict[str, Any], path: str) -> None:
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place({"spec": {"affinity": {"nodeAffinity": terms}}}, _SNAPSHOT)
    where = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
    assert {error.path for error in caught.value.errors} == {f"{where}.{path}"}


def test_errors_are_in_the_order_of_the_plugins() -> None:
    spec = {"containers": [{"restartPolicyRules": "x"}], "affinity": [], "priority": "high", "volumes": "v"}
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place({"metadata": {"name": "p"}, "spec": spec}, _SNAPSHOT)
    paths = ["spec.volumes", "spec.affinity", "spec.priority", "spec.containers[0].restartPolicyRules"]
    assert [error.path for error in caught.value.errors] == paths


def test_every_malformed_field_is_error_paths() -> None:
    pod = {
        "metadata": {"labels": []},
        "spec": {"nodeName": 1, "tolerations": {}, "volumes": {}, "overhead": {"cpu": ""}},
    }
    with pytest.raises(InvalidInput) as caught:
        Scheduler().place(pod, _SNAPSHOT)
    assert sorted(error.path for error in caught.value.errors) == [
        "metadata.labels",
        "spec.nodeName",
        "spec.overhead[cpu]",
        "spec.tolerations",
        "spec.volumes",
    ]


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just(10**30)),
    lambda children: st.one_of(
        st.lists(children, max_size=2),
        st.dictionaries(st.sampled_from(("cpu", "key", "name", "x")), children, max_size=2),
    ),
    max_leaves=4,
)


@st.composite
def _spoiled(draw: Any, pods: st.SearchStrategy[Any]) -> Any:
    """A pod of which one field, anywhere, is anything."""
    pod = draw(pods)
    place, key = pod, draw(st.sampled_from(("metadata", "spec", "status")))
    while isinstance(place.get(key) if isinstance(place, dict) else place[key], dict | list):
        inner = place[key]
        if not inner or draw(st.integers(0, 4)) == 0:
            break
        place, key = inner, draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
    place[key] = draw(_json)
    return pod


def _error_paths(ask: Callable[[], object]) -> list[str]:
    """The fields that `ask` says are malformed."""
    try:
        ask()
    except InvalidInput as error:
        return [each.path for each in error.errors]
    return []


def test_the_fields_of_a_malformed_pod_and_cluster_are_reported() -> None:
    pod = {"metadata": {"labels": 1}, "spec": {"nodeName": "node-0", "tolerations": "all"}}
    document = Document("cluster", {**pod, "apiVersion": "v1", "kind": "Pod"})

    assert _error_paths(lambda: Scheduler().place(pod, _SNAPSHOT)) == ["spec.tolerations", "metadata.labels"]
    assert _error_paths(lambda: snapshot_from_documents([document])) == ["cluster: metadata.labels"]


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=st.one_of(_spoiled(pending_pods()), st.dictionaries(st.sampled_from(("metadata", "spec")), _json)))
def test_any_pod_is_placed_or_its_fields_are_reported(pod: dict[str, Any]) -> None:
    paths = _error_paths(lambda: Scheduler().place(pod, _SNAPSHOT))
    assert all(path.startswith(("metadata", "spec", "status")) for path in paths)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=_spoiled(pending_pods()), kind=st.sampled_from(("Pod", "Node", "Namespace")))
def test_any_cluster_is_read_or_its_fields_are_reported(pod: dict[str, Any], kind: str) -> None:
    spec = pod.get("spec")
    if isinstance(spec, dict):
        spec["nodeName"] = "node-0"
    document = Document("cluster", {**pod, "apiVersion": "v1", "kind": kind})
    assert all(path.startswith("cluster: ") for path in _error_paths(lambda: snapshot_from_documents([document])))
