"""AdmissionReview v1: what is read of the question, and what the answer may hold."""

from typing import Any

import orjson
import pytest

from tests.support.objects.builders import make_pod
from tests.support.requests import facts_of
from tests.support.servers.server import review
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest, parse_review

POD = make_pod("a").namespace("team-b").obj()


def request_of(pod: object = POD, **fields: Any) -> AdmissionRequest:
    return parse_review(orjson.dumps(review(None, object=pod, **fields)))


def test_everything_of_the_request_is_read() -> None:
    request = request_of(uid="u", name="a", subResource="status", dryRun=True)

    assert facts_of(request) == facts_of(
        AdmissionRequest(
            uid="u",
            operation="CREATE",
            kind="Pod",
            resource="pods",
            subresource="status",
            namespace="team-a",
            name="a",
            user="jane",
            dry_run=True,
            content=POD,
            groups=("system:authenticated",),
        )
    )


def test_the_same_request_for_another_object_keeps_the_rest() -> None:
    request, other = request_of(uid="u", dryRun=True), make_pod("b").annotate("a", "b").obj()
    assert request.identity.name == "a"

    changed = request.with_object(other)

    assert facts_of(changed) == facts_of(request) | {"object": other}
    assert changed.identity == request.identity._replace(name="b")
    assert (changed.has_annotation("a"), request.has_annotation("a")) == (True, False)


@pytest.mark.parametrize(
    ("name", "metadata", "wanted"),
    [
        ("asked", {"name": "own", "generateName": "own-"}, "asked"),
        ("", {"name": "own", "generateName": "own-"}, "own"),
        (None, {"generateName": "own-"}, "own-"),
        (7, {}, ""),
        ("", None, ""),
        ("", "text", ""),
    ],
    ids=["the request's", "the pod's", "a name to come", "none", "null metadata", "metadata that is text"],
)
def test_the_name_is_the_best_there_is(name: object, metadata: object, wanted: str) -> None:
    assert request_of({"metadata": metadata, "spec": {}}, name=name).name == wanted


@pytest.mark.parametrize(("asked", "wanted"), [("team-a", "team-a"), ("", "team-b"), (None, "team-b")])
def test_the_namespace_is_the_requests_or_else_the_pods(asked: str | None, wanted: str) -> None:
    assert request_of(namespace=asked).namespace == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [(True, True), (False, False), (None, False), ("true", False), (1, False)],
    ids=["true", "false", "absent", "text", "a number"],
)
def test_a_dry_run_is_one_only_by_true(said: object, wanted: bool) -> None:
    assert request_of(dryRun=said).dry_run is wanted


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_operations_without_an_object_are_read(operation: str) -> None:
    assert request_of(None, operation=operation).object is None


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"uid": None}, "request.uid: Required value"),
        ({"uid": 7}, "request.uid: Required value"),
        ({"pod": None}, "request.object: Required value: must be set for CREATE"),
        ({"pod": None, "operation": "UPDATE"}, "request.object: Required value: must be set for UPDATE"),
        ({"pod": [1]}, "request.object: Invalid value: [1]; must be an object"),
        ({"pod": "x", "operation": "DELETE"}, 'request.object: Invalid value: "x"; must be an object'),
    ],
    ids=["no uid", "a uid that is a number", "no object", "no object to update", "a list", "text"],
)
def test_a_request_that_cannot_be_read_says_why(fields: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        request_of(**fields)

    assert str(refused.value).startswith(wanted)


@pytest.mark.parametrize("operation", ["CREATE", "DELETE"])
def test_a_namespace_that_cannot_exist_is_refused(operation: str) -> None:
    with pytest.raises(InvalidInput, match=r'^request.namespace: Invalid value: "n{60}"; must be .* at most 63'):
        request_of(make_pod("p").obj(), operation=operation, namespace="n" * 2_000_000)


def test_broken_json_says_where() -> None:
    with pytest.raises(InvalidInput, match=r'^body: Invalid value: "\{.*; must be JSON: .*: line 2 column 1$'):
        parse_review(b'{"kind":\n')
