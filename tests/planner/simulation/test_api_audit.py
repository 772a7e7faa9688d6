"""Pods of an API server's audit log: which events create and end them, and what is read of each."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from placement_planner.simulation.api_audit import read_api_audit_log
from placement_planner.simulation.arrival import Arrival
from webhook.documents.field import InvalidInput

Object = dict[str, Any]
Change = Callable[[Object], object]
POD: Object = {
    "metadata": {"name": "a", "labels": {"app": "a"}, "finalizers": ["x"]},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
}


def event(verb: str = "create", name: str = "a", at: int = 10, change: Change = lambda _: None) -> bytes:
    content = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": "/api/v1/namespaces/team-a/pods",
        "objectRef": {"resource": "pods", "namespace": "team-a", "name": name},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": f"2026-03-01T00:00:{at:02}Z",
        "requestObject": orjson.loads(orjson.dumps(POD)) if verb == "create" else None,
    }
    change(content)
    return orjson.dumps(content) + b"\n"


def read(*lines: bytes) -> list[Arrival]:
    return read_api_audit_log(b"".join(lines), "t", lambda name: name == "nvidia.com/gpu")


def set_code(code: object) -> Change:
    return lambda content: content.update(responseStatus={"code": code})


NO_PODS: list[Change] = [
    *map(set_code, (199, 300, 403, None, "200")),
    lambda content: content.pop("responseStatus"),
    lambda content: content.update(verb="update"),
    lambda content: content.update(stage="ResponseStarted"),
    lambda content: content.update(requestURI="/x?dryRun=All"),
    lambda content: content["objectRef"].update(resource="nodes"),
    lambda content: content["objectRef"].update(subresource="eviction"),
    lambda content: content.pop("objectRef"),
    lambda content: content["requestObject"]["spec"].update(nodeName="n"),
]


@pytest.mark.parametrize("change", NO_PODS)
def test_an_event_that_stored_no_waiting_pod_is_no_arrival(change: Change) -> None:
    assert [each.at_seconds for each in read(event(at=10, change=change), event(name="b", at=12))] == [0]
    with pytest.raises(InvalidInput, match=r'^t: Invalid value: "no pod"; must have the creation of a pod'):
        read(event(change=change))


@pytest.mark.parametrize("code", [200, 201, 299])
def test_every_success_counts(code: int) -> None:
    assert len(read(event(change=set_code(code)))) == 1


@pytest.mark.parametrize("change", NO_PODS[:-1])
def test_an_event_that_deleted_no_pod_ends_none(change: Change) -> None:
    (found,) = read(event(at=10), event("delete", at=20, change=change))

    assert found.duration_seconds is None


@pytest.mark.parametrize(
    ("events", "durations"),
    [
        ([("create", "a", 10), ("delete", "a", 15)], [5]),
        ([("create", "a", 10), ("delete", "b", 15)], [None]),
        ([("create", "a", 10), ("delete", "a", 9)], [0]),
        ([("create", "a", 10), ("delete", "a", 15), ("delete", "a", 20)], [5]),
        ([("create", "a", 10), ("delete", "a", 15), ("create", "a", 20), ("delete", "a", 22)], [5, 2]),
        ([("create", "a", 10), ("create", "b", 11), ("delete", "b", 13), ("delete", "a", 14)], [4, 2]),
        ([("delete", "a", 10), ("create", "a", 11)], [None]),
    ],
)
def test_a_pod_runs_until_its_first_deletion(events: list[tuple[str, str, int]], durations: list[float | None]) -> None:
    assert [each.duration_seconds for each in read(*(event(*each) for each in events))] == durations


def test_pods_of_equal_names_in_two_namespaces_are_two() -> None:
    other: Change = lambda content: content["objectRef"].update(namespace="b")  # noqa: E731
    found = read(event(), event(change=other), event("delete", at=20, change=other))

    assert [(each.pod["metadata"]["namespace"], each.duration_seconds) for each in found] == [
        ("team-a", None),
        ("b", 10),
    ]


@pytest.mark.parametrize(
    ("change", "deleted"),
    [
        # The name of the response, then that of the request, then that of the object.
        (lambda content: content.update(responseObject={"metadata": {"name": "r"}}), "r"),
        (lambda content: content["objectRef"].update(name="o"), "o"),
        (lambda content: content["objectRef"].pop("name"), "a"),
        (
            lambda content: (
                content["objectRef"].pop("name"),
                content["requestObject"].update(metadata={"generateName": "a"}),
            ),
            "",
        ),
    ],
)
def test_the_name_of_a_created_pod_has_its_sources_in_order(change: Change, deleted: str) -> None:
    for name in ("r", "o", "a"):
        (found,) = read(event(change=change), event("delete", name, 20))
        assert (found.duration_seconds is not None) is (name == deleted)


def test_only_what_placement_reads_is_kept_and_equal_pods_are_one_object() -> None:
    (first, second, third) = read(
        event(), event(name="b", at=11), event(change=lambda content: content["objectRef"].pop("namespace"))
    )

    kept = {"name": "trace", "labels": {"app": "a"}, "namespace": "team-a"}
    assert first.pod == {"metadata": kept, "spec": POD["spec"]}
    assert first.pod is second.pod
    assert third.pod["metadata"]["namespace"] == "default"
    assert (first.cards, first.place, second.place) == (2, "t, line 1: requestObject", "t, line 2: requestObject")


@pytest.mark.parametrize(
    ("owners", "is_restarted"),
    [
        (None, False),
        ([{"kind": "Job", "name": "x", "controller": True}], True),
        ([{"kind": "Job", "name": "x"}], False),
        ([{"kind": "A", "name": "x"}, {"kind": "Job", "name": "x", "controller": True}], True),
        ([{"kind": "Job", "name": "x", "controller": "true"}], False),
    ],
)
def test_a_controller_creates_its_pods_again(owners: Any, *, is_restarted: bool) -> None:
    change: Change = lambda content: content["requestObject"]["metadata"].update(ownerReferences=owners)  # noqa: E731

    assert [each.is_restarted for each in read(event(change=change))] == [is_restarted]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b"{", "t, line 2: Invalid value"),
        (b"[]", "t, line 2: Invalid value"),
        (b'{"kind": "Pod"}', "t, line 2: Invalid value"),
        (event(change=lambda content: content.update(requestReceivedTimestamp="x")), "t, line 2: requestReceivedTime"),
        (event(change=lambda content: content.pop("requestObject")), "t, line 2: requestObject: Required value"),
        (event(change=lambda content: content["requestObject"].pop("spec")), "t, line 2: requestObject: Required"),
        (event(change=lambda content: content["requestObject"].update(metadata=[1])), "t, line 2: requestObject: Req"),
        (event(change=lambda content: content["requestObject"]["spec"].update(containers=1)), "t, line 2: requestOb"),
    ],
)
def test_an_error_names_the_line(line: bytes, place: str) -> None:
    """A blank line is passed over, and counts."""
    with pytest.raises(InvalidInput, match=f"^{place}"):
        read(b" \n", line)
