"""Creations of pods in audit logs: each condition on a line by itself, and what is read of a line that meets them."""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest

from placement_planner.replay.admission import Admission
from placement_planner.replay.audit_logs import admissions_of_events, admissions_of_records
from tests.support.objects.builders import make_pod
from webhook.admission.missed import Scope
from webhook.admission.recorded_pod import RecordedPod
from webhook.audit.pods import PodIndex
from webhook.documents.field import FieldError, InvalidInput

Object = dict[str, Any]
Change = Callable[[Object], object]
POD = make_pod("trainer").owner("Job", "train").obj()
EVENT: Object = {
    "kind": "Event",
    "apiVersion": "audit.k8s.io/v1",
    "stage": "ResponseComplete",
    "verb": "create",
    "requestURI": "/api/v1/namespaces/team-a/pods?fieldManager=kubectl",
    "objectRef": {"resource": "pods", "namespace": "team-a", "name": "stored"},
    "user": {"username": "jane", "groups": ["ml", "all"]},
    "requestReceivedTimestamp": "2026-03-01T00:00:00Z",
    "requestObject": POD,
}
OTHER, DRY = "event that is not the creation of a pod", "dry run"
BARE = "creation of a pod without requestObject: set the level Request for pods in the audit policy"


def changed(change: Change, of: Object = EVENT) -> Object:
    copy: Object = orjson.loads(orjson.dumps(of))
    change(copy)
    return copy


def read(*lines: bytes) -> tuple[list[Admission], Counter[str], list[str]]:
    """Return the admissions of the events in `lines`, the reasons of those that are left out, and the errors."""
    left_out, errors = Counter[str](), list[FieldError]()
    placed = ((f"log:{number}", line) for number, line in enumerate(lines, start=1))
    found = [*admissions_of_events(placed, left_out, errors.append)]
    return found, left_out, [f"{each.path} {each.detail}" for each in errors]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda event: event.update(verb="update"), OTHER),
        (lambda event: event.update(stage="RequestReceived"), OTHER),
        (lambda event: event.update(objectRef=None), OTHER),
        (lambda event: event["objectRef"].update(resource="deployments"), OTHER),
        (lambda event: event["objectRef"].update(subresource="binding"), OTHER),
        (lambda event: event.update(requestURI="/api/v1/namespaces/team-a/pods?dryRun=All"), DRY),
        (lambda event: event.pop("requestObject"), BARE),
        (lambda event: event.update(requestObject=[]), BARE),
        (lambda event: event["requestObject"].pop("spec"), BARE),
        (lambda event: event["requestObject"].pop("metadata"), BARE),
    ],
)
def test_an_event_that_created_no_pod_is_left_out_with_the_reason(change: Change, reason: str) -> None:
    found, left_out, errors = read(orjson.dumps(changed(change)), orjson.dumps(EVENT))

    assert (len(found), left_out, errors) == (1, Counter({reason: 1}), [])


MUST = "must be an event of audit.k8s.io: "
ANOTHER = f"{MUST}it is another object; delete the line"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"kind": "Event"', "the line was cut off; delete the line"),
        (b"{ }} }", MUST),
        (b'{"kind":"Pod","apiVersion":"audit.k8s.io/v1"}', ANOTHER),
        (b'{"kind":"Event","apiVersion":"v1"}', ANOTHER),
        (b'{"kind":"Event"}', ANOTHER),
        (b'[{"kind":"Event"}]', "the line was cut off"),
    ],
)
def test_a_line_that_is_no_event_is_an_error_and_the_next_one_is_read(line: bytes, error: str) -> None:
    found, left_out, errors = read(line, orjson.dumps(EVENT))

    assert (len(found), found[0].place, left_out) == (1, "log:2", Counter())
    assert len(errors) == 1
    assert errors[0].startswith(f"log:1 {error}")


