"""No pod or user can make a record large."""

import base64
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from tests.support.programs.audit_records import PATCH, encode, make_record
from tests.support.servers.server import World, review_bytes
from webhook.audit.bounds import Truncator, dump
from webhook.audit.lines import digest, stated_hash
from webhook.audit.record import (
    FIRST,
    LARGEST_BYTES,
    AuditRecord,
    Owner,
    PlacementEntry,
    PolicyName,
    RuleEntry,
    ShadowEntry,
    parse_line,
)

LONG = "x" * 3_000_000


class Counted(list[Any]):
    """A list that counts how many of its items were read."""

    read = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.read += 1
            yield item


def full_of(text: str) -> AuditRecord:
    """Return a record with `text` in every text field and in long lists."""
    texts = (text,) * 1000
    return make_record(
        uid=text,
        operation=text,
        namespace=text,
        name=text,
        owner=Owner(text, text),
        user=text,
        workload_type=text,
        policy=PolicyName(text, "1a2b3c"),
        rules=(RuleEntry(text, texts), RuleEntry(text, (), text)) * 1000,
        patch=({"op": "add", "path": text, "value": {text: texts}},) * 1000,
        warnings=texts,
        placement=PlacementEntry("Feasible", text, 12, 4, text, texts),
        error=text,
        kind=text,
        before={f"/{number}{text}": text for number in range(1000)},
    )


@pytest.mark.parametrize("character", ["x", '"', "\x00", "\u202e", "训", "\U0001f600", "\ud800"], ids=ascii)
@pytest.mark.parametrize("length", [1, 100, 170, 171, 1024, 5000])
def test_record_never_exceeds_the_maximum_size(character: str, length: int) -> None:
    line = encode(full_of(character * length), 2**53, "0" * 64)

    assert len(line) <= LARGEST_BYTES
    assert stated_hash(line) == digest(line)
    assert parse_line(line).truncated


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=50,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(json_values), st.integers(1, 2000))
def test_any_patch_is_truncated_to_its_limit(values: list[Any], times: int) -> None:
    patch = tuple({"op": "add", "path": "/a/-", "value": value} for value in values * times)

    line = encode(make_record(patch=patch), 1, FIRST)

    assert len(line) <= LARGEST_BYTES
    kept = parse_line(line)
    assert bool(kept.truncated) == (len(kept.patch) < len(patch))
    if len(kept.patch) > 1:
        assert kept.patch == patch[: len(kept.patch)]


def test_record_of_a_normal_pod_is_not_truncated() -> None:
    record = make_record()
    fields = orjson.loads(encode(record, 1, FIRST))

    assert "truncated" not in fields
    assert (tuple(fields["patch"]), tuple(fields["warnings"])) == (PATCH, record.warnings)


def test_truncated_text_counts_the_omitted_characters() -> None:
    line = encode(make_record(user=LONG, error="训" * 1000), 1, FIRST)
    record = parse_line(line)

    assert record.user == "x" * 1024 + "… (2998976 more characters)"
    assert record.error == "训" * 341 + "… (659 more characters)"
    assert record.truncated == ("error: 659 more characters", "user: 2998976 more characters")


def test_truncated_patch_has_complete_operations_and_counts_the_omitted_ones() -> None:
    patch = tuple({"op": "add", "path": f"/spec/x/{number}", "value": "y" * 90} for number in range(10_000))
    record = parse_line(encode(make_record(patch=patch), 1, FIRST))

    assert record.patch == patch[: len(record.patch)]
    assert 100 < len(record.patch) < 200
    assert record.truncated == (f"patch: {10_000 - len(record.patch)} more items",)


def test_truncated_places_within_values_are_listed() -> None:
    deep: Any = "y"
    for _ in range(100):
        deep = [deep]
    patch = (
        {"op": "add", "path": "/metadata/labels", "value": {"a.io/b": LONG, "list": list(range(10_000))}},
        {"op": "add", "path": "/spec/x", "value": deep},
    )
    kept = parse_line(encode(make_record(patch=patch), 1, FIRST))
    cut_in, other, last = kept.truncated
    assert cut_in == "patch[0].value[a.io/b]: 2998976 more characters"
    assert other == f"patch[0].value.list: {10_000 - len(kept.patch[0]['value']['list'])} more items"
    assert last == "patch: 1 more item"
    nested, *_ = parse_line(encode(make_record(patch=patch[1:] * 65), 1, FIRST)).truncated
    assert nested.startswith("patch[0].value[0][0]")
    assert nested.endswith(": nested deeper than 32 levels")


def test_omitted_items_are_not_read() -> None:
    edits, patch, warnings = (Counted(["edit"] * 100_000) for _ in range(3))
    record = replace(make_record(), patch=patch, warnings=warnings, rules=(RuleEntry("a", edits),))  # type: ignore[arg-type]

    encode(record, 1, FIRST)

    assert max(edits.read, patch.read, warnings.read) < 3000


