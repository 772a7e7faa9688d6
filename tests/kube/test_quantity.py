"""Quantities, against the tables of k8s.io/apimachinery/pkg/api/resource."""

import pytest

from webhook.kube import quantity
from webhook.kube.quantity import MAX_INT64, SUFFIXES, added, canonical, milli_value, value

_UPSTREAM_SUFFIXES = {
    "Ki": (2, 10),
    "Mi": (2, 20),
    "Gi": (2, 30),
    "Ti": (2, 40),
    "Pi": (2, 50),
    "Ei": (2, 60),
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
}


def test_suffixes_are_those_of_upstream() -> None:
    assert SUFFIXES == _UPSTREAM_SUFFIXES


@pytest.mark.parametrize("suffix", [suffix for suffix, (_, exponent) in _UPSTREAM_SUFFIXES.items() if exponent >= 0])
def test_suffix_multiplies(suffix: str) -> None:
    base, exponent = _UPSTREAM_SUFFIXES[suffix]
    assert value(f"3{suffix}") == 3 * base**exponent


@pytest.mark.parametrize(
    ("quantity", "units", "thousandths"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("2", 2, 2000, id="plain"),
        pytest.param("+2", 2, 2000, id="with a plus"),
        pytest.param("007", 7, 7000, id="with leading zeros"),
        pytest.param("500m", 1, 500, id="thousandths"),
        pytest.param("0.5", 1, 500, id="fraction"),
        pytest.param(".5", 1, 500, id="fraction without a whole"),
        pytest.param("5.", 5, 5000, id="whole with a point"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="fraction of a binary suffix"),
        pytest.param("12e6", 12_000_000, 12_000_000_000, id="exponent"),
        pytest.param("12E6", 12_000_000, 12_000_000_000, id="capital exponent"),
        pytest.param("1e-3", 1, 1, id="negative exponent"),
        pytest.param("1E", 10**18, 10**21, id="E alone is exa"),
        pytest.param("128974848000m", 128974848, 128974848000, id="bytes in thousandths"),
        pytest.param(" 1Gi ", 1073741824, 1073741824000, id="blanks around"),
        pytest.param(2, 2, 2000, id="integer of YAML"),
        pytest.param(0.5, 1, 500, id="float of YAML"),
        pytest.param(1e21, MAX_INT64, MAX_INT64 * 1000, id="float in exponent form"),
    ],
)
def test_quantity_is_exact(quantity: object, units: int, thousandths: int) -> None:
    assert (value(quantity), milli_value(quantity)) == (units, thousandths)


@pytest.mark.parametrize(
    ("quantity", "units", "thousandths"),
    [
        pytest.param("1n", 1, 1, id="least amount"),
        pytest.param("0.1m", 1, 1, id="less than a thousandth"),
        pytest.param("1001u", 1, 2, id="just over a thousandth"),
        pytest.param("1e-999999999", 1, 1, id="next to nothing"),
        pytest.param("-1.5", -2, -1500, id="away from zero"),
    ],
)
def test_fractions_are_rounded_up(quantity: str, units: int, thousandths: int) -> None:
    assert (value(quantity), milli_value(quantity)) == (units, thousandths)


@pytest.mark.parametrize("quantity", ["8Ei", "16Ei", "1e19", "1e999999999", "9223372036854775808", 10**400])
def test_amounts_beyond_an_int64_are_capped(quantity: object) -> None:
    assert value(quantity) == MAX_INT64


_NO_QUANTITIES = (
    "",
    " ",
    "GiB",
    "1Zi",
    "1ki",
    "1K",
    "1 Gi",
    "1.5.5",
    "1,5",
    "1e",
    "1e3m",
    "1Gi1",
    "0x10",
    "١",
    "m",
    ".",
    "-",
)


@pytest.mark.parametrize(
    "quantity", [*_NO_QUANTITIES, "1" * 300, None, True, float("inf"), float("nan"), [], {}], ids=repr
)
def test_invalid_quantity_is_rejected_with_an_example(quantity: object) -> None:
    for read in (value, milli_value):
        with pytest.raises(ValueError, match=r'must be a quantity: .* "500m", "2", "1\.5Gi" or "12e6"'):
            read(quantity)


def test_long_text_is_parsed_but_not_cached() -> None:
    """Users write quantities: texts of any length would fill the memory."""
    before = quantity._cached.cache_info()
    assert value(" " * 200_000 + "7") == 7
    with pytest.raises(ValueError, match="must be a quantity"):
        value("7" * 300)
    assert quantity._cached.cache_info() == before


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("1024Mi", "1Gi"), ("307200Ki", "300Mi"), ("1Ki", "1Ki"), ("1001Gi", "1001Gi"), ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"), ("0.3Ki", "307200m"), ("1.0001Ki", "1024102400u"), ("5000m", "5"), ("0.5", "500m"),
        ("-0.5", "-500m"), ("1000M", "1G"), ("0.001T", "1G"), ("1000u", "1m"), ("1.08", "1080m"), ("12M", "12M"),
        ("1080000000n", "1080m"), ("3000", "3k"), ("1025", "1025"), ("00", "0"), ("-0", "0"), (".001e12", "1e9"),
        ("1000e-12", "1e-9"), ("0.001e0", "1e-3"), (2, "2"), (0.5, "500m"), ("5e0", "5"), ("0.1n", "1n"),
    ],
)  # fmt: skip
def test_canonical_form_is_that_of_upstream(written: object, printed: str) -> None:
    """Source: k8s.io/apimachinery/pkg/api/resource/quantity_test.go, TestQuantityString."""
    assert canonical(written) == printed


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1Gi", "1Gi", "2Gi"),
        ("1Gi", "1G", "2073741824"),
        ("0", "1Gi", "1Gi"),
        ("500m", "0.5", "1"),
        ("0", "1e3", "1e3"),
    ],
)
def test_a_sum_has_the_form_of_its_first_part_that_is_not_zero(left: str, right: str, total: str) -> None:
    """Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, Quantity.Add."""
    assert added(left, right) == total
