"""Semantic versions and their order."""

from itertools import pairwise

import pytest

from webhook.kube.cel.values import is_semver, parse_semver

# As on semver.org.
_RISING = (
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
)


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(_RISING)))
def test_order_of_versions(lower: str, higher: str) -> None:
    assert parse_semver(lower) < parse_semver(higher)
    assert not parse_semver(higher) < parse_semver(lower)


def test_comparisons_ignore_build_metadata() -> None:
    assert parse_semver("1.0.0+a") == parse_semver("1.0.0+b")
    assert hash(parse_semver("1.0.0+a")) == hash(parse_semver("1.0.0"))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1",
            "1.2",
            "v1.2.3",
            "1.2.03",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3 ",
            " 1.2.3",
            "1.2.3\n",
            "1.2.-3",
            "1.2.3-a..b",
        ),
        *("1.2.3+", "1.2.3-ü", "1.2.3-1_0", "١.2.3", "1.2.18446744073709551616", f"1.2.3-{'a' * 251}", 3, None),
    ],
)
def test_invalid_version(text: object) -> None:
    assert not is_semver(text)
