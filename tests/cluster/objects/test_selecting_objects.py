"""What Services and controllers select."""

from typing import Any

import pytest

from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.selecting_objects import NO_WORKLOADS, Owner, SelectingObject, SelectingObjects
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.selectors import LabelRequirement, LabelSelector

_WEB = {"app": "web"}
_APP = LabelRequirement("app", "In", ("web",))
_FRONT = LabelRequirement("tier", "In", ("front",))
_REPLICA_SET = Owner("apps/v1", "ReplicaSet", "web")


def _object(api_version: str, kind: str, selector: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "x"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"selector": selector}}


@pytest.mark.parametrize(
    ("api_version", "kind", "selector", "expected"),
    [
        pytest.param("v1", "Service", _WEB, (_APP,), id="Service"),
        pytest.param("v1", "Service", None, None, id="Service without a selector"),
        pytest.param("v1", "ReplicationController", _WEB, (_APP,), id="ReplicationController"),
        pytest.param("apps/v1", "ReplicaSet", {"matchLabels": _WEB}, (_APP,), id="ReplicaSet"),
        pytest.param(
            "apps/v1",
            "StatefulSet",
            {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            (LabelRequirement("app", "Exists"),),
            id="StatefulSet",
        ),
    ],
)
def test_selector_is_read_in_the_format_of_its_kind(
    api_version: str, kind: str, selector: Any, expected: LabelSelector | None
) -> None:
    content = _object(api_version, kind, selector)
    assert SelectingObject.of(content) == SelectingObject("x", Owner(api_version, kind, "web"), expected)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("apps/v1", "Deployment"), ("serving.knative.dev/v1", "Service"), ("extensions/v1beta1", "ReplicaSet")],
)
def test_other_kinds_select_no_pods(api_version: str, kind: str) -> None:
    document = Document("cluster", _object(api_version, kind, {"matchLabels": _WEB}))
    assert not snapshot_from_documents([document]).workloads


def test_malformed_selector_is_reported() -> None:
    with pytest.raises(InvalidInput) as caught:
        SelectingObject.of(_object("v1", "Service", {"app": 1}))
    assert [error.path for error in caught.value.errors] == ["spec.selector[app]"]


_SERVICE = SelectingObject("x", Owner("v1", "Service", "web"), (_APP,))
_OWNER = SelectingObject("x", _REPLICA_SET, (_FRONT,))
_JOB = SelectingObject("x", Owner("batch/v1", "Job", "train"), (_FRONT,))


@pytest.mark.parametrize(
    ("workloads", "owner", "expected"),
    [
        pytest.param([], None, (), id="nothing"),
        pytest.param([_SERVICE], None, (_APP,), id="Service"),
        pytest.param([_SERVICE], _REPLICA_SET, (_APP,), id="a controller that is not known"),
        pytest.param([_OWNER], _REPLICA_SET, (_FRONT,), id="controller"),
        pytest.param([_OWNER], None, (), id="another's controller"),
        pytest.param([_JOB], _JOB.owner, (), id="a controller that is never looked up"),
        pytest.param([_SERVICE, _OWNER], _REPLICA_SET, (_APP, _FRONT), id="both"),
        pytest.param([_SERVICE._replace(namespace="y")], None, (), id="another namespace"),
        pytest.param([_SERVICE._replace(selector=(_FRONT,))], None, (), id="another Service"),
        pytest.param([_SERVICE._replace(selector=None)], None, (), id="no selector selects no pod"),
    ],
)
def test_pods_are_selected_by_all_that_select_them(
    workloads: list[SelectingObject], owner: Owner | None, expected: LabelSelector
) -> None:
    assert SelectingObjects.of(workloads).default_selector("x", _WEB, owner) == expected


@pytest.mark.parametrize(
    ("owner", "lacks"),
    [
        pytest.param(None, False, id="no controller"),
        pytest.param(_REPLICA_SET, False, id="known"),
        pytest.param(_REPLICA_SET._replace(name="db"), True, id="not known"),
        pytest.param(Owner("batch/v1", "Job", "train"), False, id="never looked up"),
    ],
)
def test_selector_of_a_controller_may_not_be_known(owner: Owner | None, lacks: bool) -> None:
    assert SelectingObjects.of([_OWNER]).lacks("x", owner) is lacks


def test_no_selector_is_known_if_services_are_not_known() -> None:
    unknown = SelectingObjects.of([_OWNER], knows_services=False)
    assert [unknown.lacks("x", owner) for owner in (None, _REPLICA_SET)] == [True, True]


def test_read_keys_are_those_of_the_services_of_the_namespace_and_of_the_controller() -> None:
    workloads = SelectingObjects.of([_SERVICE, _SERVICE._replace(namespace="y", selector=(_FRONT,)), _OWNER])
    assert workloads.read_keys("x", None) == {"app"}
    assert workloads.read_keys("x", _REPLICA_SET) == {"app", "tier"}
    assert workloads.read_keys("z", _REPLICA_SET) == set()
    assert not NO_WORKLOADS
    assert workloads


def test_namespace_whose_last_object_goes_has_no_entry() -> None:
    before = SelectingObjects.of([_SERVICE, _OWNER, _SERVICE._replace(namespace="y")])

    fewer = before.with_namespaces({"x": [_OWNER]})
    without = fewer.with_namespaces({"x": []})
    nothing = without.with_namespaces({"y": [_SERVICE._replace(namespace="y", selector=None)], "new": []})

    assert before.by_namespace.keys() == fewer.by_namespace.keys() == {"x", "y"}
    assert fewer.by_namespace["x"] == ((), {_REPLICA_SET: (_FRONT,)})
    assert without.by_namespace == {"y": before.by_namespace["y"]}
    # A Service without a selector selects no pod.
    assert (bool(without), bool(nothing)) == (True, False)
