"""YAML is read as kubectl 1.36 reads it: the table holds the answers of its own decoder.

Source: k8s.io/apimachinery v0.36.2, pkg/util/yaml, NewYAMLOrJSONDecoder into a RawExtension, as
`kubectl create -f` does; `kubectl annotate --local -f FILE a=b -o json` shows the same.
"""

from types import ModuleType
from typing import Any

import pytest

from webhook.documents.documents import parse
from webhook.documents.field import InvalidInput

SCALARS: dict[str, Any] = {
    # booleans
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    # words that are text
    "nO": "nO",
    "oN": "oN",
    "yEs": "yEs",
    "tRUE": "tRUE",
    "nULL": "nULL",
    "inf": "inf",
    "nan": "nan",
    "Infinity": "Infinity",
    ".infinity": ".infinity",
    "=": "=",
    "<<": "<<",
    "~x": "~x",
    # nulls
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    # integers
    "0": 0,
    "-0": 0,
    "+0": 0,
    "00": 0,
    "8": 8,
    "-8": -8,
    "+1": 1,
    "014": 12,
    "-0o14": -12,
    "0o14": 12,
    "+0o14": 12,
    "0x1F": 31,
    "0X1f": 31,
    "-0x1F": -31,
    "0b101": 5,
    "0B11": 3,
    "-0b11_1": -7,
    "1_000": 1000,
    "1__0": 10,
    "1_": 1,
    "0x_1f": 31,
    "0_8": 8,
    "08": 8,
    "019": 19,
    "18446744073709551615": 18446744073709551615,
    "9223372036854775808": 9223372036854775808,
    "-9223372036854775808": -9223372036854775808,
    "0777777777777777777777": 9223372036854775807,
    # text that begins as a number
    "0o8": "0o8",
    "0x": "0x",
    "0b": "0b",
    "0b2": "0b2",
    "0o": "0o",
    "_1": "_1",
    "0xFFFFFFFFFFFFFFFFF": "0xFFFFFFFFFFFFFFFFF",
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "1,000": "1,000",
    "1.5.2": "1.5.2",
    "1e": "1e",
    "e3": "e3",
    "0x1p3": "0x1p3",
    "--1": "--1",
    "+-1": "+-1",
    "+": "+",
    "+.": "+.",
    ".": ".",
    "..": "..",
    "1e400": "1e400",
    "-1e400": "-1e400",
    ".5e400": ".5e400",
    "._5": "._5",
    # numbers with a fraction or exponent
    "0.5": 0.5,
    "1_000.5": 1000.5,
    "1e3": 1000,
    "1E3": 1000,
    "1e+3": 1000,
    "1e-3": 0.001,
    "-1e3": -1000,
    "1.": 1,
    "1.0": 1,
    ".5": 0.5,
    "-.5": -0.5,
    "+.5": 0.5,
    ".5e3": 500,
    "5e-400": 0,
    "0.1_5": 0.15,
    "1_e3": 1000,
    "+._5": 0.5,
    "1e20": 1e20,
    "1e21": 1e21,
    "99999999999999999999": 1e20,
    "+9223372036854775807": 9223372036854775807,
    "+9223372036854775808": 9223372036854775808.0,
    "-1e19": -1e19,
    "-0.0": 0,
    "12e03": 12000,
    # dates, which stay text
    "2024-01-01": "2024-01-01",
    "2024-1-1": "2024-1-1",
    "2024-01-01T10:00:00Z": "2024-01-01T10:00:00Z",
    "2024-01-01 10:00:00": "2024-01-01 10:00:00",
    "2001-12-14T21:59:43.10-05:00": "2001-12-14T21:59:43.10-05:00",
    # quotes and tags
    "'off'": "off",
    '"8"': "8",
    "!!str off": "off",
    "!!str 5": "5",
    "!!bool yes": True,
    "!!bool 'off'": False,
    "!!int '5'": 5,
    "!!int 0x1F": 31,
    "!!float 5": 5,
    "!!float 0x1F": 31,
    "!!float 014": 12,
    "!!null ''": None,
    "[off, 014]": [False, 12],
    "{a: off}": {"a": False},
}
KEYS = {
    **dict.fromkeys(("on", "y", "Yes", "true"), "true"),
    **dict.fromkeys(("off", "N", "false"), "false"),
    "1": "1",
    "-1": "-1",
    "014": "12",
    "0x10": "16",
    "1_000": "1000",
    "0b11": "3",
    "!!int '5'": "5",
    "'on'": "on",
    "!!str on": "on",
    "1e400": "1e400",
    "2024-01-01": "2024-01-01",
}
MERGES: dict[str, Any] = {
    "{<<: {k: 1}, k: own}": {"k": "own"},
    "{k: own, <<: {k: 1}}": {"k": 1},
    "{<<: [{k: 1}, {k: 2, l: 3}]}": {"k": 1, "l": 3},
    "{<<: {k: 1}, <<: {l: 2}}": {"k": 1, "l": 2},
    "{'<<': {k: 1}}": {"<<": {"k": 1}},
    "{!!str <<: {k: 1}}": {"<<": {"k": 1}},
}


def read(module: ModuleType, text: str) -> Any:
    (document,) = module.parse(text, "pods.yaml")
    return document.content


@pytest.mark.parametrize(("written", "wanted"), SCALARS.items())
def test_scalar(without_libyaml: ModuleType, written: str, wanted: Any) -> None:
    (document,) = parse(f"a: {written}\n", "pods.yaml")

    assert document.content == read(without_libyaml, f"a: {written}\n") == {"a": wanted}
    assert type(document.content["a"]) is type(wanted)


@pytest.mark.parametrize(
    "written",
    [
        ".inf",
        "-.inf",
        "+.Inf",
        ".nan",
        "!!bool 1",
        "!!int 5.0",
        "!!int yes",
        "!!float x",
        "!!null x",
    ],
)
def test_scalar_that_is_an_error(without_libyaml: ModuleType, written: str) -> None:
    for module in (parse, without_libyaml.parse):
        with pytest.raises(InvalidInput, match=r"^pods\.yaml:1:4: Invalid value: .*must be YAML or JSON"):
            module(f"a: {written}\n", "pods.yaml")


@pytest.mark.parametrize(("written", "wanted"), KEYS.items())
def test_key(without_libyaml: ModuleType, written: str, wanted: str) -> None:
    (document,) = parse(f"? {written}\n: v\n", "pods.yaml")

    assert document.content == read(without_libyaml, f"? {written}\n: v\n") == {wanted: "v"}


@pytest.mark.parametrize(("written", "wanted"), MERGES.items())
def test_merge(without_libyaml: ModuleType, written: str, wanted: Any) -> None:
    (document,) = parse(f"b: {written}\n", "pods.yaml")

    assert document.content == read(without_libyaml, f"b: {written}\n") == {"b": wanted}


def test_a_key_keeps_the_value_that_it_lends_to_an_alias() -> None:
    (document,) = parse("? &a on\n: *a\n", "pods.yaml")

    assert document.content == {"true": True}
