"""Kubernetes quantities (`500m`, `1.5Gi`, `12e6`) as exact integers."""

import math
import re
from functools import lru_cache
from typing import Literal

MAX_INT64 = 2**63 - 1

# Suffix to (base, exponent): decimal SI, then binary SI. There is no Zi or Yi, and kilo is a lowercase k.
# Source: k8s.io/apimachinery/pkg/api/resource/suffix.go, newSuffixer
SUFFIXES = {
    "n": (10, -9),
    "u": (10, -6),
    "m": (10, -3),
    "": (10, 0),
    "k": (10, 3),
    "M": (10, 6),
    "G": (10, 9),
    "T": (10, 12),
    "P": (10, 15),
    "E": (10, 18),
    "Ki": (2, 10),
    "Mi": (2, 20),
    "Gi": (2, 30),
    "Ti": (2, 40),
    "Pi": (2, 50),
    "Ei": (2, 60),
}

_BINARY = {exponent: suffix for suffix, (base, exponent) in SUFFIXES.items() if base == 2} | {0: ""}
_DECIMAL = {exponent: suffix for suffix, (base, exponent) in SUFFIXES.items() if base == 10}

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)\.?(?P<fraction>[0-9]*)(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]?|[KMGTPE]i))",
    re.ASCII,
)
_LONGEST = 256
_Form = Literal["decimal", "binary", "exponent"]
# The units and thousandths of a quantity; its digits, their power of ten, and the form in which it is written.
_Parsed = tuple[int, int, int, int, _Form]
# Users control quantities, so the cache is bounded in bytes, too.
_LONGEST_CACHED = 64
_REMEDY = 'must be a quantity: a number with an optional suffix, as in "500m", "2", "1.5Gi" or "12e6"'


def value(quantity: object) -> int:
    """Return the whole units of `quantity`, rounded up (away from zero), within an int64.

    Quantities are strings in the API, but YAML reads an unquoted `2` or `0.5` as a number.

    Raises:
        ValueError: it is not a quantity; the text shows the format.

    Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, Quantity.Value. A number too large for an int64 is capped,
    as that file documents, even where its arithmetic overflows. A quantity without a digit is an error here; that file
    reads it as 0.
    """
    return _scaled(quantity)[0]


def milli_value(quantity: object) -> int:
    """Return the thousandths of `quantity`, rounded up (away from zero), within an int64 of whole units.

    Raises:
        ValueError: it is not a quantity; the text shows the format.

    Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, Quantity.MilliValue
    """
    return _scaled(quantity)[1]


def canonical(quantity: object) -> str:
    """Return `quantity` as the API server prints it, such as `500m` for `0.5` and `1536Mi` for `1.5Gi`.

    Raises:
        ValueError: it is not a quantity; the text shows the format.

    Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, CanonicalizeBytes
    """
    return _printed(*_nanos(quantity))


def added(left: object, right: object) -> str:
    """Return the sum of two quantities as the API server prints it.

    Raises:
        ValueError: one is not a quantity; the text shows the format.

    Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, Quantity.Add
    """
    (first, form), (second, other_form) = _nanos(left), _nanos(right)
    return _printed(first + second, form if first else other_form)


def _nanos(quantity: object) -> "tuple[int, _Form]":
    digits, exponent, form = _scaled(quantity)[2:]
    nanos = _ceiling(abs(digits), exponent + 9)
    return -nanos if digits < 0 else nanos, form


def _printed(nanos: int, form: "_Form") -> str:
    if not nanos:
        return "0"
    sign, nanos = "-" if nanos < 0 else "", abs(nanos)
    units = nanos // 10**9
    if form == "binary" and units >= 1024 and not nanos % 10**9:
        power = max(each for each in _BINARY if not units % 2**each)
        return f"{sign}{units >> power}{_BINARY[power]}"
    power = max(each for each in _DECIMAL if not nanos % 10 ** (each + 9))
    suffix = f"e{power}" if form == "exponent" and power else _DECIMAL[power]
    return f"{sign}{nanos // 10 ** (power + 9)}{suffix}"


def _text(quantity: object) -> str:
    if isinstance(quantity, int) and not isinstance(quantity, bool):
        return str(max(-MAX_INT64, min(quantity, MAX_INT64)))
    if isinstance(quantity, float) and math.isfinite(quantity):
        return repr(quantity)
    raise ValueError(_REMEDY)


def _scaled(quantity: object) -> _Parsed:
    text = quantity if isinstance(quantity, str) else _text(quantity)
    return _cached(text) if len(text) <= _LONGEST_CACHED else _parsed(text)


def _parsed(text: str) -> _Parsed:
    text = text.strip()
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match["whole"] or match["fraction"]):
        raise ValueError(_REMEDY)
    digits = int(match["whole"] + match["fraction"])
    places = len(match["fraction"])
    form: _Form = "decimal"
    if match["exponent"] is not None:
        base, exponent, form = 10, _bounded(int(match["exponent"])), "exponent"
    else:
        base, exponent = SUFFIXES[match["suffix"]]
    if base == 2:
        digits, exponent, form = digits << exponent, 0, "binary"
    exponent -= places
    units = min(_ceiling(digits, exponent), MAX_INT64)
    thousandths = min(_ceiling(digits, exponent + 3), MAX_INT64 * 1000)
    if match["sign"] == "-":
        units, thousandths, digits = -units, -thousandths, -digits
    return units, thousandths, digits, exponent, form


_cached = lru_cache(maxsize=16384)(_parsed)


def _bounded(exponent: int) -> int:
    # A number with a larger exponent is capped or rounds up to 1; its power of ten would only cost memory.
    return max(-2 * _LONGEST, min(exponent, 2 * _LONGEST))


def _ceiling(digits: int, exponent: int) -> int:
    power = int(10 ** abs(exponent))
    return digits * power if exponent >= 0 else -(-digits // power)
