"""Names and counts in words."""

import pytest

from webhook.documents.listing import plural, some


@pytest.mark.parametrize(
    ("texts", "noun", "expected"),
    [
        (["a", "b"], "", "a, b"),
        (["a", "b", "c"], "", "a, b and 1 more"),
        (["a", "b", "c", "d"], "nodes", "a, b, 2 more nodes"),
        ([], "", ""),
    ],
)
def test_the_first_are_named_and_the_others_counted(texts: list[str], noun: str, expected: str) -> None:
    assert some(texts, 2, noun) == expected


def test_one_is_not_several() -> None:
    assert [plural(count, "pod") for count in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]