@pytest.mark.parametrize(
    ("items", "created", "left_out"), [([EVENT, EVENT], 2, 0), ([EVENT, 1], 1, 1), ([], 0, 0), (None, 0, 1)]
)
def test_the_events_of_a_list_are_read_one_by_one(items: Any, created: int, left_out: int) -> None:
    found, others, errors = read(orjson.dumps({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": items}))

    assert (len(found), others.total(), errors) == (created, left_out, [])


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda _: None, {}),
        (lambda event: event["objectRef"].pop("namespace"), {"namespace": "default"}),
        (
            lambda event: (
                event["objectRef"].pop("namespace"),
                event["requestObject"]["metadata"].update(namespace="b"),
            ),
            {"namespace": "b"},
        ),
        (lambda event: event["requestObject"]["metadata"].update(namespace="b"), {}),
        (lambda event: event["objectRef"].pop("name"), {"name": "trainer"}),
        (
            lambda event: (
                event["objectRef"].pop("name"),
                event["requestObject"].update(metadata={"generateName": "web-"}),
            ),
            {"name": "web-", "owner": ""},
        ),
        (
            lambda event: (event["objectRef"].pop("name"), event["requestObject"].update(metadata={})),
            {"name": "", "owner": ""},
        ),
        (lambda event: event.pop("user"), {"user": "", "groups": ()}),
        (lambda event: event["user"].update(groups="ml"), {"groups": ()}),
        (lambda event: event.pop("requestReceivedTimestamp"), {"time": ""}),
        (
            lambda event: event["requestObject"]["metadata"].update(
                ownerReferences=[{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": True}]
            ),
            {"owner": "B/b"},
        ),
        (lambda event: event["requestObject"]["metadata"].update(ownerReferences={}), {"owner": ""}),
    ],
)
def test_each_fact_of_an_event_has_its_sources_in_order(change: Change, wanted: Object) -> None:
    ((found,), *_) = read(orjson.dumps(changed(change)))

    facts = {
        "namespace": "team-a", "name": "stored", "user": "jane", "owner": "Job/train", "place": "log:1",
        "time": "2026-03-01T00:00:00Z", "policy": "", "outcome": "",
    }  # fmt: skip
    groups = wanted.pop("groups", ("ml", "all"))
    assert {key: getattr(found, key) for key in facts} == facts | wanted
    assert found.read().groups == groups
    assert found.read().pod["spec"] == POD["spec"]


RECORDED = RecordedPod(POD, Scope({}, {"team": "a"}), ("ml",))
RECORD: Object = {
    "time": "2026-03-01T00:00:00Z", "decision": "1", "namespace": "team-a", "name": "trainer", "operation": "CREATE",
    "user": "jane", "dryRun": False, "hash": "x", "outcome": "Patched", "owner": {"kind": "Job", "name": "train"},
    "policy": {"name": "default", "revision": "abc"}, "kind": "Pod", "pod": "aa",
}  # fmt: skip


class Pods(dict[str, bytes]):
    """The pods of a log by their digests, as `PodIndex` reads them."""

    def content(self, digest: str) -> bytes | None:
        return self.get(digest)


def read_records(*records: Object) -> tuple[list[Admission], Counter[str], list[FieldError]]:
    left_out, errors = Counter[str](), list[FieldError]()
    lines = ((f"log:{number}", orjson.dumps(each)) for number, each in enumerate(records, start=1))
    pods = cast("PodIndex", Pods({"aa": RECORDED.serialised(), "bb": b"{}"}))
    return [*admissions_of_records(lines, pods, left_out, errors.append)], left_out, errors


@pytest.mark.parametrize(
    ("change", "begin"),
    [
        ({"kind": "Deployment"}, "record of another object"),
        ({"operation": "UPDATE"}, "record of another object"),
        ({"dryRun": True}, "dry run"),
        ({"pod": ""}, "record without a pod"),
        ({"pod": "cc"}, "record whose pod is not in FILE.pods"),
        # The first of several reasons.
        ({"kind": "Deployment", "dryRun": True, "pod": ""}, "record of another object"),
        ({"dryRun": True, "pod": ""}, "dry run"),
    ],
)
def test_a_record_that_cannot_be_decided_on_is_left_out_with_the_reason(change: Object, begin: str) -> None:
    found, left_out, errors = read_records(RECORD | change, RECORD)

    assert (len(found), errors) == (1, [])
    assert [each.startswith(begin) for each in left_out.elements()] == [True]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, {}),
        ({"namespace": ""}, {"namespace": "default"}),
        ({"owner": None}, {"owner": ""}),
        ({"policy": None}, {"policy": ""}),
    ],
)
def test_the_facts_of_a_record_are_kept(change: Object, wanted: Object) -> None:
    ((found,), *_) = read_records(RECORD | change)

    facts = {
        "namespace": "team-a", "name": "trainer", "user": "jane", "owner": "Job/train", "place": "log:1",
        "time": "2026-03-01T00:00:00Z", "policy": "default@abc", "outcome": "Patched", "key": b"\xaa",
    }  # fmt: skip
    assert {key: getattr(found, key) for key in facts} == facts | wanted
    assert found.read() == RECORDED


def test_bad_lines_and_bad_pods_of_records_are_errors_with_their_place() -> None:
    found, left_out, errors = read_records({"time": 1}, RECORD | {"pod": "bb"}, RECORD)

    assert ([each.place for each in found], left_out, [each.path for each in errors]) == (
        ["log:2", "log:3"],
        Counter(),
        ["log:1"],
    )
    with pytest.raises(InvalidInput, match=r"log:2: pod: .*cannot be read in FILE\.pods"):
        found[0].read()
