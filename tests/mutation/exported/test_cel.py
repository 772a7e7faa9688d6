"""The builders of CEL expressions; the real API server evaluates them in tests/differential/test_exported_policy.py."""

import pytest

from webhook.mutation.exported import cel


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (cel.text('a "b" \\ c'), r'"a \"b\" \\ c"'),
        (cel.texts(["a", "b"]), '["a", "b"]'),
        (cel.dyn_map({"key": '"k"', "values": "[1]"}), '{"key": dyn("k"), "values": dyn([1])}'),
        (cel.any_of([]), "false"),
        (cel.any_of(["a", "false", "a", "b"]), "(a || b)"),
        (cel.any_of(["a", "true"]), "true"),
        (cel.all_of([]), "true"),
        (cel.all_of(["a", "true", "b"]), "(a && b)"),
        (cel.all_of(["a", "false"]), "false"),
        (cel.negated("true"), "false"),
        (cel.negated("a || b"), "!(a || b)"),
        (cel.choose([("a", "1"), ("b", "2")], "3"), "(a ? 1 : (b ? 2 : 3))"),
        (cel.choose([("false", "1"), ("true", "2"), ("b", "4")], "3"), "2"),
        (cel.choose([("a", "3")], "3"), "3"),
        (cel.concatenated([]), "[]"),
        (cel.concatenated(["[]", "[1]"]), "[1]"),
        (cel.concatenated(["a", "b"]), "(a + b)"),
        (cel.when("false", "[1]"), "[]"),
        (cel.matches_any("n", ["a", "*"]), "true"),
        (cel.matches_any("n", []), "false"),
        (cel.matches_any("n", ["a", "b"]), 'n in ["a", "b"]'),
        (cel.matches_any("n", ["a.b-*"]), r'n.matches("^(?s:a\\.b\\-.*)$")'),
        (cel.matches_any("n", ["a", "b*c"]), 'n.matches("^(?s:a|b.*c)$")'),
        (cel.added('"/a"', "1"), 'JSONPatch{op: "add", path: "/a", value: 1}'),
    ],
)
def test_an_expression_is_as_short_as_its_parts_allow(built: str, expected: str) -> None:
    assert built == expected
