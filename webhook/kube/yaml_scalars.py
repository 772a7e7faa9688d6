"""Plain YAML scalars as kubectl reads them: booleans and numbers of YAML 1.1, without dates and base 60.

Source: go.yaml.in/yaml/v2 2.4.3, resolve.go, as called by sigs.k8s.io/yaml 1.6.0 of kubectl 1.36.
"""

import math
import re

TAG = "tag:yaml.org,2002:"

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_BOOLEANS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
_NULLS = ("", "~", "null", "Null", "NULL")
_NOT_FINITE = (
    *(f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")),
    *(".nan", ".NaN", ".NAN"),
)
_WORDS = {
    **dict.fromkeys(_BOOLEANS, f"{TAG}bool"),
    **dict.fromkeys(_NULLS, f"{TAG}null"),
    **dict.fromkeys(_NOT_FINITE, f"{TAG}float"),
    "<<": f"{TAG}merge",
}
_NUMBERS_BEGIN_WITH = frozenset("+-.0123456789")
_BASES = (16, 2, 8, 10)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def plain_tag(text: str) -> str:
    """Return the tag of a scalar without quotes."""
    if tag := _WORDS.get(text):
        return tag
    if text[0] in _NUMBERS_BEGIN_WITH:
        if _integer(text) is not None:
            return f"{TAG}int"
        if _finite(text) is not None:
            return f"{TAG}float"
    return f"{TAG}str"


def read_boolean(text: str) -> bool:
    """Return the boolean in `text`.

    Raises:
        ValueError: `text` is not a boolean.
    """
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


def read_null(text: str) -> None:
    """Return None for a null.

    Raises:
        ValueError: `text` is not a null.
    """
    if text not in _NULLS:
        raise ValueError(text)


def read_integer(text: str) -> int:
    """Return the integer in `text`.

    Raises:
        ValueError: `text` is not an integer, or needs more than 64 bits.
    """
    value = _integer(text)
    if value is None:
        raise ValueError(text)
    return value


def read_float(text: str) -> float:
    """Return the number in `text`, as an int if kubectl sends it without a fraction.

    Raises:
        ValueError: `text` is not a number.
    """
    if text in _NOT_FINITE:
        return math.inf
    value = _finite(text) if (integer := _integer(text)) is None else float(integer)
    if value is None:
        raise ValueError(text)
    return int(value) if value.is_integer() and -(2**63) <= value < 2**63 else value


def _integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(_without_underscores(text))
    if match is None:
        return None
    sign, *digits = match.groups()
    value = next(int(each, base) for each, base in zip(digits, _BASES, strict=True) if each is not None)
    if sign == "-":
        value = -value
    # Only an integer without a sign can be a uint64.
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None


def _finite(text: str) -> float | None:
    plain = text if text.startswith(".") else _without_underscores(text)
    value = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    return value if math.isfinite(value) else None


def _without_underscores(text: str) -> str:
    # A scalar that starts with an underscore is a string.
    return text if text.startswith((".", "_")) else text.replace("_", "")
