"""The status of a PlacementPolicy: which fields it has, and when it is written, beside a fake API server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.servers.server import Clock
from webhook.events.report import Report
from webhook.events.subject import ObjectReference
from webhook.serving.policies.policy_status import GoodGeneration, JudgedObject, StatusWriter, status_of
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import CONFLICT, NOT_FOUND

Object = dict[str, Any]
NOW, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
SPEC: Object = {"mode": "shadow"}


def content(name: str = "a", generation: int = 1, **status: Any) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "generation": generation, "resourceVersion": f"{generation}0"}
    return {"metadata": metadata, "spec": SPEC, **({"status": status} if status else {})}


@pytest.mark.parametrize("is_conflict", [False, True], ids=["errors", "a conflict"])
@pytest.mark.parametrize(("length", "is_cut"), [(1, False), (2048, False), (2049, True)])
def test_a_condition_has_the_beginning_of_a_long_message(length: int, is_cut: bool, is_conflict: bool) -> None:
    text = "x" * length
    given: tuple[Any, ...] = ((), NOW, text) if is_conflict else ((text,), NOW)

    status = status_of(content(), None, *given)

    assert status is not None
    shown = status["conditions"][1 if is_conflict else 0]["message"]
    assert shown == (f"{'x' * 2048} …" if is_cut else text)


@pytest.mark.parametrize(("rest", "is_kept"), [(0, True), (1, False)])
def test_a_status_has_a_spec_of_at_most_256_kib(rest: int, is_kept: bool) -> None:
    spec = {"mode": "x" * (256 * 1024 - len('{"mode":""}') + rest)}

    status = status_of(content(generation=2), GoodGeneration("r1", spec, 1), ("wrong",), NOW)

    assert status is not None
    assert (status["revision"], status.get("inForceSpec")) == ("r1", spec if is_kept else None)


class Writing:
    """A writer, and an API server that answers each patch with one of `codes`: 200 without an error."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.patches: list[tuple[str, Sequence[Object]]] = []
        self.rejected: list[str] = []
        self.clock = Clock()
        self._writer = StatusWriter(self.connect, "/policies", lambda: NOW, self.clock, self._reject)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        yield self

    async def patch(self, path: str, patch: Sequence[Object], _: Object) -> None:
        self.patches.append((path, patch))
        code = self.codes.pop(0) if self.codes else 200
        if code != 200:
            raise ApiServerError("no", code)

    def _reject(self, reference: ObjectReference, _: Report) -> None:
        self.rejected.append(reference.name)

    def write(self, *judged: JudgedObject, codes: Sequence[int] = ()) -> list[str]:
        """Write the statuses, and return the paths of the patches."""
        self.codes, self.patches = [*codes], []
        asyncio.run(self._writer.write(judged))
        return [path for path, _ in self.patches]


GOOD, BAD = JudgedObject(content("a"), GoodGeneration("r1", SPEC, 1)), JudgedObject(content("b"), errors=("wrong",))
A, B = "/policies/a/status", "/policies/b/status"


def test_status_is_that_of_the_version_that_was_judged() -> None:
    writing = Writing()

    writing.write(GOOD)

    ((_, patch),) = writing.patches
    assert [(each["op"], each["path"]) for each in patch] == [
        ("replace", "/metadata/resourceVersion"),
        ("add", "/status"),
    ]
    assert patch[0]["value"] == "10"
    assert patch[1]["value"] == status_of(GOOD.content, GOOD.good, (), NOW)


@pytest.mark.parametrize(
    ("code", "logs", "again"),
    [
        pytest.param(200, 0, [], id="written: not again at once"),
        pytest.param(CONFLICT, 0, [A], id="changed since: compared again at once"),
        pytest.param(NOT_FOUND, 0, [A], id="gone: a new one is compared at once"),
        pytest.param(403, 1, [], id="refused: tried again later"),
    ],
)
def test_other_statuses_are_written_whatever_becomes_of_the_first(code: int, logs: int, again: list[str]) -> None:
    writing = Writing()

    with capture_logs() as logged:
        assert writing.write(GOOD, BAD, codes=[code]) == [A, B]

    assert len(logged) == logs
    assert writing.rejected == ["b"]
    assert writing.write(GOOD) == again


def test_api_server_that_does_not_answer_is_asked_for_no_other_status() -> None:
    writing = Writing()

    with pytest.raises(ApiServerError):
        writing.write(GOOD, BAD, codes=[0])

    assert [path for path, _ in writing.patches] == [A]
    assert writing.write(GOOD) == [A]


