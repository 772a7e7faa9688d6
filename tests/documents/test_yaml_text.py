"""The lines of fields, by the names that errors give to them."""

import pytest

from webhook.documents.yaml_text import line_of, lines_in, objects

TEXT = """\
# a comment
---
a:
  b: 1
  "c.d": 2
list:
  - x: 1

  - {x: 2,
     y: 3}
anchor: &it
  deep: 1
alias: *it
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a", 3),
        ("a.b", 4),
        ("a.c.d", 5),
        ("list[0].x", 7),
        ("list[1]", 9),
        ("list[1].y", 10),
        ("anchor.deep", 12),
        ("list[7].x", 6),
        ("a.missing.deeper", 3),
        ("alias.deep", 13),
        ("missing", None),
        ("", None),
    ],
)
def test_a_field_has_the_line_of_its_key_or_of_the_nearest_field_around_it(path: str, line: int | None) -> None:
    assert line_of(path, lines_in(objects(TEXT)[0], [path])) == line


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b\n", "a: [", b"\xff", '{"a": '])
def test_a_text_without_an_object_has_no_lines(text: str | bytes) -> None:
    assert objects(text) == []


def test_json_has_lines_too() -> None:
    assert lines_in(objects('{\n  "a": {\n    "b": 1,\n    "c": 2\n  }\n}')[0], ["a.b"]) == {"a": 2, "a.b": 3}


def test_aliases_of_aliases_cost_no_more_than_the_fields_that_are_asked_for() -> None:
    text = "a0: &a0 {x: 1}\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(200))
    path = "a200" + "[1]" * 200

    lines = lines_in(objects(text)[0], [f"{path}.x"])

    assert len(lines) == 202
    assert (lines["a200"], lines[path], lines[f"{path}.x"]) == (201, 1, 1)


def test_a_key_with_dots_is_found_among_keys_that_begin_as_it_does() -> None:
    assert lines_in(objects("a:\n  b: {d: 1}\na.b:\n  c: 1\n")[0], ["a.b.c"])["a.b.c"] == 4


def test_each_object_has_its_own_lines() -> None:
    text = "x: 1\n---\nkind: List\nitems:\n- &a\n  x: 1\n- *a\n- y: 1\n"

    assert [lines_in(each, ["x"]) for each in objects(text)] == [{"x": 1}, {"x": 6}, {"x": 6}, {}]
