"""Paths in raw objects, with stars for the items of lists and the values of maps."""

from typing import Any

import pytest

from webhook.documents.field import InvalidInput
from webhook.documents.object_path import Match, count_at, matches, segments, value_at

JOB: dict[str, Any] = {
    "metadata": {"annotations": {"example.com/count": "3"}},
    "spec": {"tasks": [{"replicas": 2}, {}], "groups": {"a.b": {"replicas": 5}}},
}


def test_a_key_with_dots_is_in_brackets() -> None:
    assert segments("metadata.annotations[example.com/a].x") == ("metadata", "annotations", "example.com/a", "x")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("spec.tasks.*.replicas", [("spec.tasks[0].replicas", (0,), 2), ("spec.tasks[1].replicas", (1,), None)]),
        ("spec.groups.*.replicas", [("spec.groups[a.b].replicas", ("a.b",), 5)]),
        ("spec.none.*.replicas", []),
        ("spec.none", [("spec.none", (), None)]),
    ],
)
def test_a_star_stands_for_each_item(path: str, found: list[tuple[str, tuple[Any, ...], Any]]) -> None:
    assert [*matches(JOB, path)] == [Match(*each) for each in found]


def test_keys_take_the_place_of_stars() -> None:
    assert value_at(JOB, "spec.tasks.*.replicas", (0,)) == ("spec.tasks[0].replicas", (0,), 2)
    assert value_at(JOB, "spec.tasks.*.replicas", (1,)) == ("spec.tasks[1].replicas", (1,), None)
    assert value_at(JOB, "spec.tasks.*.replicas", (2,)) == ("spec.tasks[2].replicas", (2,), None)
    assert value_at(JOB, "spec.tasks.*.replicas", (7,)).value is None


@pytest.mark.parametrize("path", ["spec.tasks.x", "spec.tasks.*.replicas.*.x"])
def test_a_parent_of_another_type_is_an_error(path: str) -> None:
    with pytest.raises(InvalidInput, match="must be a"):
        list(matches(JOB, path))


def test_an_annotation_holds_a_count_as_text_and_no_other_field_does() -> None:
    assert count_at(JOB, "metadata.annotations[example.com/count]", ()) == 3
    with pytest.raises(InvalidInput, match="must be an integer from 0 to 2147483647"):
        count_at({"spec": {"count": "3"}}, "spec.count", ())


@pytest.mark.parametrize("count", [-1, 2**31, True, 1.5])
def test_a_count_is_an_int32_of_at_least_zero(count: object) -> None:
    with pytest.raises(InvalidInput):
        count_at({"count": count}, "count", ())


def test_keys_of_stars_are_in_the_order_of_the_path() -> None:
    content = {"roles": {"a/b": {"jobs": [{"n": 1}, {"n": 2}]}, "plain_1": {"jobs": []}}}

    assert [*matches(content, "roles.*.jobs.*.n")] == [
        ("roles[a/b].jobs[0].n", ("a/b", 0), 1),
        ("roles[a/b].jobs[1].n", ("a/b", 1), 2),
    ]


@pytest.mark.parametrize(
    ("path", "content", "count"),
    [
        ("spec.replicas", {"spec": {"replicas": 0}}, 0),
        ("spec.replicas", {"spec": {"replicas": 2**31 - 1}}, 2**31 - 1),
        ("metadata.annotations[a/b]", {"metadata": {"annotations": {"a/b": "0"}}}, 0),
        ("metadata.annotations[a/b]", {"metadata": {"annotations": {"a/b": "2147483647"}}}, 2**31 - 1),
        ("metadata.annotations[a/b]", {"metadata": {"annotations": {"a/b": 4}}}, 4),
        ("spec.replicas", {"spec": None}, None),
    ],
)
def test_a_count_from_zero_to_the_largest(path: str, content: dict[str, Any], count: int | None) -> None:
    assert count_at(content, path, ()) == count


@pytest.mark.parametrize("value", [-1, 2**31, "3", True, 1.0])
def test_a_value_that_is_no_count_is_an_error(value: object) -> None:
    with pytest.raises(
        InvalidInput, match=r"^spec\.replicas: Invalid value: .*; must be an integer from 0 to 2147483647$"
    ):
        count_at({"spec": {"replicas": value}}, "spec.replicas", ())


@pytest.mark.parametrize("value", ["2147483648", "1" * 5000, "-1", "1.0", "", "²", "٣", " 3", []])
def test_a_text_that_is_no_count_is_an_error_in_an_annotation(value: object) -> None:
    content: dict[str, Any] = {"metadata": {"annotations": {"a/b": value}}}
    with pytest.raises(InvalidInput, match="must be an integer from 0 to 2147483647"):
        count_at(content, "metadata.annotations[a/b]", ())