@pytest.mark.parametrize(("code", "rejected"), [(200, ["b"]), (CONFLICT, []), (403, [])])
def test_rejection_is_reported_by_the_replica_that_wrote_it(code: int, rejected: list[str]) -> None:
    writing = Writing()

    writing.write(BAD, codes=[code])

    assert writing.rejected == rejected


def test_status_of_one_generation_is_written_once_a_minute() -> None:
    writing, newer = Writing(), JudgedObject(content("a", 2), GoodGeneration("r2", SPEC, 2))
    assert writing.write(GOOD) == [A]
    for seconds, paths in ((59.9, []), (0.1, [A])):
        writing.clock.seconds += seconds
        assert writing.write(GOOD) == paths
    assert writing.write(newer) == [A]
    assert writing.write() == []
    assert writing.write(newer) == [A]


def conditions(status: Object | None) -> dict[str, tuple[str, str]]:
    assert status is not None
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


@pytest.mark.parametrize(
    ("errors", "conflict", "wanted", "revision"),
    [
        ((), "", {"Accepted": ("True", "Valid"), "InForce": ("True", "Applied")}, "r1"),
        ((), "same name", {"Accepted": ("True", "Valid"), "InForce": ("False", "Conflict")}, None),
        (("wrong",), "", {"Accepted": ("False", "Invalid"), "InForce": ("False", "Rejected")}, "r1"),
        (("wrong",), "same name", {"Accepted": ("False", "Invalid"), "InForce": ("False", "Rejected")}, None),
    ],
)
def test_conditions_state_what_is_in_force(
    errors: tuple[str, ...], conflict: str, wanted: dict[str, tuple[str, str]], revision: str | None
) -> None:
    status = status_of(content(), GoodGeneration("r1", SPEC, 1), errors, NOW, conflict)

    assert conditions(status) == wanted
    assert (status or {}).get("revision") == revision
    assert (status or {}).get("observedGeneration") == 1


OTHER: Object = {"mode": "enforce"}
STORED = {"revision": "r1", "inForceSpec": SPEC}


@pytest.mark.parametrize(
    ("before", "good", "wanted"),
    [
        pytest.param({}, None, {}, id="nothing is known"),
        pytest.param(STORED, None, STORED, id="only the status knows"),
        pytest.param({}, ("r2", OTHER, 1), {"revision": "r2", "inForceSpec": OTHER}, id="only this replica knows"),
        pytest.param(
            STORED | {"observedGeneration": 3},
            ("r2", OTHER, 4),
            {"revision": "r2", "inForceSpec": OTHER},
            id="this replica knows a newer one",
        ),
        pytest.param(STORED | {"observedGeneration": 3}, ("r2", OTHER, 3), STORED, id="not newer than the status"),
        pytest.param(STORED | {"observedGeneration": 3}, ("r2", OTHER, 0), STORED, id="of an unknown generation"),
        pytest.param(
            {"revision": "r1", "observedGeneration": 3},
            ("r1", SPEC, 0),
            STORED,
            id="the status lacks the spec of its revision",
        ),
        pytest.param(
            {"revision": "r1", "observedGeneration": 3}, ("r2", OTHER, 0), {"revision": "r1"}, id="spec of another one"
        ),
        pytest.param(
            {"revision": "r1", "inForceSpec": {"queueing": "kueue"}, "observedGeneration": 3},
            ("r1", SPEC, 0),
            {"revision": "r1", "inForceSpec": {"queueing": "kueue"}},
            id="of one revision, the stored spec stays",
        ),
        pytest.param(
            {}, ("r2", {"tests": ["x" * 262_144]}, 1), {"revision": "r2"}, id="a spec that is too large is not stored"
        ),
    ],
)
def test_rejected_object_keeps_the_newest_good_generation(
    before: Object, good: tuple[str, Object, int] | None, wanted: Object
) -> None:
    status = status_of(content("a", 5, **before), None if good is None else GoodGeneration(*good), ("wrong",), NOW)

    assert status is not None
    assert {key: status[key] for key in ("revision", "inForceSpec") if key in status} == wanted


def test_status_that_an_object_has_is_not_written_again() -> None:
    first = status_of(content(), GoodGeneration("r1", SPEC, 1), (), BEFORE)
    assert first is not None

    assert status_of(content(**first), GoodGeneration("r1", SPEC, 1), (), NOW) is None


def test_time_of_a_condition_is_that_of_its_last_change() -> None:
    first = status_of(content(), GoodGeneration("r1", SPEC, 1), (), BEFORE)
    assert first is not None

    conflict = status_of(content(**first), GoodGeneration("r1", SPEC, 1), (), NOW, "same name")

    assert conflict is not None
    assert {each["type"]: each["lastTransitionTime"] for each in conflict["conditions"]} == {
        "Accepted": BEFORE,
        "InForce": NOW,
    }
