import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.documents.text import cut, escaped_json, json_bytes, printable, printable_lines

UNSAFE = "\x00\x07\x08\t\r\x1b\x7f\x80\x85\x9b\xad\u061c\u200e\u2028\u202e\u2066\u2069\ufeff\ud800\U000e0041"


@pytest.mark.parametrize("character", UNSAFE, ids=ascii)
def test_terminal_control_characters_are_escaped(character: str) -> None:
    escape = character.encode("unicode_escape").decode()

    assert printable(f"a{character}b") == f"a{escape}b"
    assert printable_lines(f"a{character}\nb") == f"a{escape}\nb"


def test_line_break_is_an_escape_but_in_lines() -> None:
    assert printable("a\nb") == r"a\nb"
    assert printable_lines("a\nb") == "a\nb"


@pytest.mark.parametrize("text", ["", "a b", "训练 é", "日本　語", "שלום", r"C:\x1b", "😀"])
def test_other_text_is_unchanged(text: str) -> None:
    assert printable(text) == printable_lines(text) == text


@given(st.text())
def test_escaping_is_idempotent(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)), st.booleans())
def test_escaped_json_has_the_same_value_and_no_control_characters(value: object, ascii_only: bool) -> None:
    escaped = escaped_json(json.dumps(value, ensure_ascii=ascii_only, indent="\t"))

    assert json.loads(escaped) == value
    assert printable_lines(escaped) == escaped


@pytest.mark.parametrize(
    ("character", "escape"),
    [
        ("\t", " "),
        ("\x7f", r"\u007f"),
        ("\u202e", r"\u202e"),
        ("\U000e0041", r"\udb40\udc41"),
        ("\U000e007f", r"\udb40\udc7f"),
        ("😀", "😀"),
    ],
)
def test_unsafe_character_beyond_16_bits_is_a_surrogate_pair_in_json(character: str, escape: str) -> None:
    assert escaped_json(character) == escape


def test_half_of_a_surrogate_pair_is_an_escape_in_json() -> None:
    assert json_bytes({"a": ["\ud800", "é"]}) == rb'{"a":["\ud800","\u00e9"]}'


def test_cut_text_ends_in_an_ellipsis() -> None:
    assert [cut("abcd", limit) for limit in (3, 4)] == ["ab…", "abcd"]


def test_json_has_the_layout_that_is_asked_for() -> None:
    value = {"b": "\u202e", "a": [1]}

    assert json_bytes(value) == b'{"b":"\\u202e","a":[1]}'
    assert json_bytes(value, orjson.OPT_SORT_KEYS) == b'{"a":[1],"b":"\\u202e"}'
