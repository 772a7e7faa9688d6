"""The identity of a pod at admission; hostile values are left out."""

from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from tests.support.servers.server import review_bytes
from webhook.events.subject import ObjectReference, subject_of
from webhook.kube.api.admission import parse_review

WEB = ObjectReference("apps/v1", "ReplicaSet", "team-a", "web", "uid-of-web")


def subject(pod: dict[str, Any]) -> ObjectReference | None:
    return subject_of(parse_review(review_bytes(pod)))


def owned(**changes: Any) -> dict[str, Any]:
    pod = make_pod("").generate_name("web-").owner("ReplicaSet", "web").obj()
    pod["metadata"]["ownerReferences"][0] |= changes
    return pod


def test_pod_of_a_replica_set_has_its_controller() -> None:
    assert subject(owned()) == WEB


def test_named_pod_with_a_controller_has_its_controller() -> None:
    """Such as one of a StatefulSet. A name that no pod can have plays no part."""
    for name in ("web-0", "../x"):
        pod = make_pod(name).owner("StatefulSet", "web").obj()
        assert subject(pod) == WEB._replace(kind="StatefulSet")


def test_pod_without_a_controller_is_the_subject_if_it_has_a_name() -> None:
    assert subject(make_pod("p").obj()) == ObjectReference("v1", "Pod", "team-a", "p", "")
    assert subject(make_pod("").generate_name("p-").obj()) is None


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"controller": False}, id="does not control it"),
        pytest.param({"controller": "yes"}, id="controller is a text"),
        pytest.param({"name": "../../nodes"}, id="a path"),
        pytest.param({"name": "x" * 300}, id="a long name"),
        pytest.param({"uid": ""}, id="no uid"),
        pytest.param({"uid": "x" * 200}, id="a long uid"),
        pytest.param({"kind": "Replica\nSet"}, id="a line break"),
        pytest.param({"apiVersion": ["apps/v1"]}, id="a list"),
    ],
)
def test_owner_that_no_object_can_be_is_none(changes: dict[str, Any]) -> None:
    assert subject(owned(**changes)) is None


def test_owners_are_read_to_a_bound() -> None:
    pod = make_pod("p").obj()
    references = [{"kind": "Node", "name": f"n{number}", "uid": "u"} for number in range(64)]
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [*references, controller]
    assert subject(pod) == ObjectReference("v1", "Pod", "team-a", "p", "")


@pytest.mark.parametrize("metadata", [None, [], {"ownerReferences": {}, "labels": [], "name": "../x"}])
def test_metadata_of_another_type_is_no_error(metadata: Any) -> None:
    pod = make_pod("p").obj() | {"metadata": metadata}
    assert subject(pod) is None