@pytest.mark.parametrize(
    "fields",
    [
        {"user": LONG},
        {"error": LONG},
        {"warnings": (LONG,)},
        {"owner": Owner("Job", LONG)},
        {"before": {"/metadata/labels/jobtype": LONG}},
        {"patch": ({"op": "add", "path": "/a", "value": "y"},) * 100_000},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_omitted_content_is_not_serialized(fields: dict[str, Any]) -> None:
    record = make_record(**fields)
    encode(record, 1, FIRST)
    tracemalloc.start()
    try:
        encode(record, 1, FIRST)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * LARGEST_BYTES


def _training() -> PodBuilder:
    return make_pod("trainer").annotate(TYPE, "training")


def _many_terms() -> PodBuilder:
    return _training().require_node(*[match_expressions(("a", "Exists", []))] * 3_000)


_LARGE: dict[str, Callable[[], PodBuilder]] = {
    "label": lambda: _training().label("jobtype", LONG),
    "annotation that is replaced": lambda: _training().annotate("maip.mxsf.io/placement-policy", LONG),
    "type": lambda: make_pod("a").annotate(TYPE, LONG),
    "scheduler": lambda: _training().annotate("maip.mxsf.io/scheduler", "volcano").spec(schedulerName=LONG),
    "nodeSelector": lambda: _training().spec(nodeSelector={USAGE: LONG}),
    "value of a requirement": lambda: _training().require_node(match_expressions((USAGE, "In", [LONG]))),
    "values of a requirement": lambda: _training().require_node(match_expressions((USAGE, "In", ["xx"] * 500_000))),
    "operator": lambda: _training().require_node({"matchExpressions": [{"key": USAGE, "operator": LONG}]}),
    "terms": _many_terms,
    "name": lambda: make_pod(LONG).annotate(TYPE, "training"),
    "namespace": lambda: _training().namespace(LONG),
    "owner": lambda: _training().owner("Job", LONG),
    "key of a label that is no text": lambda: _training().label(LONG, 1),  # type: ignore[arg-type]
    "control characters": lambda: _training().label("jobtype", "\x1b" * 400_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in _LARGE.items()])
def test_record_of_a_large_pod_is_small_and_its_answer_complete(make: Callable[[], PodBuilder]) -> None:
    lines: list[bytes] = []
    world = World(audit=lambda unsealed: lines.append(encode(unsealed, 1, FIRST)))
    pod = make().obj()

    answer = world.admissions().answer(review_bytes(pod, userInfo={"username": LONG}), 1000.0, None)

    (line,) = lines
    record = parse_line(line)
    assert len(line) < LARGEST_BYTES
    assert "user: 2998976 more characters" in record.truncated
    assert len(answer.body) < 4096 or answer.status == 200


def test_patch_of_the_answer_is_never_truncated() -> None:
    world = World()
    pod = _many_terms().obj()

    body = orjson.loads(world.admissions().answer(review_bytes(pod), 1000.0, None).body)

    patch = orjson.loads(base64.b64decode(body["response"]["patch"]))
    (record,) = world.records
    (left_out,) = [place for place in record.truncated if place.startswith("patch: ")]
    assert len(patch) > 3_000
    assert left_out == f"patch: {len(patch) - len(record.patch)} more items"


def test_truncations_within_an_omitted_item_are_not_counted() -> None:
    """The list of places is full by then; further places are only counted."""
    truncator, text = Truncator(), "x" * 2000
    items = orjson.loads(truncator.items_json("warnings", [[text] * 16, [text] * 3], 17_000))

    assert [len(each) for each in items] == [16]
    assert truncator.truncated == [
        *(f"warnings[0][{number}]: 976 more characters" for number in range(16)),
        "and 1 more place",
    ]


def test_an_answer_that_was_not_given_is_bounded_like_one_that_was() -> None:
    patch = tuple({"op": "add", "path": f"/metadata/labels/{number}", "value": "x" * 3000} for number in range(900))
    texts = tuple("w" * 5000 for _ in range(100))
    placement = PlacementEntry("Waiting", "n" * 5000, 1, 0, "m" * 100_000, texts)
    rules = tuple(RuleEntry("r" * 5000, texts) for _ in range(100))
    shadow = ShadowEntry("Denied", rules, patch, texts, placement, "e" * 100_000)

    line = encode(make_record(outcome="Bypassed", rules=(), patch=(), placement=None, shadow=shadow), 1, FIRST)

    assert len(line) < LARGEST_BYTES * 3 // 4
    assert any(place.startswith("shadow.patch") for place in parse_line(line).truncated)


@pytest.mark.parametrize("item", [[], {}, "", 0, True, None, [[]], {"": ""}], ids=repr)
def test_items_count_however_small_they_are(item: Any) -> None:
    truncator, items = Truncator(), [item] * 10_000

    data = truncator.items_json("patch", items, 1000)

    kept = orjson.loads(data)
    assert len(data) <= 1000
    assert kept == items[: len(kept)] != []
    assert truncator.truncated == [f"patch: {10_000 - len(kept)} more items"]


@pytest.mark.parametrize(("characters", "left_out"), [(1024, ""), (1025, "… (1 more character)")])
def test_text_is_cut_if_it_is_longer_than_a_kilobyte(characters: int, left_out: str) -> None:
    truncator = Truncator()

    assert truncator.text("user", "x" * characters) == "x" * 1024 + left_out
    assert len(truncator.truncated) == bool(left_out)


def test_values_that_are_not_json_take_no_more_room_than_others() -> None:
    assert dump({"a": ["\ud800", 2**80], "b": 1}) == b'{"a":["?",%d],"b":1}' % 2**80
