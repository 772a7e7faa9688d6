"""The identity of a pod at admission; hostile values are left out."""

from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from tests.support.servers.server import review_bytes
from webhook.events.subject import ObjectReference, Subject, subject_of
from webhook.kube.api.admission import parse_review

WEB = ObjectReference("apps/v1", "ReplicaSet", "team-a", "web", "uid-of-web")


def subject(pod: dict[str, Any]) -> Subject:
    return subject_of(parse_review(review_bytes(pod)))


def owned(**changes: Any) -> dict[str, Any]:
    pod = make_pod("").generate_name("web-").owner("ReplicaSet", "web").obj()
    pod["metadata"]["ownerReferences"][0] |= changes
    return pod


def test_pod_of_a_replica_set_has_its_controller_and_no_name() -> None:
    assert subject(owned()) == Subject("team-a", "", "web-", WEB, frozenset())


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
    assert subject(owned(**changes)).controller is None


def test_labels_that_no_pod_can_have_are_left_out() -> None:
    pod = make_pod("p").label("app", "web").label("a,b", "c").label("x", "y)").obj()
    assert subject(pod).labels == frozenset({("app", "web")})


def test_labels_are_bounded() -> None:
    pod = make_pod("p")
    for number in range(100):
        pod = pod.label(f"key-{number}", "value")
    assert len(subject(pod.obj()).labels) == 8


def test_owners_and_labels_are_read_to_a_bound() -> None:
    pod = make_pod("p").label("a,b", "c").obj()
    references = [{"kind": "Node", "name": f"n{number}", "uid": "u"} for number in range(64)]
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pod["metadata"] |= {
        "ownerReferences": [*references, controller],
        "labels": {**{f"not valid {number}": "" for number in range(64)}, "valid": ""},
    }
    assert (subject(pod).controller, subject(pod).labels) == (None, frozenset())


@pytest.mark.parametrize("metadata", [None, [], {"ownerReferences": {}, "labels": [], "name": 1}])
def test_metadata_of_another_type_is_no_error(metadata: Any) -> None:
    pod = make_pod("p").obj() | {"metadata": metadata}
    assert subject(pod) == Subject("team-a", "", "", None, frozenset())


def test_pods_of_one_owner_have_one_identity_and_their_common_labels() -> None:
    first, second = (
        subject(
            make_pod(f"web-{number}").owner("StatefulSet", "web").label("a", "b").label("pod", f"web-{number}").obj()
        )
        for number in (0, 1)
    )
    assert first.identity == second.identity
    assert first.source == second.source == "team-a/uid-of-web"
    common = first.common_with(second)
    assert (common.name, common.labels) == ("", frozenset({("a", "b")}))


def test_pods_without_an_owner_share_the_source_of_their_namespace() -> None:
    first, second = subject(make_pod("a").obj()), subject(make_pod("b").obj())
    assert first.identity != second.identity
    assert first.source == second.source
