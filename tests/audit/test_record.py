import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.programs.audit_records import at, encode, make_record
from webhook.audit.record import (
    FIRST,
    NO_ADMISSION,
    AuditRecord,
    Dropped,
    GangEntry,
    Oldest,
    Omitted,
    PlacementEntry,
    ReservedEntry,
    Rotation,
    RuleEntry,
    ShadowEntry,
    parse_line,
)

CONTRACT_KEYS = [
    "time", "decision", "uid", "dryRun", "operation", "namespace", "name", "owner", "user", "workloadType",
    "policy", "outcome", "rules", "patch", "warnings", "placement", "error", "durationMs", "replica", "previous",
]  # fmt: skip


def test_a_record_has_the_keys_of_the_contract_in_their_order() -> None:
    keys = list(orjson.loads(encode(make_record(), 1, FIRST)))
    assert keys[: len(CONTRACT_KEYS)] == CONTRACT_KEYS
    assert keys[len(CONTRACT_KEYS) :] == ["sequence", "before", "hash"]


def test_nested_objects_have_the_keys_of_the_contract() -> None:
    line = orjson.loads(encode(make_record(), 1, FIRST))
    assert list(line["owner"]) == ["kind", "name"]
    assert list(line["policy"]) == ["name", "revision"]
    assert [list(rule) for rule in line["rules"]] == [["name", "edits"], ["name", "skipped"]]
    assert list(line["placement"]) == ["verdict", "node", "total", "feasible", "message", "unmodelled"]


def test_a_record_that_was_read_is_the_one_that_was_written() -> None:
    record = make_record(sequence=7, previous="ab" * 32)
    assert parse_line(encode(record, 7, "ab" * 32)) == record


def test_every_field_of_a_record_is_written_and_read_back() -> None:
    gang = GangEntry("train", 8, 5, is_complete=False)
    dropped = Dropped("age", 1, 2, 3, at(1), at(2)), Dropped("size", 4, 5, None, None, None)
    record = make_record(
        7,
        dry_run=True,
        placement=PlacementEntry("Waiting", "node-1", 12, 3, "full", ("Plugin",), ReservedEntry(31), gang),
        error="an error",
        kind="Deployment",
        qos_class="Burstable",
        client="apiserver",
        shadow=ShadowEntry(
            "Denied",
            (RuleEntry("Spread", ("an edit",)), RuleEntry("BinPacking", (), "not asked for")),
            ({"op": "remove", "path": "/spec/priority"},),
            ("another warning",),
            PlacementEntry("Feasible", None, 2, 1, "room"),
            "would be denied",
        ),
        pod="cd" * 32,
        truncated=("patch: 3 more items",),
        omitted=Omitted("dryRun", 9, 4, {"team-a": 5, "team-b": 4}),
        rotation=Rotation(Oldest(3, "ef" * 32), dropped),
        sequence=7,
        previous="ab" * 32,
    )
    empty = {name for name in AuditRecord.__slots__ if getattr(record, name) == getattr(NO_ADMISSION, name)}
    assert empty == set()
    assert parse_line(encode(record, 7, "ab" * 32, record.rotation)) == record


def test_record_of_another_kind_than_a_pod_names_it() -> None:
    line = encode(make_record(kind="Deployment"), 1, FIRST)
    assert list(orjson.loads(line))[len(CONTRACT_KEYS) :] == ["sequence", "before", "kind", "hash"]
    assert parse_line(line).kind == "Deployment"


def test_absent_values_are_null() -> None:
    record = make_record(owner=None, workload_type=None, policy=None, placement=None, patch=(), rules=(), warnings=())
    line = encode(record, 1, FIRST)
    loaded = orjson.loads(line)
    assert [loaded[key] for key in ("owner", "workloadType", "policy", "placement", "error")] == [None] * 5
    assert [loaded[key] for key in ("patch", "rules", "warnings")] == [[]] * 3
    assert parse_line(line).placement is None


@settings(deadline=None)
@given(st.text())
def test_any_text_stays_on_one_line_and_is_read_back(text: str) -> None:
    line = encode(make_record(error=text, name=text), 1, FIRST)
    assert b"\n" not in line
    assert parse_line(line).error == text


@pytest.mark.parametrize(
    ("fields", "key", "want"),
    [
        ({"error": "half a pair \ud800"}, "error", "half a pair ?"),
        ({"before": {"/spec/priority": 2**80}}, "before", {"/spec/priority": float(2**80)}),
    ],
    ids=["half of a surrogate pair", "integer over 64 bits"],
)
def test_values_that_are_not_json_are_approximated(fields: dict[str, Any], key: str, want: object) -> None:
    loaded = orjson.loads(encode(make_record(**fields), 1, FIRST))
    assert loaded[key] == want
    assert loaded["policy"] == {"name": "default", "revision": "1a2b3c"}


def test_a_key_of_a_newer_version_is_no_fault() -> None:
    line = orjson.loads(encode(make_record(), 1, FIRST)) | {"mood": "good"}
    assert parse_line(orjson.dumps(line)).decision == "d0000"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (rb'"uid":"[^"]*",', b"", "uid: Field required"),
        (rb'"Patched"', b'"Mended"', "outcome: Input should be"),
        (rb'"total":12', b'"total":"many"', "placement.total: Input should be a valid integer"),
        (rb'"time":"[^"]*"', b'"time":"yesterday"', "time: must be RFC 3339, is 'yesterday'"),
        (rb"00\.000000Z", b"00", "time: must be RFC 3339, is '2026-05-01T08:00:00'"),
        (rb".{20}$", b"", "Invalid JSON"),
        (rb".*", b"[1]", "Input should be an object"),
        (rb".*", b"\xff\xfe", "Invalid JSON"),
    ],
    ids=["no uid", "other outcome", "text for a number", "no time", "no zone", "cut off", "a list", "not UTF-8"],
)
def test_a_line_that_is_no_record_is_refused_saying_why(old: bytes, new: bytes, problem: str) -> None:
    line = re.sub(old, lambda _: new, encode(make_record(), 1, FIRST), count=1)
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_line(line)


def test_plugins_that_were_not_evaluated_are_recorded() -> None:
    placement = PlacementEntry("Feasible", "node-3", 12, 4, "", ("VolumeBinding",))
    line = encode(make_record(placement=placement), 1, FIRST)
    assert orjson.loads(line)["placement"]["unmodelled"] == ["VolumeBinding"]
    assert parse_line(line).placement == placement


def test_pods_with_reserved_room_are_recorded() -> None:
    placement = PlacementEntry("Waiting", None, 12, 0, "", reserved=ReservedEntry(31))
    line = encode(make_record(placement=placement), 1, FIRST)
    assert orjson.loads(line)["placement"]["reserved"] == {"pods": 31}
    assert parse_line(line).placement == placement


def test_gang_of_the_pod_is_recorded() -> None:
    placement = PlacementEntry("Waiting", None, 12, 0, "", gang=GangEntry("train", 8, 5))
    line = encode(make_record(placement=placement), 1, FIRST)
    assert orjson.loads(line)["placement"]["gang"] == {"name": "train", "size": 8, "fit": 5, "isComplete": True}
    assert parse_line(line).placement == placement
