"""The forms of names and keys, in the words of the API server."""

import pytest

from webhook.kube.pod.name_rules import LABEL, LABEL_VALUE, SUBDOMAIN, Rule, invalid_value, key_errors


@pytest.mark.parametrize(
    ("rule", "text", "errors"),
    [
        (SUBDOMAIN, "example.com", []),
        (LABEL, "a.b", [LABEL.text]),
        (LABEL, "a" * 64, ["must be no more than 63 characters"]),
        (LABEL_VALUE, "", []),
        (LABEL_VALUE, "ä" * 32, ["must be no more than 63 bytes", LABEL_VALUE.text]),
    ],
)
def test_every_fault_of_a_name_is_reported(rule: Rule, text: str, errors: list[str]) -> None:
    assert [*rule.errors(text)] == errors


@pytest.mark.parametrize(
    ("key", "beginnings"),
    [
        ("example.com/name", []),
        ("name", []),
        ("/name", ["prefix part must be non-empty"]),
        ("example.com/", ["name part must be non-empty", "name part must consist of"]),
        ("Example/name", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("a/b/c", ["a valid label key must consist of"]),
    ],
)
def test_the_parts_of_a_key_are_named(key: str, beginnings: list[str]) -> None:
    found = [*key_errors(key)]

    assert len(found) == len(beginnings)
    assert all(map(str.startswith, found, beginnings))


def test_a_field_has_an_error_for_each_detail() -> None:
    errors = [*invalid_value("metadata.name", "A", ["first", "second"])]

    assert [(each.path, each.detail) for each in errors] == [("metadata.name", "first"), ("metadata.name", "second")]
